/** `wgconv conv` of the files that a pattern stands for. */
import assert from "#assert";
import { readNpy, writeNpy } from "../../src/npy/mod.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { temporaryDirectory, wgconv } from "../cli.ts";

/** Files below `x` and a filter of three input channels, in a folder of their own. */
async function frames() {
  const temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  const make = async (name: string, shape: readonly number[], dtype: DType = "f32", seed = 1) => {
    await writeNpy(at(name), fillTensor(dtype, shape, "uniform11", seed));
  };
  await Deno.mkdir(at("x/sub/deep"), { recursive: true });
  await make("x/a.npy", [1, 3, 9, 8]);
  await make("x/b.npy", [1, 3, 9, 8], "f64", 2);
  await make("x/sub/c.npy", [2, 3, 7, 7], "f16");
  await make("x/sub/deep/d.npy", [1, 3, 9, 8], "f32", 3);
  await make("w.npy", [4, 3, 3, 3]);
  const conv = (pattern: string, ...more: string[]) =>
    wgconv(["conv", "--input", at(pattern), "--filter", at("w.npy"), ...more]);
  const names = (folder: string) => {
    const all = [...walk(at(folder))].map((path) => path.slice(at(folder).length + 1));
    return all.sort();
  };
  return { at, make, conv, names, [Symbol.dispose]: () => temporary[Symbol.dispose]() };
}

function* walk(folder: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) yield* walk(`${folder}/${name}`);
    else yield `${folder}/${name}`;
  }
}

Deno.test("conv of a pattern writes each file's result, with its folders, as conv of the file does", async () => {
  using files = await frames();
  const { at, conv, names } = files;
  const all = await conv("x/**/*.npy", "--output", at("out"), "--padding", "1");
  assert.equal(all.code, 0, all.stderr);
  assert.deepEqual(names("out"), ["a.npy", "b.npy", "sub/c.npy", "sub/deep/d.npy"]);
  assert.match(all.stdout, /^4 of 4 files written$/m);
  for (const name of names("out")) {
    const one = await conv(`x/${name}`, "--output", at("y.npy"), "--padding", "1", "--force");
    assert.equal(one.code, 0, one.stderr);
    assert.deepEqual(await readNpy(at(`out/${name}`)), await readNpy(at("y.npy")), name);
  }
  const json = await conv("x/*.npy", "--output", at("flat"), "--json", "--check", "none");
  const records = json.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(
    records.map(({ kind, input, output }) => [kind, input, output]),
    ["a.npy", "b.npy"].map((name) => ["case", at(`x/${name}`), at(`flat/${name}`)]),
  );
  const cpu = await conv("x/a*.npy", "--output", at("cpu"), "--device", "cpu");
  assert.equal(cpu.code, 0, cpu.stderr);
  assert.deepEqual(names("cpu"), ["a.npy"]);
});

Deno.test("files of one problem take what is timed once for them, anew where their tuning is outdated", async () => {
  using files = await frames();
  const { at, conv } = files;
  const tuning = at("tuning.jsonl");
  for (const out of ["new", "outdated"]) {
    const learned = ["--tuning", tuning, "--tune-budget", "60", "--padding", "1", "--json"];
    const { code, stdout, stderr } = await conv("x/*.npy", "--output", at(out), ...learned);
    assert.equal(code, 0, stderr);
    assert.equal(stderr.match(/^timed \d ways/mg)?.length, 1, stderr);
    const choices = stdout.trim().split("\n").map((line) => JSON.parse(line).choice);
    assert.deepEqual(choices, ["measured", "measured"], out);
    const text = await Deno.readTextFile(tuning);
    await Deno.writeTextFile(tuning, text.replaceAll(/"kernels":\["/g, "$&other_"));
  }
});

Deno.test("what fails stands in the manifest, the rest is done; --resume does what is missing", async () => {
  using files = await frames();
  const { at, make, conv, names } = files;
  await make("x/aa.npy", [1, 5, 9, 8]);
  await Deno.writeTextFile(at("x/bad.npy"), "no tensor");
  const out = ["--output", at("out")];
  const first = await conv("x/*.npy", ...out);
  assert.equal(first.code, 1, first.stderr);
  assert.match(first.stdout, /^2 of 4 files written, 2 failed: .*failures\.jsonl$/m);
  assert.deepEqual(names("out"), ["a.npy", "b.npy", "failures.jsonl"]);
  const lines = (await Deno.readTextFile(at("out/failures.jsonl"))).trim().split("\n");
  const manifest = lines.map((line) => JSON.parse(line));
  assert.deepEqual(manifest.map(({ input, output, exit_code }) => [input, output, exit_code]), [
    [at("x/aa.npy"), at("out/aa.npy"), 2],
    [at("x/bad.npy"), at("out/bad.npy"), 2],
  ]);
  assert.match(manifest[0].message, /filter has 3 input channels, input has 5/);
  const kept = (await Deno.stat(at("out/a.npy"))).mtime;
  const again = await conv("x/*.npy", ...out);
  assert.equal(again.code, 2, again.stderr);
  assert.match(
    again.stderr,
    /a\.npy: it is not empty, --resume keeps it, --force overwrites it\n$/,
  );
  await make("x/aa.npy", [1, 3, 9, 8]);
  await Deno.remove(at("x/bad.npy"));
  const second = await conv("x/*.npy", ...out, "--resume");
  assert.equal(second.code, 0, second.stderr);
  assert.match(second.stdout, /^1 of 3 files written, 2 were there$/m);
  assert.deepEqual(names("out"), ["a.npy", "aa.npy", "b.npy"]);
  assert.deepEqual((await Deno.stat(at("out/a.npy"))).mtime, kept);
});

Deno.test("a pattern that matches nothing, and outputs that collide or are inputs, exit 2 and change nothing", async () => {
  using files = await frames();
  const { at, conv, names } = files;
  const refused = async (pattern: string, message: RegExp, ...more: string[]) => {
    const before = names("x");
    const { code, stderr } = await conv(pattern, ...more);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
    assert.deepEqual(names("x"), before);
    await assert.rejects(Deno.stat(at("out")), Deno.errors.NotFound);
  };
  const out = ["--output", at("out")];
  await refused("x/*.npz", /: no \.npy or \.npz file matches\n$/, ...out);
  await refused("x/*a*a*a*a*b.npy", /: \*a\*a\*a\*a\*b\.npy has more than 4 stars, /, ...out);
  await refused("x/*.npy", /: --output names the folder of the results\n$/);
  await refused(
    "x/*.npy",
    /a\.npy: it is an input too, --force overwrites it\n$/,
    "--output",
    at("x"),
  );
  const inside = ["--output", at("x/out")];
  await refused("x/**/*.npy", /: the next run would take it for an input, /, ...inside);
  await refused("x/a.npy", /--resume needs many files/, "--resume", ...out);
  await Deno.copyFile(at("x/a.npy"), at("x/a.npz"));
  await refused(
    "x/*",
    /out\/a\.npy: it would be the result of .*a\.npy and of .*a\.npz\n$/,
    ...out,
  );
  await Deno.remove(at("w.npy"));
  await refused("x/*.npy", /w\.npy: there is no such file/, ...out);
});
