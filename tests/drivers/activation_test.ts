/** Activations of NaN, infinities and large values on the driver at hand: NaN stays NaN, and limits are what they are. */
import assert from "#assert";
import { convolve, type ConvolveOptions } from "../../src/convolve.ts";
import type { Scalar } from "../../src/elements/scalar.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { activationFunctions } from "../../src/kernels/epilogue.ts";
import { multiply, type MultiplyOptions } from "../../src/multiply.ts";
import { convProblem } from "../../src/problem/conv_problem.ts";
import {
  type Activation,
  activationOperand,
  ACTIVATIONS,
  activationWgsl,
} from "../../src/problem/activations.ts";
import type { Epilogue } from "../../src/problem/epilogue.ts";
import { gemmProblem } from "../../src/problem/gemm_problem.ts";
import { activate } from "../../src/problem/activations.ts";
import { testsOn } from "./driver.ts";
import { throughText } from "./through_text.ts";

const test = testsOn({ optionalFeatures: ["shader-f16", "shader-f64"] });

/** Sixteen values; those of f16 fit it. */
const VALUES = [
  NaN,
  -NaN,
  Infinity,
  -Infinity,
  ...[6e4, -6e4, 300, -300, 90, -90, 15, -15, 1, -1, 0, -0.125],
];

/** What an activation reads of a channel. */
const OPERAND = 0.25;

/** The values through the text of an activation alone, one at a time and four at once. */
async function throughActivation(
  { device }: GpuDevice,
  activation: Exclude<Activation, "none">,
  scalar: Scalar,
): Promise<Float32Array | Float64Array> {
  const operand = activationOperand(activation) === undefined ? "" : `, ${OPERAND}`;
  const operand4 = operand === "" ? "" : `, vec4(${OPERAND})`;
  const code = `
${activationFunctions(activation, scalar).text}
@group(0) @binding(0) var<storage, read> values: array<${scalar}>;
@group(0) @binding(1) var<storage, read_write> results: array<${scalar}>;
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = 4u * id.x;
  let four = activate4(vec4(values[i], values[i + 1u], values[i + 2u], values[i + 3u])${operand4});
  for (var j = 0u; j < 4u; j++) {
    results[i + j] = activate(values[i + j]${operand});
    results[${VALUES.length}u + i + j] = four[j];
  }
}`;
  const numbers = scalar === "f64" ? Float64Array : Float32Array;
  return await throughText(device, code, new numbers(VALUES), {
    results: new numbers(2 * VALUES.length),
    workgroups: VALUES.length / 4,
  });
}

function assertActivated(
  got: ArrayLike<number>,
  activation: Epilogue["activation"],
  what: string,
  unit: number,
  values: readonly number[] = VALUES,
) {
  values.forEach((value, i) => {
    const [is, should] = [got[i]!, activate(activation, value, OPERAND)];
    const right = Number.isFinite(should)
      ? Math.abs(is - should) <= unit * Math.max(Math.abs(should), 2 ** -14)
      : Object.is(is, should);
    assert.ok(right, `${what}: ${activation} of ${value} is ${is}, expected ${should}`);
  });
}

test("every activation keeps NaN and takes infinities to its limits", async (gpu) => {
  for (const activation of ACTIVATIONS) {
    if (activation === "none") continue;
    for (const scalar of ["f32", "f64"] as const) {
      if (activationWgsl(activation, scalar) === undefined) continue;
      if (scalar === "f64" && !gpu.features.has("shader-f64")) continue;
      const got = await throughActivation(gpu, activation, scalar);
      assertActivated(got, activation, scalar, 1e-5);
      assertActivated(got.slice(VALUES.length), activation, `four ${scalar}`, 1e-5);
    }
  }
});

test("convolutions of every kind keep a bias of NaN and infinities under relu", async (gpu) => {
  const problem = convProblem({
    batch: 1,
    inChannels: 4,
    outChannels: VALUES.length,
    inputSize: [4, 4],
    filterSize: [3, 3],
    padding: "same",
  });
  const choices: ConvolveOptions[] = [
    { algorithm: "direct" },
    { algorithm: "implicit-gemm" },
    { algorithm: "winograd2d" },
    { algorithm: "winograd2d-nonfused" },
    { algorithm: "direct", layout: "nhwc" },
    { algorithm: "implicit-gemm", dtype: "f16" },
  ];
  for (const choice of choices) {
    const { dtype = "f32", algorithm, layout } = choice;
    if (dtype === "f16" && !gpu.features.has("shader-f16")) continue;
    const numbers = dtype === "f16" ? Float16Array : Float32Array;
    const operands = {
      input: new numbers(4 * 16),
      filter: new numbers(VALUES.length * 4 * 9),
      bias: new numbers(VALUES),
    };
    const epilogue = { bias: true, activation: "relu" } as const;
    const { result } = await convolve(gpu, problem, operands, { ...choice, epilogue });
    const first = VALUES.map((_, channel) => result[layout === "nhwc" ? channel : 16 * channel]!);
    assertActivated(first, "relu", `${algorithm} ${dtype}`, dtype === "f16" ? 1e-3 : 1e-6);
  }
});

test("products of every kind keep NaN under relu", async (gpu) => {
  const values = VALUES.map((value) => Math.abs(value) === Infinity ? 2 : value);
  const [m, n, k] = [VALUES.length, 4, 64];
  const a = new Float32Array(m * k);
  values.forEach((value, row) => a[row * k] = value);
  const b = new Float32Array(k * n).fill(1);
  const problem = gemmProblem({ m, n, k, activation: "relu" });
  const choices: MultiplyOptions[] = [{ schedule: { policy: "gemv" } }, {
    schedule: { policy: "tiny" },
  }, { schedule: { policy: "tiny", splits: 2 } }];
  for (const choice of choices) {
    const { result, plan } = await multiply(gpu, problem, { a, b }, choice);
    const first = values.map((_, row) => result[row * n]!);
    assertActivated(first, "relu", plan.kernel, 1e-6, values);
  }
});

test("with alpha 0 neither A nor B is read", async (gpu) => {
  const [m, n, k] = [4, 4, 8];
  const [a, b] = [m * k, k * n].map((count) => new Float32Array(count).fill(NaN));
  const own = Float32Array.from({ length: m * n }, (_, i) => i);
  const none = gemmProblem({ m, n, k, alpha: 0, beta: 2 });
  const { result, plan } = await multiply(gpu, none, { a: a!, b: b!, c: own });
  assert.deepEqual([...result], [...own].map((value) => 2 * value));
  assert.equal(plan.multiplications, 0);
});
