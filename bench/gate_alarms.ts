/**
 * False alarms of the gate, and how wide it is: healthy results in simulated arithmetic, judged as a check judges them.
 *
 *   deno run -A bench/gate_alarms.ts [checks a cell] [pattern]
 *
 * A cell is a way to sum, an operation and a kind of data. Its checks differ in data (one yardstick each), and on the same
 * data in the order of sums and in whether products are rounded. Printed: alarms;
 * the share of checks in which something was looked at more closely; the largest share of a limit that any figure took; the
 * probability of an alarm by an exponential tail fitted to the largest hundredth of the logarithms of these shares.
 */
import {
  convProblem,
  operandTensors,
  type Operation,
  OPERATIONS,
} from "../src/problem/conv_problem.ts";
import type { PlanArithmetic } from "../src/problem/plan_arithmetic.ts";
import { randomStream } from "../src/reference/sample.ts";
import { markdownTable } from "../src/report/table.ts";
import {
  darken,
  healthyResult,
  judgeCase,
  simulatedCase,
} from "../tests/support/simulated_cases.ts";
import type { FillKind } from "../src/tensor/fill.ts";

/**
 * Kinds of data: those of `--fill`, constants of every mantissa, flat pictures under random filters, and dark ones under
 * filters whose taps are mostly 0.
 */
const KINDS: Readonly<Record<string, { fill: FillKind; scaled: number; dark?: boolean }>> = {
  uniform01: { fill: "uniform01", scaled: 0 },
  normal: { fill: "normal", scaled: 0 },
  constant: { fill: "constant", scaled: 2 },
  outliers: { fill: "outliers", scaled: 0 },
  mixed: { fill: "mixed", scaled: 0 },
  flat: { fill: "normal", scaled: 1 },
  dark: { fill: "normal", scaled: 0, dark: true },
};
/** Checks on one data. */
const VARIANTS = 10;

interface Way {
  readonly name: string;
  readonly arithmetic: PlanArithmetic;
  readonly operations: readonly Operation[];
  readonly filter: number;
}

function tiled(n: number, r: number, axes: 1 | 2, more: PlanArithmetic = {}): PlanArithmetic {
  const tile = { n, r };
  return { ...more, tiles: [{ axes: axes === 1 ? [{ n: 1, r: 1 }, tile] : [tile, tile] }] };
}

function winrs(n: number, r: number): PlanArithmetic {
  return tiled(n, r, 1, { fold: "results", chain: 12, segment: 24 });
}

const HALVES = { unit: 16, math: "f16x3", chain: 128, highs: "away", drift: 3 } as const;
const FORWARD = ["fwd", "bwd-data"] as const;
const WAYS: readonly Way[] = [
  { name: "sums", arithmetic: {}, operations: OPERATIONS, filter: 3 },
  { name: "split", arithmetic: { chain: 16, segment: 16 }, operations: OPERATIONS, filter: 3 },
  { name: "flushed", arithmetic: { chain: 16 }, operations: OPERATIONS, filter: 3 },
  ...[[2, 3], [4, 3], [6, 3], [2, 5], [4, 5], [7, 2]].map(([n, r]) => ({
    name: `F(${n}x${n},${r}x${r})`,
    arithmetic: tiled(n!, r!, 2),
    operations: FORWARD,
    filter: r!,
  })),
  ...[[2, 3], [6, 3], [4, 5], [2, 7], [14, 3]].map(([n, r]) => ({
    name: `F(${n},${r})`,
    arithmetic: tiled(n!, r!, 1),
    operations: FORWARD,
    filter: r!,
  })),
  ...[[3, 4], [3, 2], [5, 4]].map(([n, r]) => ({
    name: `F(${n}x${n},${r}x${r})`,
    arithmetic: tiled(n!, r!, 2),
    operations: ["bwd-filter"] as const,
    filter: n!,
  })),
  ...[[2, 3], [4, 3], [6, 3]].map(([n, r]) => ({
    name: `F(${n}x${n},${r}x${r}) in halves`,
    arithmetic: tiled(n!, r!, 2, { ...HALVES, scaled: "tiles" }),
    operations: FORWARD,
    filter: r!,
  })),
  {
    name: "F(3x3,4x4) in halves",
    arithmetic: tiled(3, 4, 2, HALVES),
    operations: ["bwd-filter"],
    filter: 3,
  },
  ...[[3, 2], [3, 6], [5, 4], [7, 2], [9, 8], [7, 10]].map(([n, r]) => ({
    name: `WinRS (${n},${r})`,
    arithmetic: winrs(n!, r!),
    operations: ["bwd-filter"] as const,
    filter: n!,
  })),
];

interface Cell {
  readonly checks: number;
  readonly alarms: number;
  readonly closer: number;
  readonly shares: Float64Array;
}

function runCell(way: Way, op: Operation, kind: string, checks: number): Cell {
  const { fill, scaled, dark = false } = KINDS[kind]!;
  const shares: number[] = [];
  let alarms = 0, closer = 0;
  for (let seed = 1; shares.length < checks; seed++) {
    const random = randomStream(seed);
    const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
    const size = way.filter + between(3, 6);
    const problem = convProblem({
      op,
      batch: between(1, 2),
      inChannels: between(1, 6),
      outChannels: between(1, 6),
      inputSize: [Math.max(way.filter, size - 2), size],
      filterSize: [way.filter, way.filter],
      paddingBegin: [way.filter >> 1, way.filter >> 1],
    });
    const given = simulatedCase(problem, way.arithmetic, fill, seed);
    const constant = Math.fround(0.5 + random());
    operandTensors(op).slice(0, scaled).forEach((which) => {
      (given.request.inputs[which]!.data as Float32Array).fill(constant);
    });
    // What is bright must be used: where transforms alone meet it, nothing of the result would be right.
    if (dark) darken(given, between(1, size - way.filter));
    for (let variant = 0; variant < VARIANTS && shares.length < checks; variant++) {
      const { result, reference } = healthyResult(given, {
        separate: random() < 0.5,
        start: Math.floor(random() * 1000),
      });
      const judged = judgeCase(given, result, reference, { closerFrom: 0.5 });
      shares.push(judged.of_limit);
      if (judged.verdict === "fail") {
        alarms++;
        console.log(
          `  alarm: ${way.name} ${op} ${kind} seed ${seed}: ${judged.reasons.join("; ")}`,
        );
      }
      const { max_bound_ratio: bound } = judged.measured.report;
      const usual = bound > 7 * judged.bound_typical || judged.group_rms > judged.group_rms_limit;
      if (usual || judged.measured.relL2 > judged.rel_l2_typical * 2.5) closer++;
    }
  }
  return { checks: shares.length, alarms, closer, shares: Float64Array.from(shares).sort() };
}

/** P(share > 1) by an exponential tail of logarithms above the 99th percentile. */
function tail(shares: Float64Array): number {
  const from = Math.floor(0.99 * shares.length);
  const threshold = shares[from]!;
  if (threshold === 0) return 0;
  const above = shares.subarray(from).map((share) => Math.log(share / threshold));
  const mean = above.reduce((sum, value) => sum + value, 0) / above.length;
  return mean === 0 ? 0 : 0.01 * Math.exp(Math.log(threshold) / mean);
}

const checks = Number(Deno.args[0] ?? 5000);
const pattern = new RegExp(Deno.args[1] ?? "");
const rows: string[][] = [];
let [all, alarms, worst] = [0, 0, 0];
const started = performance.now();
for (const way of WAYS) {
  for (const op of way.operations) {
    for (const kind of Object.keys(KINDS)) {
      if (!pattern.test(`${way.name} ${op} ${kind}`)) continue;
      const cell = runCell(way, op, kind, checks);
      const chance = tail(cell.shares);
      all += cell.checks;
      alarms += cell.alarms;
      worst = Math.max(worst, chance);
      rows.push([
        way.name,
        op,
        kind,
        `${cell.checks}`,
        `${cell.alarms}`,
        `${(100 * cell.closer / cell.checks).toFixed(2)} %`,
        cell.shares[cell.shares.length >> 1]!.toFixed(2),
        cell.shares.at(-1)!.toFixed(2),
        chance.toExponential(0),
      ]);
    }
  }
}
const right = "right" as const;
console.log(markdownTable([
  { title: "sums" },
  { title: "op" },
  { title: "data" },
  { title: "checks", align: right },
  { title: "alarms", align: right },
  { title: "looked closer", align: right },
  { title: "median of limit", align: right },
  { title: "most", align: right },
  { title: "fitted", align: right },
], rows));
console.log(
  `${all} checks, ${alarms} alarms, largest fitted probability ${worst.toExponential(1)}, ` +
    `${((performance.now() - started) / 1000).toFixed(0)} s`,
);
if (alarms > 0) Deno.exit(1);
