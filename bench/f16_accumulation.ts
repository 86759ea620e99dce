/**
 * Errors of f16 products summed in f32 and in f16 chains, on the GPU at hand and simulated for other lengths of chains:
 *   deno run -A bench/f16_accumulation.ts [DEPTHS]
 * DEPTHS like 576,4608. Errors are those of the stored f16 results; u = 2^-11.
 */
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { computeReference } from "../src/run/check.ts";
import { gemmSubject } from "../src/run/gemm_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { runPlan } from "../src/run/run_plan.ts";
import { openDevice } from "../src/gpu/device.ts";
import { F16_CHAIN } from "../src/kernels/loop/accumulate.ts";
import { gemmProblem } from "../src/problem/gemm_problem.ts";
import type { ReferenceResult } from "../src/reference/reference.ts";

const depths = (Deno.args[0] ?? "32,576,4608").split(",").map(Number);
const u = 2 ** -11;
using gpu = await openDevice({ optionalFeatures: ["shader-f16"] });
const onGpu = gpu.features.has("shader-f16");
console.log(`${gpu.info.adapter}${onGpu ? "" : ", without shader-f16: simulated only"}`);
console.log("| depth | data | sums | largest error | / (u·Σ|ab|) | relative L2 / u |");
console.log("| ----: | ---- | ---- | ------------: | ----------: | --------------: |");

/** Sums of f16 products in chains of f16 that are added to f32, stored in f16; 0 for f32 alone. */
function simulate(a: Float16Array, b: Float16Array, [m, n, k]: number[], chain: number) {
  const result = new Float16Array(m! * n!);
  for (let i = 0; i < m!; i++) {
    for (let j = 0; j < n!; j++) {
      let sum = 0;
      for (let first = 0; first < k!;) {
        const end = Math.min(k!, first + (chain || 1));
        let part = 0;
        // A product of two f16 is exact in double, so this is a fused multiply-add but for double rounding.
        for (let l = first; l < end; l++) {
          const next = part + a[i * k! + l]! * b[l * n! + j]!;
          part = chain === 0 ? next : Math.f16round(next);
        }
        sum = Math.fround(sum + part);
        first = end;
      }
      result[i * n! + j] = sum;
    }
  }
  return result;
}

function report(
  label: string,
  fill: string,
  k: number,
  result: Float16Array,
  reference: ReferenceResult,
) {
  let largest = 0, bound = 0, errors = 0, squares = 0;
  result.forEach((value, i) => {
    const error = Math.abs(value - reference.values[i]!);
    largest = Math.max(largest, error);
    bound = Math.max(bound, error / (u * reference.magnitudes[i]!));
    errors += error ** 2;
    squares += reference.values[i]! ** 2;
  });
  const l2 = Math.sqrt(errors / squares) / u;
  console.log(
    `| ${k} | ${fill} | ${label} | ${largest.toPrecision(3)} | ${bound.toFixed(2)} | ${
      l2.toFixed(2)
    } |`,
  );
}

for (const k of depths) {
  for (const fill of ["uniform01", "uniform11"] as const) {
    const problem = gemmProblem({ m: 64, n: 64, k });
    const subject = gemmSubject(problem, { dtype: "f16" });
    const operands = fillOperands(subject, fill, 5);
    const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
    for (const accumulate of onGpu ? ["f32", "f16"] as const : []) {
      const plan = planGemm({ problem, dtype: "f16", accumulate, splits: 1, limits: gpu.limits });
      const { result } = await runPlan(gpu, plan, operands, subject.result, 2);
      const label = `${accumulate}${accumulate === "f16" ? `, chains of ${F16_CHAIN}` : ""}, GPU`;
      report(label, fill, k, result as Float16Array, reference);
    }
    const { a, b } = operands as { a: Float16Array; b: Float16Array };
    for (const chain of new Set([0, 8, 16, 32, 64, 128, k])) {
      if (chain > k) continue;
      const result = simulate(a, b, [64, 64, k], chain);
      report(chain === 0 ? "f32" : `f16, chains of ${chain}`, fill, k, result, reference);
    }
  }
}
