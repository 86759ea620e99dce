import assert from "#assert";
import { DEVICE_VARIABLES } from "../../src/gpu/load_provider.ts";
import { ENVIRONMENT } from "../../tasks/compile_permissions.ts";
import { deno, ROOT, run, start, temporaryDirectory } from "../cli.ts";

/** The tools that the file's script asks for. */
const TOOLS = "chmod gzip head id ls mkdir mktemp mv rm rmdir tail".split(" ");

const NOTHING_LEFT = /^new\./;

/** As from a login with nothing set: no HOME, and neither Deno nor Node on the path. */
function login(cwd: string, env: Record<string, string> = {}) {
  return { cwd, clearEnv: true, env: { PATH: "/usr/bin:/bin", TMPDIR: cwd, ...env } };
}

/**
 * Copies a program by a process of its own. What this process writes stays open in children that other tests start meanwhile,
 * and Linux runs no file that is open for writing.
 */
async function copy(from: string, to: string): Promise<void> {
  const { code, stderr } = await run("/bin/cp", [from, to]);
  assert.equal(code, 0, stderr);
}

/** A directory with a copy of the file in it, and nothing else. */
async function alone(compiled: string) {
  const temporary = temporaryDirectory();
  await copy(compiled, `${temporary.path}/wgconv`);
  const path = temporary.path;
  return {
    path,
    run: (args: readonly string[], env?: Record<string, string>, input?: Uint8Array<ArrayBuffer>) =>
      run("./wgconv", args, { ...login(path, env), input }),
    base: `${path}/wgconv-${Deno.uid()}`,
    [Symbol.dispose]: temporary[Symbol.dispose],
  };
}

/** All below a directory. */
function entries(path: string): string[] {
  return [...Deno.readDirSync(path)].flatMap(({ name, isDirectory }) => [
    name,
    ...(isDirectory ? entries(`${path}/${name}`) : []),
  ]);
}

Deno.test("the compiled file runs alone", async (t) => {
  using made = temporaryDirectory();
  const compiled = `${made.path}/wgconv`;
  const args = ["run", "-A", "tasks/compile.ts", "--stub", "--level", "1", "--output", compiled];
  const compile = await deno(args, { cwd: ROOT });
  assert.equal(compile.code, 0, compile.stderr);
  using file = await alone(compiled);

  await t.step("it needs nothing but a dozen small tools", async () => {
    const bin = `${made.path}/bin`;
    Deno.mkdirSync(bin);
    for (const tool of TOOLS) {
      const found = ["/usr/bin", "/bin"].find((path) => entries(path).includes(tool));
      Deno.symlinkSync(`${found}/${tool}`, `${bin}/${tool}`);
    }
    const { code, stdout, stderr } = await file.run(["--version"], { PATH: bin });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
    const unpacked = [...Deno.readDirSync(file.base)];
    assert.deepEqual(unpacked.map(({ name }) => /^[0-9a-f]{64}$/.test(name)), [true]);
    const { mode } = Deno.statSync(`${file.base}/${unpacked[0]!.name}`);
    assert.equal((mode ?? 0) & 0o777, 0o700);
  });

  await t.step("it lists devices and checks convolutions", async () => {
    const devices = await file.run(["devices"]);
    assert.equal(devices.code, 0, devices.stderr);
    const conv = ["conv", "--problem", "mb1ic4ih8oc4kh3", "--check", "full", "--json"];
    const gpu = await file.run(conv);
    assert.equal(gpu.code, 0, gpu.stderr);
    assert.equal(JSON.parse(gpu.stdout).verdict, "pass");
    // Large enough that the reference starts Workers.
    const large = [
      "conv",
      "--problem",
      "mb4ic64ih28oc64kh3",
      "--device",
      "cpu",
      "--output",
      "y.npy",
    ];
    const cpu = await file.run(large);
    assert.equal(cpu.code, 0, cpu.stderr);
    assert.ok(Deno.statSync(`${file.path}/y.npy`).size > 4 * 64 * 26 * 26 * 4);
  });

  await t.step("arguments, streams, exit codes and signals pass through", async () => {
    const name = " a  b'\"*$(x).npy";
    assert.equal((await file.run(["tensor", "make", name, "--shape", "2,3"])).code, 0);
    assert.ok(entries(file.path).includes(name));
    const tensor = await Deno.readFile(`${file.path}/${name}`);
    assert.match((await file.run(["tensor", "info", "-"], {}, tensor)).stdout, /f32 +\[2, 3\]/);
    assert.equal((await file.run(["conv", "--problem", "x"])).code, 2);
    // It waits for its reader, with far more than a pipe holds; what it had started would go on to the end.
    const long = ["tensor", "make", "-", "--shape", "2000,2000"];
    const killed = start("./wgconv", long, {
      ...login(file.path),
      stdout: "piped",
      stderr: "null",
    });
    const output = killed.stdout.getReader();
    let { value, done } = await output.read();
    killed.kill("SIGTERM");
    assert.equal((await killed.status).signal, "SIGTERM");
    let bytes = 0;
    for (; !done; { value, done } = await output.read()) bytes += value!.length;
    assert.ok(bytes > 0 && bytes < 4 * 2000 * 2000, `${bytes}`);
  });

  await t.step("Dawn is not downloaded, and a named one is tried", async () => {
    const dawn = ["conv", "--problem", "mb1ic4ih8oc4kh3", "--backend", "dawn"];
    const unnamed = await file.run(dawn);
    assert.equal(unnamed.code, 3);
    assert.match(
      unnamed.stderr,
      /^wgconv: Cannot load Dawn: .*of a compiled file set WGCONV_DAWN to .*\n$/,
    );
    const named = await file.run(dawn, { WGCONV_DAWN: "none/index.js" });
    assert.match(named.stderr, /^wgconv: Cannot load Dawn from .*one\/dist\/.*dawn\.node/);
  });

  await t.step("parallel first starts all run, and nothing else is left", async () => {
    using other = await alone(compiled);
    const runs = await Promise.all([1, 2, 3].map(() => other.run(["--version"])));
    assert.deepEqual(runs.map(({ code, stderr }) => [code, stderr]), [[0, ""], [0, ""], [0, ""]]);
    assert.deepEqual(entries(other.base).filter((name) => NOTHING_LEFT.test(name)), []);
  });

  await t.step("where it cannot unpack it says so, exits 5 and leaves nothing", async () => {
    using other = await alone(compiled);
    const small = "ulimit -f 2048; exec ./wgconv --version";
    const full = await run("/bin/sh", ["-c", small], login(other.path));
    assert.equal(full.code, 5);
    assert.match(full.stderr, /^wgconv: Cannot unpack into .*; set XDG_CACHE_HOME to .*\n$/);
    assert.deepEqual(entries(other.path), ["wgconv"]);

    const whole = await Deno.readFile(compiled);
    const flipped = whole.slice();
    flipped[whole.length - 2 ** 16]! ^= 1;
    for (const damaged of [flipped, whole.subarray(0, 2 ** 20), whole.subarray(0, 2 ** 13)]) {
      await Deno.writeFile(`${made.path}/damaged`, damaged);
      await copy(`${made.path}/damaged`, `${other.path}/wgconv`);
      const { code, stderr } = await other.run(["--version"]);
      assert.equal(code, 5);
      assert.match(
        stderr,
        /^wgconv: Cannot unpack \S+\/wgconv: it is damaged \(.*\); get the file again\n$/,
      );
      assert.deepEqual(entries(other.path), ["wgconv"]);
    }
  });

  await t.step(
    "what was unpacked is checked at every start, and repaired where it is wrong",
    async () => {
      using other = await alone(compiled);
      assert.equal((await other.run(["--version"])).code, 0);
      const folder = `${other.base}/${[...Deno.readDirSync(other.base)][0]!.name}`;
      const [program, runtime, mark] = ["wgconv.js", "deno", "complete"].map((name) =>
        `${folder}/${name}`
      ) as [string, string, string];
      const sizes = () => [program, runtime].map((path) => Deno.statSync(path).size);
      const whole = sizes();
      const text = await Deno.readTextFile(program);
      /** The same size, other content, and a time that says so or does not. */
      const forged = text.replace('"use strict"', '"use stricT"').replace("function", "functioN");
      assert.notEqual(forged, text);
      const poisoned = `${folder}/cache/poisoned`;
      const damages: [string, () => unknown][] = [
        ["an emptied runtime", () => Deno.truncateSync(runtime)],
        ["an emptied program", () => Deno.truncateSync(program)],
        ["a truncated runtime", () => Deno.truncateSync(runtime, whole[1]! >> 1)],
        ["a truncated program", () => Deno.truncateSync(program, whole[0]! - 1)],
        ["a runtime that is gone", () => Deno.removeSync(runtime)],
        ["a directory in its place", () => {
          Deno.removeSync(runtime);
          Deno.mkdirSync(`${runtime}/x`, { recursive: true });
        }],
        ["a link in its place", () => {
          Deno.removeSync(program);
          Deno.symlinkSync("/dev/null", program);
        }],
        ["a runtime that may not run", () => Deno.chmodSync(runtime, 0o600)],
        ["a program that others may write", () => Deno.chmodSync(program, 0o666)],
        ["a program changed later", () => Deno.writeTextFileSync(program, forged)],
        ["no mark, and a program of the same size", () => {
          Deno.writeTextFileSync(program, forged);
          Deno.utimeSync(program, 1, 1);
          Deno.removeSync(mark);
        }],
        ["a directory that others may write", () => {
          Deno.writeTextFileSync(poisoned, "");
          Deno.chmodSync(folder, 0o777);
        }],
        ["the one above it", () => Deno.chmodSync(other.base, 0o777)],
      ];
      if (Deno.uid() === 0) {
        damages.push(["another's program", () => Deno.chownSync(program, 1, 1)]);
      }
      for (const [what, damage] of damages) {
        await damage();
        const { code, stdout, stderr } = await other.run(["--version"]);
        assert.deepEqual([code, stderr], [0, ""], what);
        assert.match(stdout, /^\d+\.\d+\.\d+\n$/, what);
        assert.deepEqual(sizes(), whole, what);
        assert.equal(await Deno.readTextFile(program), text, what);
        const modes = [other.base, folder, program, runtime, mark].map((path) =>
          Deno.lstatSync(path).mode! & 0o7777
        );
        assert.deepEqual(modes, [0o700, 0o700, 0o600, 0o700, 0o600], what);
        assert.equal(Deno.statSync(program).uid, Deno.uid(), what);
      }
      assert.throws(() => Deno.statSync(poisoned), Deno.errors.NotFound);
    },
  );

  await t.step("without its mark what is whole stays, and is marked again", async () => {
    using other = await alone(compiled);
    assert.equal((await other.run(["--version"])).code, 0);
    const folder = `${other.base}/${[...Deno.readDirSync(other.base)][0]!.name}`;
    Deno.removeSync(`${folder}/complete`);
    const { ino } = Deno.statSync(`${folder}/deno`);
    assert.equal((await other.run(["--version"])).code, 0);
    assert.equal(Deno.statSync(`${folder}/deno`).ino, ino);
    assert.equal(Deno.statSync(`${folder}/complete`).size, 0);
  });

  await t.step("what a killed unpacking left is removed, what still goes on is not", async () => {
    using other = await alone(compiled);
    assert.equal((await other.run(["--version"])).code, 0);
    const folder = `${other.base}/${[...Deno.readDirSync(other.base)][0]!.name}`;
    for (const name of ["new.killed", "new.going"]) {
      Deno.mkdirSync(`${folder}/${name}`);
      Deno.writeTextFileSync(`${folder}/${name}/deno`, "");
    }
    const yesterday = Date.now() / 1000 - 86_400;
    Deno.utimeSync(`${folder}/new.killed`, yesterday, yesterday);
    assert.equal((await other.run(["--version"])).code, 0);
    assert.deepEqual(entries(folder).filter((name) => NOTHING_LEFT.test(name)), ["new.going"]);
  });

  await t.step("a directory in which everyone may rename is not used", async () => {
    using other = await alone(compiled);
    const cache = `${other.path}/cache`;
    Deno.mkdirSync(cache);
    const env = { XDG_CACHE_HOME: cache };
    assert.equal((await other.run(["--version"], env)).code, 0);
    Deno.chmodSync(cache, 0o777);
    const open = await other.run(["--version"], env);
    assert.deepEqual([open.code, open.stdout], [5, ""]);
    assert.match(open.stderr, /^wgconv: Cannot unpack into .*: everyone can write into .*cache; /);
    // As /tmp is.
    Deno.chmodSync(cache, 0o1777);
    assert.equal((await other.run(["--version"], env)).code, 0);
    Deno.chmodSync(other.path, 0o777);
    assert.match((await other.run(["--version"])).stderr, /: everyone can write into .*\/\.\.; /);
  });

  await t.step("a directory that someone else may have made is not used", async () => {
    using other = await alone(compiled);
    Deno.mkdirSync(`${other.path}/elsewhere`);
    Deno.symlinkSync("elsewhere", other.base);
    const linked = await other.run(["--version"]);
    assert.equal(linked.code, 5);
    assert.match(
      linked.stderr,
      /^wgconv: Cannot unpack into .* is no directory of this user; .*\n$/,
    );
    const cache = `${other.path}/cache`;
    const named = await other.run(["--version"], { XDG_CACHE_HOME: cache });
    assert.equal(named.code, 0, named.stderr);
    const directory = `${cache}/${[...Deno.readDirSync(cache)][0]!.name}`;
    Deno.renameSync(directory, `${other.path}/moved`);
    Deno.symlinkSync(`${other.path}/moved`, directory);
    const moved = await other.run(["--version"], { XDG_CACHE_HOME: cache });
    assert.equal(moved.code, 5);
    assert.match(moved.stderr, /^wgconv: Cannot unpack into .* no directory of this user; .*\n$/);
  });
});

Deno.test("the compiled file's permissions name every variable that the program asks for", async () => {
  using temporary = temporaryDirectory();
  const output = `${temporary.path}/wgconv.js`;
  const bundled = await deno(["bundle", "--output", output, "main.ts"], { cwd: ROOT });
  assert.equal(bundled.code, 0, bundled.stderr);
  const text = await Deno.readTextFile(output);
  const asked = text.matchAll(
    /(?:process\d*\.env\.|\bDeno\.env\.\w+\("|\breadVariable\(")([A-Z][A-Z0-9_]+)/g,
  );
  const set = Object.keys(DEVICE_VARIABLES);
  const names = [...new Set([...set, ...[...asked].map(([, name]) => name!)])].sort();
  assert.ok(names.length >= 5, names.join());
  assert.deepEqual(names.filter((name) => !ENVIRONMENT.includes(name)), []);
});
