import assert from "#assert";
import { writeNpy } from "../src/npy/mod.ts";
import { elementCount, tensor } from "../src/tensor/tensor.ts";
import { temporaryDirectory } from "./cli.ts";
import { refuses, succeeds, wgconvHere } from "./support/in_process.ts";

const G14 = ["--fill", "normal", "--algorithm", "winograd2d-nonfused", "--tile", "F(14x14,3x3)"];
const CONV = ["conv", "--runs", "1", "--problem"];

Deno.test("a tile whose results are no use is refused, planned on demand, and fails all the same (G1)", async () => {
  const problem = "mb1ic32ih28oc8kh3ph1";
  await refuses(
    [...CONV, problem, ...G14],
    /^wgconv: Cannot plan: winograd2d-nonfused F\(14x14,3x3\) typically errs by \d\.\de-3 of /,
  );
  const planned = await wgconvHere([...CONV, problem, ...G14, "--max-bound-ratio", "1e9"]);
  assert.equal(planned.code, 1);
  assert.match(planned.stdout, /fail: error over the data's norm 0\.00\d+ is above 0\.001/);
});

/** Right results that some rule of thumb would fail. */
const RIGHT: Readonly<Record<string, readonly string[]>> = {
  "constants, whose sums round to one side (G2)": [
    ...CONV,
    "mb1ic64ih14oc8kh3ph1",
    "--fill",
    "constant",
  ],
  "errors below one rounding of a large addend (G3)": ["--size", "8,8,8", "--beta", "4294967296"],
  "f64 above the square root of its range (G3)": [
    ...["--size", "8,8,8", "--dtype", "f64", "--alpha", "1e155", "--fill", "normal"],
  ],
  "outputs that are all clipped": ["--size", "8,8,8", "--alpha", "-1", "--activation", "relu"],
  "a sigmoid of large sums": [
    ...CONV,
    "g3mb1ic6ih13iw2oc24oh3ow5kh3kw2sh3sw1ph0pw3dh2dw0",
    ...["--fill", "int8", "--activation", "sigmoid"],
  ],
  "exponentials of exact sums in f64": [
    ...["--size", "4,5,53", "--dtype", "f64", "--fill", "uniform11", "--activation", "tanh"],
  ],
  "constants in f64, cut in depth": [
    ...["--size", "7,15,72", "--batch", "3", "--transpose", "tn", "--dtype", "f64"],
    ...["--fill", "constant", "--activation", "relu", "--policy", "wide", "--splits", "3"],
  ],
  "sums that come out exact by chance": [
    ...["--size", "56,36,70", "--dtype", "f64", "--fill", "constant", "--alpha", "0.1"],
    ...["--beta", "1", "--activation", "relu", "--policy", "tiny", "--splits", "5"],
  ],
};

for (const [what, args] of Object.entries(RIGHT)) {
  Deno.test(`right results pass: ${what}`, async () => {
    const { code, stdout, stderr } = await wgconvHere(
      args[0] === "conv" ? args : ["gemm", "--runs", "1", ...args],
    );
    // A driver without f64 says so.
    if (code === 3 && args.includes("f64")) return;
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /verdict +pass/);
  });
}

Deno.test("f16 products with subnormal results pass (G3)", async () => {
  const half = ["--size", "8,8,8", "--dtype", "f16", "--alpha", "1e-7", "--runs", "1"];
  const { code, stdout, stderr } = await wgconvHere(["gemm", ...half]);
  assert.ok(code === 0 || (code === 3 && stderr.includes("shader-f16")), stdout + stderr);
});

Deno.test("a sigmoid's sums allow it no more than its own range does", async () => {
  const { stdout } = await wgconvHere([
    ...CONV,
    "mb1ic6ih13oc8kh3ph1",
    ...["--fill", "int8", "--activation", "sigmoid", "--algorithm", "direct", "--json"],
  ]);
  const { accuracy } = JSON.parse(stdout.trim().split("\n").at(-1)!);
  assert.ok(accuracy.rel_l2_limit < 1e-5, `${accuracy.rel_l2_limit}`);
});

/** Writes f32 files of some names into a folder. */
async function writeFiles(
  folder: string,
  files: Record<string, readonly [shape: readonly number[], values: readonly number[]]>,
): Promise<(name: string) => string> {
  const at = (name: string) => `${folder}/${name}.npy`;
  for (const [name, [shape, values]] of Object.entries(files)) {
    const all = Float32Array.from(
      { length: elementCount(shape) },
      (_, i) => values[i % values.length]!,
    );
    await writeNpy(at(name), tensor("f32", shape, all));
  }
  return at;
}

/** A constant picture, and one with something on it. */
const BATCH = Array.from({ length: 512 }, (_, i) => i < 256 ? 200 / 255 : Math.sin(i));
const SHARPEN = [-1, -2, -1, -2, 12, -2, -1, -2, -1];

Deno.test("what cancels to 0 everywhere passes, whole and in chunks, by any algorithm", async () => {
  using temporary = temporaryDirectory();
  const at = await writeFiles(temporary.path, {
    flat: [[1, 1, 16, 16], [200 / 255]],
    batch: [[2, 1, 16, 16], BATCH],
    filter: [[1, 1, 3, 3], SHARPEN],
    centred: [[2, 4], [1, -3, 1.5, 0.5, 2, 1, -7, 4]],
    constant: [[4, 3], [0.3]],
  });
  const conv = ["conv", "--runs", "1", "--filter", at("filter"), "--input"];
  const runs = [
    ...["auto", "direct", "depthwise", "winograd2d-nonfused"].map((
      algorithm,
    ) => [...conv, at("flat"), "--algorithm", algorithm]),
    [...conv, at("batch"), "--chunk", "1"],
    ["gemm", "--runs", "1", "--a", at("centred"), "--b", at("constant")],
  ];
  for (const args of runs) {
    const { stdout } = await succeeds(args);
    assert.match(stdout, /verdict +pass$/m);
    assert.doesNotMatch(stdout, /NaN|Infinity/);
  }
});

Deno.test("infinities that are right pass, and NaN alone is no success", async () => {
  using temporary = temporaryDirectory();
  const at = await writeFiles(temporary.path, {
    infinite: [[3, 1], [Infinity, 1, 2]],
    one: [[1, 1], [1]],
    c: [[3, 1], [1, -Infinity, 2]],
    nan: [[3, 1], [NaN]],
  });
  const gemm = (name: string, ...more: string[]) =>
    wgconvHere(["gemm", "--runs", "1", "--a", at(name), "--b", at("one"), ...more]);
  for (
    const more of [["--activation", "tanh"], ["--alpha", "2"], ["--beta", "2", "--c", at("c")]]
  ) {
    const { code, stdout } = await gemm("infinite", ...more);
    assert.equal(code, 0, stdout);
  }
  const nan = await gemm("nan");
  assert.equal(nan.code, 1);
  assert.match(nan.stdout, /verdict +not checked: every output is NaN, as the reference's are/);
});

Deno.test("empty results are not checked, which is said, and a run of nothing else is no success", async () => {
  const empty = "mb0ic4ih8oc4kh3";
  const said = /not checked: .*the result is empty/;
  const conv = await wgconvHere(["conv", "--problem", empty]);
  assert.deepEqual([conv.code, said.test(conv.stdout)], [0, true]);
  const gemm = await wgconvHere(["gemm", "--size", "0,4,4"]);
  assert.deepEqual([gemm.code, said.test(gemm.stdout)], [0, true]);
  for (const device of ["gpu", "cpu"]) {
    const bench = await wgconvHere(["bench", empty, "--device", device, "--runs", "1"]);
    assert.equal(bench.code, 2);
    assert.match(bench.stdout, said);
    const held = ["--op", "fwd", "--layout", "nchw", "--baseline", "none", "--device", device];
    using temporary = temporaryDirectory();
    const suite = `${temporary.path}/suite.txt`;
    await Deno.writeTextFile(suite, empty);
    const named = device === "gpu" ? ["--algorithm", "direct"] : [];
    const check = await wgconvHere(["check", "--suite", suite, ...held, ...named]);
    assert.equal(check.code, 2, check.stderr);
    assert.match(check.stdout, said);
  }
});
