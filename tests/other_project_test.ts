/** The library from projects of others: nothing of this repository's deno.json holds there. */
import assert from "#assert";
import { pathToFileURL } from "node:url";
import { deno, ROOT, temporaryDirectory } from "./cli.ts";

/** A program that takes a step of training a filter, and writes a type of the library. */
function program(library: string): string {
  return `
import { convolve, fillTensor, openDevice, parseDescriptor } from "${library}";
import type { Convolved } from "${library}";

using gpu = await openDevice();
const problem = parseDescriptor("mb1ic1ih4oc1kh3ph1");
const input = fillTensor("f32", [1, 1, 4, 4], "uniform01", 1).data;
const target = fillTensor("f32", [1, 1, 4, 4], "constant", 1).data;
let filter = fillTensor("f32", [1, 1, 3, 3], "constant", 1).data;

const forward: Convolved = await convolve(gpu, problem, { input, filter });
const errors = forward.result.map((y, i) => y - target[i]);
const toFilter = { ...problem, op: "bwd-filter" } as const;
const gradient = await convolve(gpu, toFilter, { input, output: errors });
filter = filter.map((w, i) => w - gradient.result[i] / 100);
const { result } = await convolve(gpu, problem, { input, filter });
const loss = (values: ArrayLike<number>) => Math.hypot(...target.map((y, i) => y - values[i]));
console.log(forward.shape.join(), loss(result) < loss(forward.result));
`;
}

/** Makes a project of files by name, and runs Deno in it. */
async function inProject(
  files: Readonly<Record<string, string>>,
  ...commands: readonly string[][]
): Promise<string[]> {
  using temporary = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(`${temporary.path}/${name}`, text);
  }
  const said: string[] = [];
  for (const command of commands) {
    const { code, stdout, stderr } = await deno(command, { cwd: temporary.path });
    assert.equal(code, 0, `deno ${command.join(" ")}: ${stderr}`);
    said.push(stdout);
  }
  return said;
}

const MOD = pathToFileURL(`${ROOT}mod.ts`).href;
const WEB = pathToFileURL(`${ROOT}web.ts`).href;
const RUN = ["run", "-A", "main.ts"];

Deno.test("a new project imports mod.ts by its path, trains and checks types", async () => {
  const files = { "deno.json": "{}", "main.ts": program(MOD) };
  const [ran] = await inProject(files, RUN, ["check", "main.ts"]);
  assert.equal(ran, "1,1,4,4 true\n");
});

Deno.test("a new project imports mod.ts and web.ts by names of its own", async () => {
  const imports = { wgconv: MOD, "wgconv/web": WEB };
  const text = `import "wgconv/web";\n${program("wgconv")}`;
  const [ran] = await inProject({ "deno.json": JSON.stringify({ imports }), "main.ts": text }, RUN);
  assert.equal(ran, "1,1,4,4 true\n");
});

Deno.test("so does a project with a package.json, as docs/guides/library.md says", async () => {
  const files = {
    "package.json": `{ "name": "other" }`,
    "deno.json": `{ "nodeModulesDir": "none" }`,
    "main.ts": program(MOD),
  };
  assert.deepEqual(await inProject(files, RUN), ["1,1,4,4 true\n"]);
});
