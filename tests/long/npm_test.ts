import assert from "#assert";
import { join } from "node:path";
import { VERSION } from "../../mod.ts";
import { deno, ROOT, run, temporaryDirectory } from "../cli.ts";

const CONSUMER = `import { convolve, openDevice, parseDescriptor } from "wgconv";
import { planConv } from "wgconv/web";
const problem = parseDescriptor("mb1ic3ih8oc4kh3");
const sizes: readonly number[] = problem.outputSize;
console.log(typeof convolve, typeof openDevice, typeof planConv, sizes);
`;

/** A folder in which the package is installed beside this Deno, as npm would. */
async function installed() {
  const temporary = temporaryDirectory();
  const { path } = temporary;
  const made = await deno(["run", "-A", "tasks/npm.ts", "--output", `${path}/npm`], { cwd: ROOT });
  assert.equal(made.code, 0, made.stderr);
  const packed = `${path}/wgconv-${VERSION}.tgz`;
  await Deno.mkdir(`${path}/node_modules/deno`, { recursive: true });
  await Deno.symlink(Deno.execPath(), `${path}/node_modules/deno/deno`);
  await Deno.writeTextFile(`${path}/node_modules/deno/package.json`, `{ "name": "deno" }`);
  const tar = await run("tar", ["xzf", packed, "-C", `${path}/node_modules`]);
  assert.equal(tar.code, 0, tar.stderr);
  await Deno.rename(`${path}/node_modules/package`, `${path}/node_modules/wgconv`);
  await Deno.writeTextFile(`${path}/package.json`, `{ "dependencies": { "wgconv": "*" } }`);
  const bin = join(path, "node_modules/wgconv/bin/wgconv.cjs");
  return {
    path,
    wgconv: (...args: string[]) => run("node", [bin, ...args], { cwd: path }),
    [Symbol.dispose]: temporary[Symbol.dispose],
  };
}

Deno.test("the npm package runs the program, and is a library with types", async (t) => {
  using folder = await installed();
  await t.step("its program has the command line's results and exit codes", async () => {
    assert.equal((await folder.wgconv("--version")).stdout, `${VERSION}\n`);
    const conv = await folder.wgconv("conv", "--problem", "mb1ic3ih8oc4kh3", "--device", "cpu");
    assert.equal(conv.code, 0, conv.stderr);
    assert.match((await folder.wgconv("bench", "--list-suites")).stdout, /resnet3x3/);
    const wrong = await folder.wgconv("conv", "--stride", "x");
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /^wgconv: [^\n]+\n$/);
  });
  await t.step("its library runs and is checked", async () => {
    await Deno.writeTextFile(`${folder.path}/main.ts`, CONSUMER);
    const options = { cwd: folder.path };
    const ran = await deno(["run", "-A", "--check", "main.ts"], options);
    assert.equal(ran.stdout, "function function function [ 6, 6 ]\n", ran.stderr);
    const wrong = CONSUMER.replace("readonly number[]", "string");
    await Deno.writeTextFile(`${folder.path}/main.ts`, wrong);
    const checked = await deno(["check", "main.ts"], options);
    assert.equal(checked.code, 1);
    assert.match(checked.stderr, /'readonly number\[\]' is not assignable to type 'string'/);
  });
  await t.step("its part for pages is in ES2022: Safari has no `using`", async () => {
    const text = await Deno.readTextFile(`${folder.path}/node_modules/wgconv/lib/web.js`);
    assert.doesNotMatch(text, /^\s*(?:await )?using [\w$]+ =/m);
    assert.match(text, /Symbol\.dispose/);
  });
  await t.step(
    "its part for pages loads where there is no Float16Array or DisposableStack",
    async () => {
      const code = `delete globalThis.Float16Array; delete globalThis.DisposableStack;
const { fillTensor } = await import("wgconv/web");
console.log(fillTensor("f32", [3], "constant", 1).data.length);
try { fillTensor("f16", [3], "constant", 1); } catch ({ message }) { console.log(message); }`;
      const args = ["--input-type=module", "-e", code];
      const { stdout, stderr } = await run("node", args, { cwd: folder.path });
      assert.equal(stdout, "3\nCannot hold f16: there is no Float16Array here\n", stderr);
    },
  );
  await t.step("Node is told that the library is Deno's", async () => {
    const args = ["--input-type=module", "-e", 'import { convolve } from "wgconv"; convolve();'];
    const { code, stderr } = await run("node", args, { cwd: folder.path });
    assert.equal(code, 1);
    assert.match(stderr, /^Error: wgconv is a library for Deno: .* in Node import wgconv\/web,/m);
  });
  await t.step(
    "its README says how it is installed, and has the pages that help names",
    async () => {
      const within = (name: string) =>
        Deno.readTextFile(`${folder.path}/node_modules/wgconv/${name}`);
      assert.match(await within("README.md"), /npm install \.\/wgconv-/);
      assert.match(await within("docs/guides/gpus.md"), /--device-model/);
    },
  );
});
