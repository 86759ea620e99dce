import assert from "#assert";
import { type ConvProblem, convProblem, tensorShape } from "../problem/conv_problem.ts";
import { fillTensor } from "../tensor/fill.ts";
import { type Layout, LAYOUTS, permute, shapeInLayout } from "../tensor/layout.ts";
import { filterLayoutFor, layoutAxes } from "../tensor/layout.ts";
import { tensor } from "../tensor/tensor.ts";
import { lessZero, projectConvIntegers, quantized, referenceIntegers } from "./integers.ts";

Deno.test("quantized() rounds halves to even, and saturates", () => {
  const halves = [-5, -3, -1, 0, 1, 3, 5].map((sum) => quantized(sum, 0.5));
  assert.deepEqual(halves, [-2, -2, 0, 0, 0, 2, 2]);
  assert.deepEqual([255, 254, 253].map((sum) => quantized(sum, 0.5)), [127, 127, 126]);
  assert.deepEqual([-257, -256, -255].map((sum) => quantized(sum, 0.5)), [-128, -128, -128]);
  assert.deepEqual([2 ** 31 - 1, -(2 ** 31)].map((sum) => quantized(sum, 2 ** 96)), [127, -128]);
  assert.equal(quantized(2 ** 31 - 1, 2 ** -126), 0);
});

Deno.test("quantized() rounds the sum to f32, then its product", () => {
  // 2^24 + 1 is no f32: the even neighbour is 2^24.
  assert.equal(quantized(2 ** 24 + 1, 2 ** -25), 0);
  assert.equal(quantized(2 ** 24 + 2, 2 ** -25), 1);
  // 5 times the f32 below 0.1 is below a half, which f32 does not hold.
  assert.equal(quantized(5, Math.fround(0.1) - 2 ** -27), 0);
  assert.equal(quantized(15, Math.fround(0.1)), 2);
});

Deno.test("quantized() adds the zero point, and saturates at the ends of its type", () => {
  const sums = [-1000, -6, -5, -3, 0, 1, 3, 5, 1000];
  const to = (dtype: "i8" | "u8", zeroPoint: number) =>
    sums.map((sum) => quantized(sum, 0.5, { dtype, zeroPoint }));
  assert.deepEqual(to("u8", 2), [0, 0, 0, 0, 2, 2, 4, 4, 255]);
  assert.deepEqual(to("u8", 255), [0, 252, 253, 253, 255, 255, 255, 255, 255]);
  assert.deepEqual(to("i8", -128), [-128, -128, -128, -128, -128, -128, -126, -126, 127]);
  assert.deepEqual(to("i8", 127), [-128, 124, 125, 125, 127, 127, 127, 127, 127]);
});

Deno.test("lessZero() takes one zero point of all values, or one of each part, and leaves none out", () => {
  const data = Uint8Array.of(0, 255, 128, 1);
  assert.deepEqual([...lessZero(data, 255)], [-255, 0, -127, -254]);
  assert.deepEqual([...lessZero(data, Int32Array.of(0, 200))], [0, 255, -72, -199]);
  assert.deepEqual([...lessZero(Int8Array.of(-128, 127), -128)], [0, 255]);
  assert.equal(lessZero(data, 0), data);
});

Deno.test("referenceIntegers() and its projection take operands of u8 less their zero points", async () => {
  const problem = convProblem({
    batch: 1,
    inChannels: 1,
    outChannels: 2,
    inputSize: [2],
    filterSize: [2],
    paddingBegin: [1],
    paddingEnd: [0],
  });
  // x - 3 is -3 and 252, w - 255 is -255 and 0, w - 1 is -1 and 254; padding is zero.
  const inputs = {
    input: { data: lessZero(Uint8Array.of(0, 255), 3), layout: "nhwc" },
    filter: {
      data: lessZero(Uint8Array.of(0, 255, 0, 255), Int32Array.of(255, 1)),
      layout: "krsc",
    },
  } as const;
  const { values } = await referenceIntegers(problem, inputs, {});
  assert.deepEqual([...values], [0, 765, -762, 64_011]);
  const { expected, project } = projectConvIntegers(problem, { ...inputs, result: "nhwc" }, 1);
  assert.deepEqual(project(Int32Array.of(0, -762, 765, 64_011)), expected);
});

function case_(init: Partial<ConvProblem>, layout: Layout, fill: "int8" | "constant" = "int8") {
  const problem = convProblem({
    batch: 2,
    inChannels: 6,
    outChannels: 8,
    groups: 2,
    inputSize: [7, 6],
    filterSize: [3, 2],
    stride: [2, 1],
    paddingBegin: [1, 0],
    paddingEnd: [0, 2],
    dilation: [1, 2],
    ...init,
  });
  const filterLayout = filterLayoutFor(layout);
  const made = (which: "input" | "filter", seed: number) => {
    const own = which === "filter" ? filterLayout : layout;
    const shape = shapeInLayout(tensorShape(problem, which), own);
    return { data: fillTensor("i8", shape, fill, seed).data, layout: own };
  };
  const bias = fillTensor("i32", [problem.outChannels], "int8", 3).data;
  return { problem, inputs: { input: made("input", 1), filter: made("filter", 2), bias } };
}

Deno.test("projectConvIntegers() is the projection of the sums, in every layout, and of no others", async () => {
  const more = [
    {},
    { groups: 1, inChannels: 5 },
    {
      inputSize: [9],
      filterSize: [2],
      stride: [3],
      dilation: [2],
      paddingBegin: [1],
      paddingEnd: [2],
    },
    {
      inputSize: [3, 4, 5],
      filterSize: [2, 1, 3],
      stride: [1, 2, 1],
      dilation: [1, 1, 1],
      paddingBegin: [1, 0, 2],
      paddingEnd: [0, 0, 1],
    },
  ];
  for (const init of more) {
    for (const layout of LAYOUTS) {
      const { problem, inputs } = case_(init, layout);
      const epilogue = { bias: true, activation: "none" } as const;
      const { values, shape } = await referenceIntegers(problem, inputs, { epilogue });
      const canonical = tensor("i32", shape, Int32Array.from(values));
      const axes = layoutAxes(layout, problem.filterSize.length);
      const result = permute(canonical, axes).data as Int32Array<ArrayBuffer>;
      const projection = projectConvIntegers(problem, { ...inputs, result: layout }, 7);
      assert.deepEqual(projection.shape, [problem.batch, problem.groups, ...problem.outputSize]);
      assert.deepEqual(projection.project(result), projection.expected);
      for (const at of [0, result.length >> 1, result.length - 1]) {
        const wrong = result.slice();
        wrong[at]! ^= 1 << 31;
        assert.notDeepEqual(projection.project(wrong), projection.expected);
      }
    }
  }
});

Deno.test("referenceIntegers() refuses sums of more than 32 bits, and takes the largest", async () => {
  const { problem } = case_({
    groups: 1,
    batch: 1,
    inChannels: 131_072,
    outChannels: 1,
    inputSize: [1],
    filterSize: [1],
    stride: [1],
    dilation: [1],
    paddingBegin: [0],
    paddingEnd: [0],
  }, "nhwc");
  const inputs = (filter: number) => ({
    input: { data: new Int8Array(131_072).fill(-128), layout: "nhwc" as const },
    filter: { data: new Int8Array(131_072).fill(filter), layout: "krsc" as const },
  });
  const epilogue = { bias: true, activation: "relu" } as const;
  const one = Int32Array.of(-1);
  const most = await referenceIntegers(problem, { ...inputs(-128), bias: one }, { epilogue });
  assert.deepEqual([...most.values], [2 ** 31 - 1]);
  await assert.rejects(referenceIntegers(problem, inputs(-128), {}), {
    name: "RangeError",
    message: "Cannot convolve: output [0, 0, 0] is beyond the 32 bits that i8 convolutions sum in",
  });
  const scaled = await referenceIntegers(problem, inputs(1), {
    epilogue: { ...epilogue, bias: false },
  }, (sum) => quantized(sum, 1));
  assert.deepEqual([...scaled.values], [0]);
});
