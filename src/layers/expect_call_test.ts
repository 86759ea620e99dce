/** What programs without types give to the library's calls, and what is said. */
import assert from "#assert";
import { planBiasGradient } from "../algorithms/bias_gradient/plan.ts";
import { planGemm } from "../algorithms/gemm/plan.ts";
import { DEFAULT_LIMITS } from "../algorithms/plan.ts";
import { planConv, supportedAlgorithms } from "../algorithms/planner.ts";
import { checkConvolution, convolve } from "../convolve.ts";
import { checkProduct, multiply } from "../multiply.ts";
import { convProblem } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { referenceGemm } from "../reference/gemm.ts";
import { referenceConv } from "../reference/reference.ts";
import { prepareBiasGradient } from "./bias_gradient.ts";
import { prepareConvolution } from "./convolution.ts";
import { verify } from "../verify/library.ts";
import { prepareProduct } from "./product.ts";
import { test } from "../../tests/drivers/driver.ts";

const PROBLEM = parseDescriptor("mb1ic4ih8oc4kh3ph1");
const INPUT = new Float32Array(4 * 64).fill(1);
const FILTER = new Float32Array(4 * 4 * 9).fill(1);
const OPERANDS = { input: INPUT, filter: FILTER };
const TENSORS = {
  input: { data: INPUT, layout: "nchw" },
  filter: { data: FILTER, layout: "kcrs" },
} as const;

/** Problems that no maker of problems gives. */
const BAD_PROBLEMS: [unknown, RegExp][] = [
  [null, /^TypeError: Cannot convolve: the problem is null, expected an object of sizes$/],
  [{ ...PROBLEM, stride: [0, 0] }, /^RangeError: Cannot convolve: stride is 0,0, expected >= 1$/],
  [{ ...PROBLEM, outputSize: [99, 99] }, /^RangeError: Cannot convolve: output size is 99x99, /],
  [{ ...PROBLEM, groups: 3 }, /^RangeError: Cannot convolve: 3 groups do not divide 4 input/],
  [{ ...PROBLEM, filterSize: undefined }, /^TypeError: .* filter size is undefined, expected an/],
  [{ ...PROBLEM, batch: 1.5 }, /^RangeError: Cannot convolve: batch is 1.5, expected >= 0$/],
  [
    { ...PROBLEM, pading: 1 },
    /^TypeError: .*: nothing reads the field of the problem pading, only/,
  ],
  [{ ...PROBLEM, op: "forward" }, /^RangeError: Cannot convolve: op is "forward", expected fwd, /],
];
const BAD_PRODUCTS: [unknown, RegExp][] = [
  [null, /^TypeError: Cannot multiply: the problem is null, expected an object of sizes$/],
  [{ ...gemmProblem({ m: 2, n: 2, k: 2 }), m: -1 }, /^RangeError: .* m is -1, expected >= 0$/],
  [
    { m: 2, n: 2, k: 2, relu: true },
    /^TypeError: .*: nothing reads the field of the problem relu,/,
  ],
  [{ ...gemmProblem({ m: 2, n: 2, k: 2 }), transpose: "x" }, /^RangeError: .* transpose is "x", /],
];

/** What a call throws or rejects with. */
async function thrown(call: () => unknown): Promise<string> {
  try {
    await call();
    return "nothing";
  } catch (error) {
    return String(error);
  }
}

test("every call that takes a problem validates it", async (gpu) => {
  const request = { dtype: "f32", layout: "nchw", limits: DEFAULT_LIMITS };
  const conv = { ...request, filterLayout: "kcrs", algorithm: "auto", epilogue: {} };
  const convolutions: ((problem: never) => unknown)[] = [
    (problem) => convolve(gpu, problem, OPERANDS),
    (problem) => prepareConvolution(gpu, problem),
    (problem) => prepareBiasGradient(gpu, problem),
    (problem) => referenceConv(problem, TENSORS),
    (problem) => planConv({ ...conv, problem } as never),
    (problem) => supportedAlgorithms({ ...conv, problem } as never),
    (problem) => planBiasGradient({ ...request, problem } as never),
  ];
  for (const [problem, message] of BAD_PROBLEMS) {
    for (const call of convolutions) {
      assert.match(await thrown(() => call(problem as never)), message, String(call));
    }
  }
  const products: ((problem: never) => unknown)[] = [
    (problem) => multiply(gpu, problem, {}),
    (problem) => prepareProduct(gpu, problem),
    (problem) => referenceGemm(problem, {}),
    (problem) => planGemm({ problem, dtype: "f32", limits: DEFAULT_LIMITS }),
  ];
  for (const [problem, message] of BAD_PRODUCTS) {
    for (const call of products) {
      assert.match(await thrown(() => call(problem as never)), message, String(call));
    }
  }
});

test("calls refuse devices, operands and options that are none, in a sentence", async (gpu) => {
  const options: [unknown, RegExp][] = [
    [null, /^TypeError: Cannot convolve: options is null, expected an object of options$/],
    [{ layout: "hwc" }, /^RangeError: Cannot convolve: layout is "hwc", expected nchw, /],
    [{ layout: 1 }, /^TypeError: Cannot convolve: layout is 1, expected nchw, /],
    [{ dtype: "f8" }, /^RangeError: Cannot convolve: dtype is "f8", expected f32, /],
    [{ algorithm: 7 }, /^TypeError: Cannot convolve: algorithm is 7, expected a word$/],
    [{ algorithm: "fft" }, /^RangeError: Cannot plan: there is no algorithm fft, only /],
    [{ schedule: { splits: 0 } }, /^RangeError: Cannot plan: 0 splits are no whole number/],
    [{ schedule: { raster: 1.5 } }, /^RangeError: Cannot plan: a raster of 1.5 rows is no whole/],
    [{ schedule: { raster: -1 } }, /^RangeError: Cannot plan: a raster of -1 rows is no whole/],
    [{ schedule: { prefetch: 1 } }, /^TypeError: .* prefetch is 1, expected true or false$/],
    [
      { schedule: { spilts: 2 } },
      /^TypeError: .* nothing reads the field of schedule spilts, only/,
    ],
    [{ schedule: { balance: "all" } }, /^RangeError: .* balance is "all", expected auto, /],
    [{ policy: "small" }, /^TypeError: .* policy is a field of the schedule: /],
    [{ samples: 0 }, /^RangeError: Cannot convolve: samples is 0, expected a whole number >= 1$/],
    [{ maxWorkspaceBytes: NaN }, /^RangeError: .* maxWorkspaceBytes is NaN, expected a number/],
    [{ maxWorkspaceBytes: "1" }, /^TypeError: .* maxWorkspaceBytes is "1", expected a number/],
    [{ epilogue: null }, /^TypeError: Cannot convolve: epilogue is null, expected an object/],
    [{ epilogue: { bias: 1 } }, /^TypeError: .* epilogue.bias is 1, expected true or false$/],
    [
      { epilogue: { slope: 0.1 } },
      /^TypeError: .* nothing reads the field of epilogue slope, only /,
    ],
    [
      { integers: { inputDType: "u8" } },
      /^TypeError: .* nothing reads the field of integers inputD/,
    ],
    [{ algoritm: "direct" }, /^TypeError: Cannot convolve: nothing reads the option algoritm$/],
    [{ exact: 1 }, /^TypeError: Cannot convolve: exact is 1, expected true or false$/],
    [{ tuning: 1 }, /^TypeError: Cannot convolve: tuning is 1, expected an object$/],
    [{ epilogue: { activation: "elu" } }, /^RangeError: .* activation is "elu", expected none/],
  ];
  for (const [given, message] of options) {
    const call = () => convolve(gpu, PROBLEM, OPERANDS, given as never);
    assert.match(await thrown(call), message);
  }
  const raw = /^TypeError: .* the device is an object of GPUDevice, expected what openDevice\(\)/;
  assert.match(await thrown(() => convolve(gpu.device as never, PROBLEM, OPERANDS)), raw);
  assert.match(await thrown(() => prepareProduct(gpu.device as never, {} as never)), raw);
  const none = /^TypeError: Cannot convolve: operands is null, expected an object of arrays$/;
  assert.match(await thrown(() => convolve(gpu, PROBLEM, null as never)), none);
  const plan = /^TypeError: Cannot plan: limits is undefined, expected an object of numbers/;
  assert.match(await thrown(() => planConv({ problem: PROBLEM } as never)), plan);
});

test("operands that nothing reads are refused, wherever they are given", async (gpu) => {
  const bias = new Float32Array(4);
  const product = gemmProblem({ m: 1, n: 1, k: 2 });
  const matrices = { a: new Float32Array(2), b: new Float32Array(2) };
  const gradient = convProblem({ ...PROBLEM, op: "bwd-filter" });
  const output = new Float32Array(4 * 64);
  const convolved = await convolve(gpu, PROBLEM, OPERANDS);
  const multiplied = await multiply(gpu, product, matrices);
  const calls: [() => unknown, string][] = [
    [() => convolve(gpu, PROBLEM, { ...OPERANDS, slope: bias }), "slope"],
    [() => convolve(gpu, PROBLEM, { ...OPERANDS, bias }, { epilogue: { bias: false } }), "bias"],
    [() => convolve(gpu, gradient, { input: INPUT, output, slope: bias }), "slope"],
    [() => convolve(gpu, PROBLEM, { ...OPERANDS, filterZeroPoint: bias }), "filterZeroPoint"],
    [() => checkConvolution(convolved, { ...OPERANDS, bias }), "bias"],
    [() => verify(convolved.result, PROBLEM, { ...OPERANDS, slope: bias }), "slope"],
    [() => referenceConv(PROBLEM, { ...TENSORS, bias }), "bias"],
    [() => multiply(gpu, product, { ...matrices, c: bias }), "c"],
    [() => checkProduct(multiplied, { ...matrices, residual: bias }), "residual"],
    [() => referenceGemm(product, { ...matrices, bias }), "bias"],
  ];
  for (const [call, operand] of calls) {
    const message = new RegExp(`^TypeError: .*: nothing reads the operand ${operand}, only `);
    assert.match(await thrown(call), message, String(call));
  }
  const f16 = { outDtype: "f16" } as const;
  assert.match(await thrown(() => multiply(gpu, product, matrices, f16)), /the dtype is f32$/);
});

test("an epilogue is what is said of it", async (gpu) => {
  const bias = Float32Array.of(1, -1000, 2, 3);
  const operands = { ...OPERANDS, bias };
  const { result } = await convolve(gpu, PROBLEM, operands, { epilogue: { bias: true } });
  assert.deepEqual([result[0], result[64]], [17, -984]);
  // A bias that is given is added.
  const relu = await convolve(gpu, PROBLEM, operands, { epilogue: { activation: "relu" } });
  assert.deepEqual([relu.result[0], relu.result[64]], [17, 0]);
  assert.deepEqual(relu.epilogue, { bias: true, activation: "relu" });
  const tensors = { ...TENSORS, bias };
  const { values } = await referenceConv(PROBLEM, tensors, { epilogue: { bias: true } });
  assert.equal(values[64], -984);
  using layer = await prepareConvolution(gpu, PROBLEM, { epilogue: { bias: true } });
  assert.deepEqual(layer.tensors.bias?.shape, [4]);
});

test("operands may be changed as soon as convolve() and multiply() have returned their promises", async (gpu) => {
  const input = INPUT.slice();
  const convolved = convolve(gpu, PROBLEM, { ...OPERANDS, input });
  input.fill(7);
  assert.equal((await convolved).result[0], 16);

  const bytes = { input: new Int8Array(4 * 64).fill(1), filter: new Int8Array(4 * 36).fill(1) };
  const sums = convolve(gpu, PROBLEM, bytes, { dtype: "i8", layout: "nhwc" });
  bytes.input.fill(7);
  assert.equal((await sums).result[0], 16);

  const a = Float32Array.of(1, 2);
  const product = multiply(gpu, gemmProblem({ m: 1, n: 1, k: 2 }), { a, b: Float32Array.of(3, 4) });
  a.fill(9);
  assert.deepEqual([...(await product).result], [11]);
});
