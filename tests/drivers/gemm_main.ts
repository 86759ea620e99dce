/**
 * The matrix of products as a program, for machines without the sources:
 *   deno bundle tests/drivers/gemm_main.ts -o .gpu/gemm_matrix.js; deno run -A .gpu/gemm_matrix.js [SHARE] [REGEX]
 * Every transpose, arithmetic and policy with every SHAREth epilogue (3; 1 for all of them), then variants
 * of the main loop, packed operands and odd sizes with baked sizes. Ends with `N passed, N failed`.
 */
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { TUNED_VARIANT, VARIANT_TRAITS } from "../../src/kernels/variant.ts";
import { TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import {
  ARITHMETIC,
  epiloguesOf,
  FEATURES,
  gemmMatrix,
  type MatrixCase,
  multiply,
  policiesOf,
} from "../gemm_matrix.ts";

const share = Number(Deno.args[0] ?? 3);
const only = new RegExp(Deno.args[1] ?? "");
using gpu = await openDevice({ optionalFeatures: FEATURES });
console.log(gpu.info.adapter);
const arithmetics = ARITHMETIC.filter(({ feature, dtype }) => {
  if (feature === undefined || gpu.features.has(feature)) return true;
  console.log(`${dtype}: skipped, the device has no ${feature}`);
  return false;
});
let passed = 0;
let failed = 0;

async function run(label: string, cases: Iterable<MatrixCase>) {
  if (!only.test(label)) return;
  const start = performance.now();
  let count = 0;
  let worst = 0;
  for (const { problem, choice } of cases) {
    const { plan, checked } = await multiply(gpu, problem, choice);
    count++;
    worst = Math.max(worst, checked?.accuracy.max_bound_ratio ?? 0);
    if (checked === undefined || checked.verdict === "pass") {
      passed++;
      continue;
    }
    failed++;
    console.log(`FAILED ${JSON.stringify(problem)} with ${plan.kernel}: ${checked.message}`);
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${label}: ${count} products, worst bound ratio ${worst.toFixed(2)}, ${seconds} s`);
}

for (const arithmetic of arithmetics) {
  const { dtype, accumulate, schedule } = arithmetic;
  const name = `${dtype}${accumulate ? ` summed in ${accumulate}` : ""}${schedule ? " tiles" : ""}`;
  const all = epiloguesOf(dtype).at(-1)!;
  for (const policy of policiesOf(gpu)) {
    await run(`${name} ${policy}`, gemmMatrix(arithmetic, policy, share));
  }
  const sizes = [[1, 70, 65], [70, 1, 65], [1, 1, 100], [34, 33, 1], [5, 6, 0], [0, 3, 4]] as const;
  const { feature: _, ...choice } = arithmetic;
  await run(
    `${name} odd sizes`,
    TRANSPOSES.flatMap((transpose) =>
      sizes.map(([m, n, k]) => ({
        problem: { m, n, k, transpose, batch: 2, ...all },
        choice: { ...choice, sizes: "constant" as const },
      }))
    ),
  );
  const vectors = [[1, 68, 132], [70, 1, 133], [2, 65, 40], [72, 3, 61], [33, 16, 20]] as const;
  if (accumulate === undefined && schedule === undefined) {
    await run(
      `${name} times vectors`,
      TRANSPOSES.flatMap((transpose) =>
        vectors.flatMap(([m, n, k]) =>
          [undefined, 3].map((splits) => ({
            problem: { m, n, k, transpose, batch: 2, ...all },
            choice: { ...choice, schedule: { policy: "gemv", splits } },
          }))
        )
      ),
    );
  }
  await run(
    `${name} large and packed`,
    TRANSPOSES.map((transpose) => ({
      problem: { m: 1030, n: 1031, k: 1029, transpose, ...all },
      choice: {
        ...choice,
        schedule: { ...schedule, policy: undefined, splits: undefined },
        sizes: "constant" as const,
      },
    })),
  );
  await run(
    `${name} stream-K`,
    TRANSPOSES.flatMap((transpose) =>
      ([[165, 167, 37, 1], [132, 168, 80, 1], [70, 44, 65, 5]] as const).map((
        [m, n, k, batch],
      ) => ({
        problem: { m, n, k, batch, transpose, ...all },
        choice: {
          ...choice,
          schedule: { ...schedule, balance: "stream-k" as const, splits: undefined },
          // Two multiprocessors: whole waves are few tiles.
          device: softwareDevice(4),
        },
      }))
    ),
  );
  await run(
    `${name} variants`,
    Object.values(VARIANT_TRAITS).flatMap((key) =>
      [[70, 41, 129], [68, 44, 112]].map(([m = 0, n = 0, k = 0]) => ({
        problem: { m, n, k },
        choice: { ...choice, schedule: { ...schedule, [key]: !TUNED_VARIANT[key] } },
      }))
    ),
  );
}
console.log(`${passed} passed, ${failed} failed`);
if (failed > 0) Deno.exitCode = 1;
