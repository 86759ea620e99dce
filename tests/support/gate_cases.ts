/** What the gate is held against: ways to sum, healthy results of them, and faults that it must find. */
import assert from "#assert";
import { typicalRms } from "../../src/accuracy/mod.ts";
import { convProblem, type Operation, OPERATIONS } from "../../src/problem/conv_problem.ts";
import type { PlanArithmetic } from "../../src/problem/plan_arithmetic.ts";
import type { FillKind } from "../../src/tensor/fill.ts";
import { referenceConv } from "../../src/reference/reference.ts";
import { healthyResult, judgeCase, type SimulatedCase, simulatedCase } from "./simulated_cases.ts";

export const FILLS: readonly FillKind[] = ["uniform01", "normal", "constant", "outliers", "mixed"];

export function tile(n: number, r: number, axes: 1 | 2): PlanArithmetic {
  const whole = { n: 1, r: 1 };
  return { tiles: [{ axes: axes === 1 ? [whole, { n, r }] : [{ n, r }, { n, r }] }] };
}

/** Ways to sum, and the operations that have them. */
export const ARITHMETICS: readonly (readonly [
  string,
  PlanArithmetic,
  readonly Operation[],
  (readonly FillKind[])?,
])[] = [
  ["one chain", {}, OPERATIONS],
  ["split depth", { chain: 40, segment: 40 }, OPERATIONS],
  ["flushed", { chain: 32 }, OPERATIONS],
  // Units cut off by the largest of 16 products, so that beside outliers four times the usual error is nothing unusual.
  ["matrix units", { unit: 16, chain: 32 }, ["fwd"], FILLS.filter((fill) => fill !== "outliers")],
  ["F(4x4,3x3)", tile(4, 3, 2), ["fwd", "bwd-data"]],
  ["F(6x6,3x3)", tile(6, 3, 2), ["fwd", "bwd-data"]],
  ["F(6,3)", tile(6, 3, 1), ["fwd", "bwd-data"]],
  ["F(3x3,4x4)", tile(3, 4, 2), ["bwd-filter"]],
  ["F(3x3,7x7)", tile(3, 7, 2), ["bwd-filter"]],
  ["F(4x4,3x3) in halves", {
    ...tile(4, 3, 2),
    unit: 16,
    math: "f16x3",
    chain: 32,
    scaled: "tiles",
    ...{ highs: "away", drift: 1 },
  }, ["fwd", "bwd-data"]],
  ["F(3x3,4x4) in halves", { ...tile(3, 4, 2), unit: 8, math: "f16x3", chain: 32 }, ["bwd-filter"]],
  ["WinRS, a pair", {
    fold: "results",
    chain: 24,
    segment: 48,
    tiles: [
      { axes: [{ n: 1, r: 1 }, { n: 3, r: 6 }], columns: { axis: 1, first: 0, count: 6 } },
      { axes: [{ n: 1, r: 1 }, { n: 1, r: 2 }], columns: { axis: 1, first: 6, count: 6 } },
    ],
  }, ["bwd-filter"]],
  ["WinRS, data in f16", {
    fold: "results",
    chain: 24,
    segment: 48,
    transformed: "f16",
    tiles: [{ axes: [{ n: 1, r: 1 }, { n: 3, r: 2 }] }],
  }, ["bwd-filter"]],
];

export function problemOf(op: Operation, batch = 3, size = 12) {
  return convProblem({
    op,
    batch,
    inChannels: 12,
    outChannels: 40,
    inputSize: [size, size],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
}

/** A copy of the results with some changed. */
export function changed(
  { result, reference }: ReturnType<typeof healthyResult>,
  change: (value: number, index: number, ref: number) => number,
): Float32Array {
  return result.map((value, i) => change(value, i, reference.values[i]!));
}

/**
 * Asserts that a healthy result passes and that faults are found.
 *
 * @param zeros Whether a result of zeros is tried: it is found by looking closer at all of it, on all data alike.
 */
export function assertGate(
  arithmetic: PlanArithmetic,
  op: Operation,
  fill: FillKind,
  zeros: boolean,
): void {
  const what = `${op} ${fill}`;
  const given = simulatedCase(problemOf(op), arithmetic, fill);
  const healthy = healthyResult(given, { separate: true, start: 7 });
  const right = judgeCase(given, healthy.result, healthy.reference);
  assert.deepEqual([right.verdict, right.reasons], ["pass", []], what);
  findsFaults(given, healthy, what, zeros);
}

/**
 * What the issue asks of the gate: four times the typical RMS in a channel, twenty times the typical in one output.
 *
 * @param zeros Whether a result of zeros is tried: it is found by looking closer at all of it, on all data alike.
 */
function findsFaults(
  given: SimulatedCase,
  healthy: ReturnType<typeof healthyResult>,
  what: string,
  zeros: boolean,
): void {
  const { shape, magnitudes } = healthy.reference;
  const { sample } = given.yardstick();
  const { rms, typical } = sample;
  const u = given.request.precision.unitRoundoff;
  const area = shape.slice(2).reduce((all, size) => all * size, 1);
  const rowAxis = given.request.problem.op === "bwd-filter" ? 0 : 1;
  const channelOf = (i: number) =>
    rowAxis === 1 ? Math.floor(i / area) % shape[1]! : Math.floor(i / area / shape[1]!);
  const fails = (result: Float32Array, fault: string, pattern?: RegExp) => {
    const { verdict, reasons } = judgeCase(given, result, healthy.reference);
    assert.equal(verdict, "fail", `${what}: ${fault} passes`);
    if (pattern !== undefined) assert.match(reasons.join("; "), pattern, `${what}: ${fault}`);
  };
  // The 99.9th percentile of a healthy channel's RMS, from that of all outputs and how many of its own are independent.
  const results = given.request.arithmetic.tiles?.[0]?.axes.reduce((all, { n }) => all * n, 1) ?? 1;
  const independent = healthy.result.length / shape[rowAxis]! / results;
  const usual = rms * typicalRms(sample, independent);
  // Alternating signs, so that the RMS is what is said.
  fails(
    changed(
      healthy,
      (value, i, ref) =>
        channelOf(i) === 5 ? ref + (i % 2 === 0 ? 1 : -1) * 4 * usual * u * scaleOf(i) : value,
    ),
    "a channel's errors 4 times the typical",
  );
  const one = Math.floor(magnitudes.length / 2) + 3;
  fails(
    changed(
      healthy,
      (value, i, ref) => i === one ? ref + 21 * typical * u * scaleOf(one) : value,
    ),
    "an output off by 20 times the typical",
    /bound ratio/,
  );
  if (zeros) fails(changed(healthy, () => 0), "zeros");
  fails(changed(healthy, (value, i) => i === one ? NaN : value), "NaN", /NaN/);

  function scaleOf(i: number): number {
    return Math.max(magnitudes[i]!, given.floors()?.size(i) ?? 0);
  }
}

/** Data whose sums of products are 0 exactly, though its products round: one operand is constant, patches of the other sum to 0. */
function cancel({ request: { problem: { op, filterSize }, inputs } }: SimulatedCase): void {
  const [constant, other] = op === "fwd"
    ? [inputs.input!, inputs.filter!]
    : op === "bwd-data"
    ? [inputs.output!, inputs.filter!]
    : [inputs.output!, inputs.input!];
  (constant.data as Float32Array).fill(3.3);
  // Taps of a row, and in a gradient places of any ten columns.
  const row = op === "bwd-filter" ? [-1, -3, 9, -3, -2] : [-1, 3, -2];
  const width = op === "bwd-filter" ? 12 : filterSize.at(-1)!;
  const data = other.data as Float32Array;
  data.forEach((_, i) => data[i] = row[i % width % row.length]! * (1 + Math.floor(i / width) % 7));
}

/** Asserts that a right result passes where the exact one is 0 everywhere, and that faults are found there. */
export async function assertGateOnZeros(arithmetic: PlanArithmetic, op: Operation): Promise<void> {
  // Every result has all taps.
  const padding = op === "bwd-data" ? [2, 2] : [0, 0];
  const problem = convProblem({
    op,
    batch: 1,
    inChannels: 12,
    outChannels: op === "bwd-data" ? 12 : 40,
    inputSize: [12, 12],
    filterSize: [3, 3],
    paddingBegin: padding,
  });
  const given = simulatedCase(problem, arithmetic, "normal");
  cancel(given);
  const reference = await referenceConv(problem, given.request.inputs, { workers: 0 });
  const healthy = { ...healthyResult(given, { separate: true, start: 5 }), reference };
  const { values, magnitudes, shape } = reference;
  assert.ok(
    values.every((value) => Math.abs(value) === 0) && magnitudes.every((one) => one > 0),
  );
  const right = judgeCase(given, healthy.result, reference);
  assert.deepEqual([right.verdict, right.reasons], ["pass", []], op);
  assert.ok(right.of_limit <= 1 && !Number.isNaN(right.rel_l2_limit), `${right.of_limit}`);
  const u = given.request.precision.unitRoundoff;
  const scale = (i: number) => u * Math.max(magnitudes[i]!, given.floors()?.size(i) ?? 0);
  // What cancels in its own order may round in others; where nothing rounds, results are exact.
  const { sample, of } = given.yardstick();
  const usual = Math.max(
    sample.typical,
    of([77]).typical,
    right.measured.report.max_bound_ratio,
  );
  const most = usual === 0 ? 1 : 21 * usual;
  const area = shape.slice(2).reduce((all, size) => all * size, 1);
  const faults: Record<string, (value: number, i: number) => number> = {
    "one output": (value, i) => i === 77 ? most * scale(i) : value,
    "a channel": (value, i) =>
      Math.floor(i / area) % 5 === 2 ? (i % 2 === 0 ? 1 : -1) * most * scale(i) : value,
    "all": (_, i) => (i % 2 === 0 ? 1 : -1) * most * scale(i),
    "NaN": (value, i) => i === 5 ? NaN : value,
  };
  for (const [fault, change] of Object.entries(faults)) {
    const wrong = judgeCase(given, changed(healthy, change), reference);
    assert.equal(wrong.verdict, "fail", `${op}: ${fault}`);
    assert.doesNotMatch(wrong.reasons.join(), /NaN \w+ above|above NaN|above Infinity/);
  }
}
