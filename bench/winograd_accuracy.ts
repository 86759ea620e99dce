/**
 * Errors of fused and non-fused Winograd on the GPU at hand, with sums whole and in parts, beside direct's:
 *   deno run -A bench/winograd_accuracy.ts [CHANNELS] [TILES]
 * Comma lists. A square filter of the tile's length, one image of 14 x 14 places, 16 output channels. MARE is of
 * uniform01 data; relative L2 and the bound ratio are of normal data. Ends with exit code 1 where what is planned
 * misses the target: MARE 4e-7 for r ≤ 3, 6e-7 for other α ≤ 8, 2e-6 for α = 16.
 */
import { planConv } from "../src/algorithms/planner.ts";
import type { AlgorithmName } from "../src/algorithms/names.ts";
import { checkAgainst, computeReference, type Reference } from "../src/run/check.ts";
import { convResult, convSubject } from "../src/run/conv_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { runPlan } from "../src/run/run_plan.ts";
import { openDevice } from "../src/gpu/device.ts";
import { type ConvProblem, convProblem } from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { parseTile } from "../src/winograd/tile.ts";

const TILES =
  "F(2,3) F(4,3) F(6,3) F(14,3) F(7,2) F(5,4) F(4,5) F(12,5) F(3,6) F(2,7) F(10,7) F(9,8) F(8,9) " +
  "F(2x2,3x3) F(4x4,3x3) F(6x6,3x3) F(2x2,5x5) F(4x4,5x5)";
const [channelList = "64,256,512", tiles = TILES] = Deno.args;
const FILLS = ["uniform01", "normal"] as const;
const LAYOUT = { layout: "nchw", filterLayout: "kcrs" } as const;
type Fill = typeof FILLS[number];
interface Errors {
  readonly mare: number;
  readonly l2: number;
  readonly bound: number;
}

const references = new Map<string, Promise<Reference>>();
using gpu = await openDevice();
console.log(gpu.info.adapter);
console.log(
  "| tile | algorithm | C | MARE | flushed | direct | rel. L2 | flushed | direct | bound | flushed | direct |",
);
console.log(`|${" --- |".repeat(12)}`);
for (const tile of tiles.match(/F\([^)]*\)/g) ?? []) {
  const { n, r } = parseTile(tile);
  const one = n.length === 1;
  const algorithms: AlgorithmName[] = one ? ["winograd1d"] : ["winograd2d", "winograd2d-nonfused"];
  for (const algorithm of algorithms) {
    for (const channels of channelList.split(",").map(Number)) {
      const problem = convProblem({
        batch: 1,
        inChannels: channels,
        outChannels: 16,
        inputSize: [14, 14],
        filterSize: [r[0]!, r[0]!],
        paddingBegin: [r[0]! >> 1, r[0]! >> 1],
      });
      const fused = algorithm !== "winograd2d-nonfused";
      const plain = await errors(problem, algorithm, {
        tile,
        ...(fused ? { flush: 0 } : { splits: 1 }),
      });
      const flushed = await errors(problem, algorithm, { tile, ...(fused ? { flush: 128 } : {}) });
      const direct = await errors(problem, "direct", {});
      const alpha = n[0]! + r[0]! - 1;
      const target = alpha > 8 ? 2e-6 : r[0]! <= 3 ? 4e-7 : 6e-7;
      const planned = fused ? await errors(problem, algorithm, { tile }) : flushed;
      if (planned.uniform01.mare > target) {
        Deno.exitCode = 1;
        console.log(`MARE ${planned.uniform01.mare.toExponential(2)}, planned, exceeds ${target}`);
      }
      const columns = [
        ...[plain, flushed, direct].map(({ uniform01 }) => uniform01.mare.toExponential(1)),
        ...[plain, flushed, direct].map(({ normal }) => normal.l2.toExponential(1)),
        ...[plain, flushed, direct].map(({ normal }) => normal.bound.toFixed(1)),
      ];
      console.log(`| ${[tile, algorithm, channels, ...columns].join(" | ")} |`);
    }
  }
}

async function errors(
  problem: ConvProblem,
  algorithm: AlgorithmName,
  more: { tile?: string; flush?: number; splits?: number },
): Promise<Record<Fill, Errors>> {
  const plan = planConv({
    ...LAYOUT,
    problem,
    dtype: "f32",
    epilogue: NO_EPILOGUE,
    algorithm,
    ...(algorithm === "winograd2d-nonfused" ? { policy: "tiny" } : {}),
    ...(algorithm === "winograd1d" || algorithm === "winograd2d" ? { policy: "8x8x4_4x4" } : {}),
    ...more,
    limits: gpu.limits,
    sizes: "uniform",
  });
  const found: Partial<Record<Fill, Errors>> = {};
  for (const fill of FILLS) {
    const operands = operandsOf(problem, fill);
    const { result } = await runPlan(gpu, plan, operands, convResult(problem), 2);
    const reference = await referenceOf(problem, fill);
    const { accuracy } = checkAgainst(reference, result, plan.arithmetic);
    found[fill] = {
      mare: accuracy.mare ?? NaN,
      l2: accuracy.rel_l2 ?? NaN,
      bound: accuracy.max_bound_ratio ?? NaN,
    };
  }
  return found as Record<Fill, Errors>;
}

function operandsOf(problem: ConvProblem, fill: Fill) {
  return fillOperands(convSubject({ problem, ...LAYOUT }), fill, 3);
}

function referenceOf(problem: ConvProblem, fill: Fill): Promise<Reference> {
  const key = `${problem.inChannels} ${problem.filterSize} ${fill}`;
  const known = references.get(key);
  if (known !== undefined) return known;
  const made = computeReference({
    subject: convSubject({ problem, ...LAYOUT }),
    operands: operandsOf(problem, fill),
    mode: "full",
    seed: 1,
  });
  references.set(key, made);
  return made;
}
