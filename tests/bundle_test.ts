import assert from "#assert";
import { dirname } from "node:path";
import { deno, NO_DRIVER, ROOT, run, temporaryDirectory } from "./cli.ts";

const ALONE = ["run", "-A", "--no-remote", "--no-npm", "--no-config", "wgconv.js"];

Deno.test("the bundle runs alone: shaders, Workers and npm code are inside", async () => {
  using temporary = temporaryDirectory();
  const output = `${temporary.path}/wgconv.js`;
  const bundled = await deno(["bundle", "--output", output, "main.ts"], { cwd: ROOT });
  assert.equal(bundled.code, 0, bundled.stderr);
  const env = { DENO_DIR: `${temporary.path}/cache` };
  const wgconv = (args: string[], more = {}) =>
    deno([...ALONE, ...args], { cwd: temporary.path, env: { ...env, ...more } });

  const version = await wgconv(["--version"]);
  assert.equal(version.code, 0, version.stderr);

  const gpu = await wgconv(["conv", "--problem", "mb1ic4ih8oc4kh3", "--json"]);
  assert.equal(gpu.code, 0, gpu.stderr);
  assert.equal(JSON.parse(gpu.stdout).verdict, "pass");

  // Large enough that the reference starts Workers.
  const workers = ["conv", "--problem", "mb4ic64ih28oc64kh3", "--device", "cpu"];
  const cpu = await wgconv(workers, NO_DRIVER);
  assert.equal(cpu.code, 0, cpu.stderr);

  const make = ["tensor", "make", "x.npy", "--shape", "8,8,3"];
  assert.equal((await wgconv(make)).code, 0);
  const show = await wgconv(["tensor", "show", "x.npy", "x.png"]);
  assert.equal(show.code, 0, show.stderr);
  const png = await Deno.readFile(`${temporary.path}/x.png`);
  assert.deepEqual([...png.subarray(1, 4)], [...new TextEncoder().encode("PNG")]);

  const plan = await wgconv(["plan", "--problem", "mb1ic4ih8oc4kh3", "--wgsl"], NO_DRIVER);
  assert.match(plan.stdout, /@compute/);

  // In a folder without suites.
  const suite = await wgconv(["bench", "--suite", "resnet3x3", "--match", "zzz"], NO_DRIVER);
  assert.match(suite.stderr, /matches none of 16 problems/);

  // As the README installs it.
  const readme = await Deno.readTextFile(`${ROOT}README.md`);
  const [, flags] = /^deno install (.*) dist\/wgconv\.js$/m.exec(readme)!;
  const root = `${temporary.path}/installed`;
  const install = ["install", "--root", root, ...flags!.split(" "), output];
  const installed = await deno(install, { cwd: temporary.path, env });
  assert.equal(installed.code, 0, installed.stderr);
  const command = Deno.build.os === "windows" ? "wgconv.cmd" : "wgconv";
  const path = Deno.env.get("PATH")!;
  const conv = ["conv", "--problem", "mb1ic4ih8oc4kh3", "--color", "always"];
  const ran = await run(`${root}/bin/${command}`, conv, {
    cwd: temporary.path,
    env: { ...env, XDG_RUNTIME_DIR: "/tmp", PATH: `${dirname(Deno.execPath())}:${path}` },
  });
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(ran.stdout.endsWith("verdict     \x1b[32mpass\x1b[39m\n"), ran.stdout);
});
