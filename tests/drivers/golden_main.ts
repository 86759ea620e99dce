/**
 * The golden matrix as a program, for machines without the sources:
 *   deno bundle tests/drivers/golden_main.ts -o .gpu/golden.js; deno run -A .gpu/golden.js [REGEX]
 * What REGEX matches of every algorithm, operation and layout, and every policy with baked sizes. Ends with `N passed, N failed`.
 */
import { omegaName, OMEGAS } from "../../src/algorithms/winrs/omega.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { TILE_POLICIES } from "../../src/kernels/policy.ts";
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { loadGoldenCases } from "../golden.ts";
import { type GoldenRun, runGolden } from "../golden_conv.ts";
import { checkWinrs, filterSizes, SMALLEST, type WinrsRun } from "../winrs_conv.ts";

const only = new RegExp(Deno.args[0] ?? "");
using gpu = await openDevice();
console.log(gpu.info.adapter);
const cases = loadGoldenCases();
const few = cases.slice(0, 14);
let passed = 0;
let failed = 0;

async function run(runs: readonly GoldenRun[], chosen: typeof cases) {
  for (const run of runs) {
    const { op, algorithm, layout, policy, sizes, tile } = run;
    const words = [op, algorithm, layout, policy, sizes, tile].filter((word) => word !== undefined);
    const label = words.join(" ");
    if (!only.test(label)) continue;
    let worst = 0;
    for (const golden of chosen) {
      const { verdict, message, kernel, accuracy } = await runGolden(gpu, golden, run);
      worst = Math.max(worst, accuracy.max_bound_ratio ?? 0);
      if (verdict === "pass") {
        passed++;
        continue;
      }
      failed++;
      console.log(`FAILED ${golden.name} with ${kernel}: ${message}`);
    }
    console.log(`${label}: ${chosen.length} cases, worst bound ratio ${worst.toFixed(2)}`);
  }
}

const algorithms = ["direct", "implicit-gemm"] as const;
await run(
  algorithms.flatMap((algorithm) =>
    OPERATIONS.flatMap((op) => LAYOUTS.map((layout): GoldenRun => ({ op, algorithm, layout })))
  ),
  cases,
);
await run(
  TILE_POLICIES.flatMap(({ name }) =>
    OPERATIONS.flatMap((op) =>
      LAYOUTS.map((layout): GoldenRun => ({
        op,
        algorithm: "implicit-gemm",
        layout,
        policy: name,
        sizes: "constant",
      }))
    )
  ),
  few,
);
await run(
  (["uniform", "constant"] as const).flatMap((sizes) =>
    LAYOUTS.flatMap((layout): GoldenRun[] => [
      { op: "fwd", algorithm: "im2col", layout, sizes },
      { op: "fwd", algorithm: "im2win", layout, sizes },
      { op: "fwd", algorithm: "im2win-fused", layout, sizes },
    ])
  ),
  cases,
);
const stepwise = cases.filter(({ problems: { fwd: { stride, dilation } } }) =>
  [...stride, ...dilation].every((value) => value === 1)
);
await run(
  (["uniform", "constant"] as const).flatMap((sizes) =>
    OPERATIONS.flatMap((op) =>
      LAYOUTS.map((layout): GoldenRun => ({ op, algorithm: "winograd2d-nonfused", layout, sizes }))
    )
  ),
  stepwise,
);
const fused = (["winograd1d", "winograd2d"] as const).flatMap((algorithm) =>
  (["fwd", "bwd-data"] as const).flatMap((op) =>
    LAYOUTS.map((layout): GoldenRun => ({ op, algorithm, layout }))
  )
);
await run(
  fused.flatMap((one) => (["uniform", "constant"] as const).map((sizes) => ({ ...one, sizes }))),
  stepwise,
);
const square = stepwise.filter(({ problems: { fwd } }) =>
  fwd.filterSize.every((size) => size === 3)
);
const TILES = {
  winograd1d: ["F(2,3)", "F(4,3)", "F(14,3)", "F(3,2)"],
  winograd2d: ["F(4x4,3x3)", "F(6x6,3x3)", "F(4x2,3x3)"],
};
await run(
  fused.flatMap((one) =>
    TILES[one.algorithm as keyof typeof TILES].flatMap((tile) => [
      { ...one, tile },
      { ...one, tile, flush: 8, policy: "16x8x2_4x4" },
    ])
  ),
  square,
);
await run(
  (["uniform", "constant"] as const).flatMap((sizes) =>
    LAYOUTS.map((layout): GoldenRun => ({ op: "bwd-filter", algorithm: "winrs", layout, sizes }))
  ),
  cases,
);

/** WinRS against FP64: every filter, then every kernel with the policy that the device gets by default. */
async function runWinrsMatrix(label: string, runs: readonly WinrsRun[]) {
  if (!only.test(`winrs, ${label}`)) return;
  for (const run of runs) {
    try {
      await checkWinrs(gpu, run);
      passed++;
    } catch (error) {
      failed++;
      console.log(`FAILED ${error instanceof Error ? error.message : error}`);
    }
  }
  console.log(`winrs, ${label}: ${runs.length} runs`);
}
await runWinrsMatrix(
  "every filter",
  LAYOUTS.flatMap((layout) =>
    filterSizes().map((filter) => ({ filter, layout, schedule: { policy: SMALLEST } }))
  ),
);
await runWinrsMatrix(
  "every kernel",
  LAYOUTS.flatMap((layout) =>
    OMEGAS.map((omega) => {
      const filter = [omega.rows?.n ?? 2, Math.max(2, omega.n)] as const;
      return { filter, layout, pair: omegaName(omega), schedule: { splits: 3 } };
    })
  ),
);
console.log(`${passed} passed, ${failed} failed`);
if (failed > 0) Deno.exitCode = 1;
