/** Compensated sums on the driver at hand: infinity less infinity makes no NaN of them. */
import assert from "#assert";
import { planBiasGradient } from "../../src/algorithms/bias_gradient/plan.ts";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { compensationText } from "../../src/kernels/sums.ts";
import { multiply } from "../../src/multiply.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { gemmProblem } from "../../src/problem/gemm_problem.ts";
import { runPlan } from "../../src/run/executor.ts";
import { test } from "./driver.ts";
import { throughText } from "./through_text.ts";

test("sums of splits keep infinities, of a thread's and of many threads'", async (gpu) => {
  const [m, n, k] = [4, 8, 4096];
  const a = new Float32Array(m * k).fill(1);
  a[k + 5] = Infinity;
  a[2 * k + 4000] = -Infinity;
  const b = new Float32Array(k * n).fill(1);
  for (const splits of [4, 80]) {
    const choice = { schedule: { policy: "tiny", splits } };
    const { result, plan } = await multiply(gpu, gemmProblem({ m, n, k }), { a, b }, choice);
    const first = Array.from({ length: m }, (_, row) => result[row * n]!);
    assert.deepEqual(first, [k, Infinity, -Infinity, k], plan.kernel);
  }
});

test("nothing is lost of a sum that is not finite", async (gpu) => {
  // [sum, term, next] of each case, and what is lost: of the first a term that vanishes beside 2^25.
  const cases: [number, number, number, number][] = [
    [2 ** 25, 1, 2 ** 25, -1],
    [Infinity, 1, Infinity, 0],
    [-Infinity, 1, -Infinity, 0],
    [Infinity, -Infinity, NaN, 0],
  ];
  const code = `${compensationText("f32", 4)}
@group(0) @binding(0) var<storage, read> values: array<vec4f, 3>;
@group(0) @binding(1) var<storage, read_write> lost: vec4f;
@compute @workgroup_size(1) fn main() { lost = lost_of(values[0], values[1], values[2]); }`;
  const values = new Float32Array([0, 1, 2].flatMap((i) => cases.map((one) => one[i]!)));
  const results = new Float32Array(4);
  const lost = await throughText(gpu.device, code, values, { results, workgroups: 1 });
  assert.deepEqual([...lost], cases.map((one) => one[3]));
});

test("gradients of biases keep infinities", async (gpu) => {
  const problem = parseDescriptor("mb1ic1ih64oc3kh1");
  const output = new Float32Array(3 * 4096).fill(1);
  output[4096 + 7] = Infinity;
  output[2 * 4096 + 4000] = -Infinity;
  const { limits } = gpu;
  const plan = planBiasGradient({ problem, layout: "nchw", dtype: "f32", limits, device: H200 });
  const sums = { role: "bias", dtype: "f32", shape: [3] } as const;
  const { result } = await runPlan(gpu, plan, { output }, sums, 1);
  assert.deepEqual([...result], [4096, Infinity, -Infinity], plan.kernel);
});
