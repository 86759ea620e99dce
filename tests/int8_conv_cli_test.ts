/** Convolutions of int8 by the command line: files, checks, exit codes, suites. */
import assert from "#assert";
import { readNpy, writeNpy } from "../src/npy/mod.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { temporaryDirectory } from "./cli.ts";
import { refuses, succeeds, wgconvHere } from "./support/in_process.ts";

const int8 = "--dtype i8 --layout nhwc";

Deno.test("wgconv conv convolves int8 files exactly, to int32 and scaled to int8, on the GPU and on the CPU", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}.npy`;
  await writeNpy(at("x"), tensor("i8", [1, 3, 2], Int8Array.of(-128, 1, 127, 2, 3, -4)));
  await writeNpy(at("w"), tensor("i8", [2, 1, 2], Int8Array.of(-128, 0, 127, 127)));
  await writeNpy(at("b"), tensor("i32", [2], Int32Array.of(-1, 1000)));
  await writeNpy(at("s"), tensor("f32", [2], Float32Array.of(2 ** -9, 2 ** -7)));
  const files = `conv ${int8} --input ${at("x")} --filter ${at("w")} --bias ${at("b")}`;
  const sums = [16383, -15129, -16257, 17383, -385, 873];
  const cases: [string, "i32" | "i8", number[]][] = [
    ["", "i32", sums],
    ["--activation relu", "i32", sums.map((sum) => Math.max(0, sum))],
    ["--out-dtype i8 --scale 0.01", "i8", [127, -128, -128, 127, -4, 9]],
    [`--out-dtype i8 --scale ${at("s")}`, "i8", [32, -118, -32, 127, -1, 7]],
    [`--out-dtype i8 --scale ${at("s")} --activation relu`, "i8", [
      32,
      0,
      0,
      127,
      0,
      7,
    ]],
  ];
  for (const [options, dtype, values] of cases) {
    for (const device of ["gpu", "cpu"]) {
      for (const check of device === "gpu" ? ["full", "none"] : ["full"]) {
        const how = `--output ${at("y")} --device ${device} --check ${check}`;
        await succeeds(`${files} ${options} ${how}`);
        const made = dtype === "i8" ? Int8Array.from(values) : Int32Array.from(values);
        assert.deepEqual(await readNpy(at("y")), tensor(dtype, [1, 3, 2], made), options);
        await Deno.remove(at("y"));
      }
    }
  }
  const { stdout } = await wgconvHere(`${files} --out-dtype i8 --scale ${at("s")}`);
  assert.match(stdout, /^tensors +i8 to i8, nhwc with filter krsc, data of the files$/m);
  assert.match(stdout, /^epilogue +scales$/m);
});

Deno.test("wgconv conv refuses of int8 what it has no meaning or no kernels for", async () => {
  using temporary = temporaryDirectory();
  const scales = `${temporary.path}/s.npy`;
  await writeNpy(scales, tensor("f32", [4], Float32Array.of(1, 2, 0, 4)));
  const problem = "--problem mb1ic4ih8oc4kh3";
  const cases: [string, RegExp][] = [
    ["--dtype i8", /as nchw with kcrs; wgconv tensor convert X OUT --from-layout nchw --to-layout/],
    [
      `--problem mb1ic4ih1oc140000kh1 ${int8} --op bwd-data`,
      /(convolutions of i8 are forward, not bwd-data|may make results of)/,
    ],
    [`${int8} --op bwd-data`, /convolutions of i8 are forward, not bwd-data$/m],
    [`${int8} --activation tanh`, /tanh leads out of the integers/],
    [`${int8} --out-dtype f32`, /outDtype f32 is none of i32, i8, u8$/m],
    [`${int8} --out-dtype i8`, /results in i8 take a scale \(--scale\), and no others do$/m],
    [`${int8} --scale 2`, /results in i8 and u8 take a scale/],
    ["--scale 2", /results in i8 and u8 take a scale/],
    [`${int8} --out-dtype i8 --scale 0`, /scale 0 is no number from 2\^-126 to 2\^96$/m],
    [`${int8} --out-dtype i8 --scale ${scales}`, /scale 0 is no number from/],
    [`${int8} --algorithm winograd2d`, /its tensors are f32, f16 or bf16/],
    [`${int8} --fill normal`, /i8 takes only the fills constant, integer, int8/],
  ];
  for (const [options, expected] of cases) {
    const onCpu = options.includes("--algorithm") ? [] : ["--device cpu"];
    for (const device of ["", ...onCpu]) {
      const own = options.includes("--problem") ? "" : problem;
      await refuses(`conv ${own} ${options} ${device}`, expected);
    }
  }
});

Deno.test("wgconv conv reads u8 files as such, and zero points and scales of one or of each channel", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}.npy`;
  await writeNpy(at("x"), tensor("u8", [1, 3, 1], Uint8Array.of(0, 255, 3)));
  await writeNpy(at("w"), tensor("i8", [2, 2, 1], Int8Array.of(127, -128, 1, 2)));
  await writeNpy(at("v"), tensor("u8", [2, 2, 1], Uint8Array.of(255, 0, 129, 130)));
  await writeNpy(at("zx"), tensor("u8", [], Uint8Array.of(3)));
  await writeNpy(at("zw"), tensor("i8", [2], Int8Array.of(-128, 2)));
  await writeNpy(at("zv"), tensor("u8", [2], Uint8Array.of(0, 130)));
  await writeNpy(at("zy"), tensor("i8", [1], Int8Array.of(-28)));
  await writeNpy(at("s"), tensor("f32", [], Float32Array.of(0.01)));
  await writeNpy(at("s1"), tensor("f64", [1], Float64Array.of(0.01)));
  await writeNpy(at("sk"), tensor("f32", [2], Float32Array.of(0.01, 0.02)));
  const conv = `conv ${int8} --padding 1 --input ${at("x")}`;
  const zeros = `--input-zero-point ${at("zx")}`;
  const own = `--filter ${at("w")} --filter-zero-point ${at("zw")} ${zeros}`;
  const sums = Int32Array.of(0, 0, -765, 3, 64_260, -252, 0, 0);
  const u8 = "--out-dtype u8 --output-zero-point 100";
  const cases: [string, Int32Array | Uint8Array | Int8Array][] = [
    [own, sums],
    [`--filter ${at("v")} --filter-zero-point ${at("zv")} --input-zero-point 3`, sums],
    [`${own} ${u8} --scale ${at("s")}`, Uint8Array.of(100, 100, 92, 100, 255, 97, 100, 100)],
    [`${own} ${u8} --scale ${at("s1")}`, Uint8Array.of(100, 100, 92, 100, 255, 97, 100, 100)],
    [`${own} ${u8} --scale ${at("sk")}`, Uint8Array.of(100, 100, 92, 100, 255, 95, 100, 100)],
    [
      `${own} --out-dtype i8 --scale 0.01 --output-zero-point ${at("zy")}`,
      Int8Array.of(-28, -28, -36, -28, 127, -31, -28, -28),
    ],
  ];
  for (const [options, values] of cases) {
    for (const how of ["full", "none", "full --device cpu"]) {
      const to = `--output ${at("y")} --force --check ${how}`;
      await succeeds(`${conv} ${options} ${to}`);
      const { data, shape } = await readNpy(at("y"));
      assert.deepEqual(data, values, `${options} ${how}`);
      assert.deepEqual(shape, [1, 4, 2]);
    }
  }
  // A product of u8, A of [M, K] and B of [N, 1, K].
  await writeNpy(at("a"), tensor("u8", [2, 2], Uint8Array.of(0, 255, 3, 4)));
  await writeNpy(at("bt"), tensor("u8", [1, 1, 2], Uint8Array.of(255, 9)));
  const product = `--input ${at("a")} --filter ${at("bt")} --output ${at("ab")}`;
  const points = "--input-zero-point 5 --filter-zero-point 10";
  await succeeds(`conv ${int8} ${product} ${points}`);
  assert.deepEqual(await readNpy(at("ab")), tensor("i32", [2, 1], Int32Array.of(-1475, -489)));
  const { stdout } = await wgconvHere(`${conv} ${own} ${u8} --scale 0.5`);
  assert.match(
    stdout,
    /^epilogue +input u8 less 3, filter i8 less zero points, scale 0.5, zero point 100$/m,
  );
  await writeNpy(at("far"), tensor("i32", [2], Int32Array.of(0, 128)));
  const filter = `--filter ${at("w")}`;
  const refusals: [string, RegExp][] = [
    [`--input-zero-point ${at("zw")}`, /input zero point has shape \[2\], expected one value$/m],
    [
      `--filter-zero-point ${at("x")}`,
      /has shape \[1, 3, 1\], expected \[2\], one value an output channel/,
    ],
    [`--filter-zero-point ${at("s")}`, /s.npy is f32, expected whole numbers/],
    [`--filter-zero-point ${at("far")}`, /zero point 128 of a filter is no whole number from -128/],
    ["--filter-zero-point 128", /zero point 128 of the filter is no whole number from -128/],
    ["--input-zero-point -1", /zero point -1 of the input is no whole number from 0 to 255/],
    ["--output-zero-point 1", /of results in i8 or u8$/m],
    ["--out-dtype u8", /results in u8 take a scale/],
  ];
  for (const [options, expected] of refusals) {
    for (const device of ["gpu", "cpu"]) {
      const all = `${conv} ${filter} ${options} --device ${device}`;
      await refuses(all, expected);
    }
  }
  await refuses(
    `${conv.replace("--dtype i8", "")} ${filter} ${zeros}`,
    /zero points and operands of u8 are of dtype i8, not of f32$/m,
  );
});

Deno.test("wgconv conv never lets int8 sums wrap around", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const y = `${path}/y.npy`;
  const channels = 131_072;
  await writeNpy(
    `${path}/x.npy`,
    tensor("i8", [1, 1, channels], new Int8Array(channels).fill(-128)),
  );
  const files = `--input ${path}/x.npy --filter ${path}/x.npy --output ${y}`;
  for (const how of ["full", "sample", "none", "full --device cpu"]) {
    await refuses(
      `conv ${int8} ${files} --check ${how}`,
      /^wgconv: Cannot convolve: [^\n]* 32 bits [^\n]*\n$/,
    );
    await assert.rejects(Deno.stat(y), Deno.errors.NotFound);
  }
  const made = `conv --problem mb1ic131073ih1oc4kh1 ${int8}`;
  for (
    const [options, expected] of [
      ["--check none", 2],
      ["--check none --fill integer", 0],
      ["--check full", 0],
    ] as const
  ) {
    const { code, stdout, stderr } = await wgconvHere(`${made} ${options}`);
    assert.equal(code, expected, stdout + stderr);
  }
});

Deno.test("suites run with several dtypes, each on data of its own, and say so", async () => {
  const suite = "bench mb2ic16ih12oc24kh3ph1 --layout nhwc --runs 1 --json";
  const records = async (more: string) => {
    const { stdout } = await succeeds(`${suite} ${more}`);
    return stdout.trim().split("\n").slice(1).map((line) => JSON.parse(line));
  };
  const both = await records("--dtype f32,i8 --algorithm direct,implicit-gemm,winograd2d");
  assert.deepEqual(
    both.map(({ dtype, algorithm, fill, verdict }) => [dtype, algorithm, fill, verdict].join()),
    [
      "f32,direct,uniform01,pass",
      "f32,implicit-gemm,uniform01,pass",
      "f32,winograd2d,uniform01,pass",
      "i8,direct,int8,pass",
      "i8,implicit-gemm,int8,pass",
    ],
  );
  const [scaled] = await records("--dtype i8 --out-dtype i8 --scale 0.001");
  assert.deepEqual(
    [scaled.algorithm, scaled.dtype, scaled.out_dtype, scaled.epilogue, scaled.verdict],
    ["implicit-gemm", "i8", "i8", "scale 0.001", "pass"],
  );
  assert.equal(scaled.accuracy.max_bound_ratio, 0);
});

Deno.test("wgconv bench skips what int8 does not go with, and says so", async () => {
  const lists = "--dtype f32,i8 --layout nchw,nhwc --op all";
  const options = `${lists} --runs 1 --algorithm auto`;
  const { stdout, stderr } = await succeeds(`bench mb1ic8ih6oc8kh3 ${options}`);
  assert.equal(stdout.match(/ pass$/gm)?.length, 7);
  assert.match(stderr, /^skipped: auto: convolutions of i8 are forward, not bwd-data$/m);
  assert.match(stderr, /^skipped: auto: i8 tensors lie as nhwc with filters krsc/m);
});
