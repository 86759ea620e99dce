import assert from "#assert";
import { readNpy, writeNpy } from "../../src/npy/mod.ts";
import { tensor } from "../../src/tensor/tensor.ts";
import { NO_DRIVER, temporaryDirectory, wgconv } from "../cli.ts";
import { refuses, succeeds, wgconvHere } from "../support/in_process.ts";

const once = "--runs 1";

/** Writes whole numbers as a tensor and returns the file's path. */
async function file(folder: string, name: string, shape: number[], values: number[]) {
  const path = `${folder}/${name}.npy`;
  await writeNpy(path, tensor("f32", shape, Float32Array.from(values)));
  return path;
}

Deno.test("wgconv gemm multiplies files: every term of the definition, checked, written", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const a = await file(path, "a", [3, 2], [1, 4, 2, 5, 3, 6]);
  const b = await file(path, "b", [2, 3], [1, 0, -1, 2, 1, 0]);
  const c = await file(path, "c", [2, 2], [10, 20, 30, 40]);
  const bias = await file(path, "bias", [2], [-100, 1]);
  const residual = await file(path, "residual", [2, 2], [0.5, 0.25, 0, -1]);
  const y = `${path}/y.npy`;
  const files = `--a ${a} --b ${b} --transpose tt --output ${y} --force ${once}`;
  // [1 2 3; 4 5 6] times the transpose of [1 0 -1; 2 1 0].
  const plain = await succeeds(`gemm ${files} --check full`);
  assert.match(plain.stdout, /^problem +gemm 2 2 3 t t$/m);
  assert.match(plain.stdout, /^verdict +pass$/m);
  assert.deepEqual(await readNpy(y), tensor("f32", [2, 2], Float32Array.of(-2, 4, -2, 13)));
  const terms = `--c ${c} --alpha -2 --beta 0.5 --bias ${bias} --bias-side row`;
  const more = `--activation relu --residual ${residual}`;
  for (const check of ["full", "none"]) {
    const all = await succeeds(`gemm ${files} ${terms} ${more} --check ${check} --json`);
    const record = JSON.parse(all.stdout);
    assert.equal(record.op, "gemm");
    assert.equal(record.epilogue, "alpha -2, beta 0.5, row bias, relu, residual");
    assert.equal(record.verdict, check === "full" ? "pass" : "none");
    assert.deepEqual((await readNpy(y)).data, Float32Array.of(0.5, 0.25, 20, -1 + 0));
  }
});

Deno.test("wgconv gemm multiplies batches, and computes on the CPU without a driver", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const a = await file(path, "a", [2, 1, 2], [1, 2, 3, 4]);
  const b = await file(path, "b", [2, 2, 1], [1, 1, 1, -1]);
  const y = `${path}/y.npy`;
  const files = `--a ${a} --b ${b} --output ${y} --force`;
  for (const device of ["gpu", "cpu"]) {
    const env = device === "cpu" ? NO_DRIVER : {};
    const { code, stderr } = await wgconv(`gemm ${files} --device ${device} ${once}`, { env });
    assert.equal(code, 0, stderr);
    assert.deepEqual(await readNpy(y), tensor("f32", [2, 1, 1], Float32Array.of(3, -1)));
  }
  const none = await wgconv(`gemm ${files}`, { env: NO_DRIVER });
  assert.equal(none.code, 3);
  assert.match(none.stderr, /--device cpu computes without a GPU\n$/);
});

Deno.test("wgconv gemm makes seeded data, and an empty result is one", async () => {
  using temporary = temporaryDirectory();
  const y = `${temporary.path}/y.npy`;
  const made = "--size 5,6,7 --batch 2 --bias-side row --beta 1";
  const { stdout } = await succeeds(`gemm ${made} --residual --output ${y} ${once}`);
  assert.match(stdout, /^problem +gemm 5 6 7 n n x2$/m);
  assert.match(stdout, /^epilogue +beta 1, row bias, residual$/m);
  assert.match(stdout, /^tensors .*uniform01 data, seed 1$/m);
  assert.deepEqual((await readNpy(y)).shape, [2, 5, 6]);
  const empty = await succeeds(["gemm", "--size", "0 6 7 t n", "--output", y, "--force"]);
  assert.match(empty.stdout, /the result is empty/);
  assert.deepEqual((await readNpy(y)).shape, [0, 6]);
});

Deno.test("wgconv gemm multiplies int8 files to int32 exactly, on the GPU and on the CPU", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const [a, b, c, y] = ["a", "b", "c", "y"].map((name) => `${path}/${name}.npy`) as [
    string,
    string,
    string,
    string,
  ];
  await writeNpy(a, tensor("i8", [1, 5], Int8Array.of(-128, 127, 3, -4, 5)));
  await writeNpy(b, tensor("i8", [5, 2], Int8Array.of(-128, 1, 127, 2, 3, 3, 4, 4, 5, 5)));
  const sum = 128 * 128 + 127 * 127 + 18;
  await writeNpy(c, tensor("i32", [1, 2], Int32Array.of(2 ** 31 - 1 - 2 * sum, -1000)));
  const files = `--dtype i8 --a ${a} --b ${b} --c ${c} --alpha 2 --output ${y}`;
  for (const device of ["gpu", "cpu"]) {
    for (const check of ["full", "none"]) {
      const args = `gemm ${files} --device ${device} --check ${check} ${once}`;
      const { code, stderr } = await wgconvHere(args);
      if (check === "none" && device === "gpu") {
        // The largest of each would leave 32 bits together.
        assert.equal(code, 2);
        assert.match(stderr, /^wgconv: Cannot multiply: 5 products of up to 128 and 128 may make /);
        continue;
      }
      assert.equal(code, 0, stderr);
      const other = 2 * (-128 + 254 + 18) - 1000;
      const expected = tensor("i32", [1, 2], Int32Array.of(2 ** 31 - 1, other));
      assert.deepEqual(await readNpy(y), expected);
      await Deno.remove(y);
    }
  }
});

Deno.test("wgconv gemm takes every dtype and sum, and kernels without optimisations", async () => {
  const size = `gemm --size 33,35,37 ${once}`;
  const cases: [string, RegExp, string?][] = [
    ["--dtype i8", /^tensors +i8, .* int8 data, seed 1$/m],
    ["--dtype f64", /^kernel +gemm_f64_32x32x8_/m, "shader-f64"],
    ["--dtype f16 --accumulate f16", /^kernel +gemm_f16_sum16_/m, "shader-f16"],
    ["--without prefetch,unroll --with double-buffer", /_no_prefetch_double_buffer_no_unroll$/m],
  ];
  for (const [args, expected, feature] of cases) {
    const { code, stdout, stderr } = await wgconvHere(`${size} ${args} --check full`);
    if (code === 3 && feature !== undefined) {
      assert.match(stderr, new RegExp(feature));
      continue;
    }
    assert.equal(code, 0, stderr);
    assert.match(stdout, expected);
    assert.match(stdout, /^verdict +pass$/m);
  }
});

Deno.test("wgconv gemm says in one sentence what does not fit, and writes nothing", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const a = await file(path, "a", [3, 2], [1, 2, 3, 4, 5, 6]);
  const b = await file(path, "b", [2, 4], [1, 2, 3, 4, 5, 6, 7, 8]);
  const pair = await file(path, "pair", [2, 1, 2], [1, 2, 3, 4]);
  const three = await file(path, "three", [3, 2, 1], [1, 2, 3, 4, 5, 6]);
  const row = await file(path, "row", [2], [1, 2]);
  const y = `${path}/y.npy`;
  const suite = `${path}/s.txt`;
  await Deno.writeTextFile(suite, "3 4 5\n");
  const files = `--a ${a} --b ${b} --output ${y}`;
  const cases: [string, RegExp][] = [
    ["", /it takes --a and --b, or --size or --suite/],
    [`${files} --transpose tn`, /op\(A\) is 2 x 3, op\(B\) is 2 x 4 \(transposes tn\)\n/],
    [
      `--a ${pair} --b ${three}`,
      /A has a batch of \[2\], B of \[3\], expected the same sizes, or 1, which is broadcast/,
    ],
    [`--a ${row} --b ${b}`, /A \(.*row.npy\) has shape \[2\], expected 2 axes, or more with the/],
    [
      `${files} --bias ${a}`,
      /the column bias has shape \[3, 2\], expected \[4\], \[1, 4\] or \[1\]\n/,
    ],
    [
      `${files} --c ${a}`,
      /C has shape \[3, 2\], expected \[3, 4\], or what NumPy broadcasts to it\n/,
    ],
    [
      `${files} --residual ${a}`,
      /the residual has shape \[3, 2\], expected \[3, 4\], or what NumPy/,
    ],
    [`${files} --beta 1`, /beta is 1, but there is no --c\n/],
    [`${files} --bias-side row`, /--bias-side says where --bias lies, but there is none\n/],
    [`${files} --residual`, /--residual names no file\n/],
    [`${files} --fill normal`, /--fill goes with --size/],
    [`--size 3,4,5 --bias ${a}`, /--size makes the data, the file of --bias must go\n/],
    ["--size 3,4", /--size 3,4, expected m,n,k such as 64,64,64/],
    ["--size 3,4,5 --alpha x", /expected a finite number/],
    ["--size 3,4,5 --policy tinny", /did you mean "tiny"\?/],
    ["--size 3,4,5 --math f16x3 --dtype f64", /math f16x3 is of f32 operands/],
    ["--size 3,4,5 --accumulate f16", /only f16 products can be summed in f16/],
    ["--size 3,4,5 --dtype i8 --alpha 0.5", /i8 products take whole numbers of 32/],
    ["--size 3,4,5 --dtype i8 --activation tanh", /tanh leads out of the integers/],
    ["--size 3,4,5 --dtype i8 --fill normal", /i8 takes only the fills constant, integer, int8/],
    ["--size 3,4,5 --without speed", /speed is none of prefetch, unroll/],
    ["--size 3,4,5 --with half-tile", /half-tile is of f16 products that are summed in/],
    ["--size 3,4,5 --alpha 1e40", /alpha is 1e\+40, beyond f32/],
    ["--size 3,4,5 --balance best", /--balance <how>/],
    ["--size 3,4,5 --policy larg", /or a tile such as 128x32x8_8x4, did you mean "large"/],
    ["--size 3,4,5 --policy 128x30x8", /multiples of 4 that divide the workgroup's, with/],
    ["--size 3,4,50 --balance none --splits 2", /balance none contradicts 2 splits\n/],
    ["--size 0,4,5 --search", /Cannot search: the result of 0 4 5 is empty\n/],
    [`--size 3,4,5 --search --output ${y}`, /keeps no result, --output must go\n/],
    ["--size 3,4,5 --search --policy tiny --splits 2", /--policy, --splits must/],
    ["--size 3,4,5 --search --device cpu", /--search runs on the GPU\n/],
    [
      "--size 3,4,5 --device cpu --policy tiny --splits 2",
      /the CPU computes with the reference itself, --policy, --splits must go\n/,
    ],
    [
      "--size 3,4,5 --cache cold --shard 1/2 --resume",
      /only a --suite has parts, --cache, --shard, --resume must go\n/,
    ],
    [`--suite ${suite} --resume`, /--resume continues the file that --jsonl names\n/],
    ["--size 3,4,5 --jsonl x.jsonl", /--jsonl goes with --suite or --search/],
    [`--suite s --c ${a}`, /--suite says what is multiplied, --c must go\n/],
    ["--suite none.txt", /Cannot read none\.txt: there is no such file\n/],
    ["--suite s --size 1,2,3", /--suite says what is multiplied, --size must go\n/],
  ];
  for (const [args, message] of cases) {
    await refuses(`gemm ${args}`, message);
  }
  await assert.rejects(() => Deno.stat(y), Deno.errors.NotFound);
});

Deno.test("wgconv gemm never lets int8 products wrap around", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const y = `${path}/y.npy`;
  const k = 131_072;
  const least = tensor("i8", [1, k], new Int8Array(k).fill(-128));
  await writeNpy(`${path}/a.npy`, least);
  const files = `--a ${path}/a.npy --b ${path}/a.npy --transpose nt`;
  for (const how of ["full", "sample", "none", "full --device cpu"]) {
    const args = `gemm --dtype i8 ${files} --output ${y} ${once} --check ${how}`;
    await refuses(args, /^wgconv: Cannot multiply: [^\n]* 32 bits [^\n]*\n$/);
    await assert.rejects(Deno.stat(y), Deno.errors.NotFound);
  }
  // The sizes leave it open; small numbers, or the reference, say that nothing overflows.
  const size = `gemm --size 4,4,140000 --dtype i8 ${once}`;
  for (
    const [options, expected] of [
      ["--check none", 2],
      ["--check none --fill integer", 0],
      ["--check full", 0],
    ] as const
  ) {
    const { code, stdout, stderr } = await wgconvHere(`${size} ${options}`);
    assert.equal(code, expected, stdout + stderr);
  }
  await Deno.writeTextFile(`${path}/s.txt`, "4 4 140000\n4 4 100\n");
  const suite = `gemm --suite ${path}/s.txt --dtype i8 --check none --json`;
  const { stdout } = await wgconvHere(`${suite} ${once}`);
  const verdicts = stdout.trim().split("\n").slice(1).map((line) => JSON.parse(line).verdict);
  assert.deepEqual(verdicts, ["error", "none"]);
});
