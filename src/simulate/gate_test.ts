import assert from "#assert";
import { typicalRms } from "../accuracy/mod.ts";
import { convProblem, type Operation, OPERATIONS } from "../problem/conv_problem.ts";
import { type PlanArithmetic, quadsOf } from "../problem/plan_arithmetic.ts";
import { referenceConv } from "../reference/reference.ts";
import { simulateConv } from "./conv_yardstick.ts";
import type { FillKind } from "../tensor/fill.ts";
import {
  darken,
  healthyResult,
  judgeCase,
  type SimulatedCase,
  simulatedCase,
} from "../../tests/support/simulated_cases.ts";

const FILLS: readonly FillKind[] = ["uniform01", "normal", "constant", "outliers", "mixed"];

function tile(n: number, r: number, axes: 1 | 2): PlanArithmetic {
  const whole = { n: 1, r: 1 };
  return { tiles: [{ axes: axes === 1 ? [whole, { n, r }] : [{ n, r }, { n, r }] }] };
}

/** F(n,r) over joined rows of the problems below: behind a row of 24 lies one place of padding, behind one of 12 whole tiles of it. */
function joined(n: number, r: number): PlanArithmetic {
  return { tiles: [{ axes: [{ n: 1, r: 1 }, { n, r }], pitch: 25 }] };
}

/** Ways to sum, and the operations that have them. */
const ARITHMETICS: readonly (readonly [
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
  ["F(6,3) over joined rows", joined(6, 3), ["fwd", "bwd-data"]],
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
  ["F(4x4,3x3) in quads of tiles", {
    ...tile(4, 3, 2),
    transformed: { places: "places", channels: "channels", products: "places", outerInner: false },
  }, ["fwd", "bwd-data"]],
  ["F(4x4,3x3) in quads of channels", {
    ...tile(4, 3, 2),
    transformed: { places: "units", channels: "channels", products: "channels", outerInner: false },
  }, ["fwd", "bwd-data"]],
  ["F(3x3,4x4) in quads of tiles", {
    ...tile(3, 4, 2),
    transformed: { places: "units", channels: "units", products: "places", outerInner: true },
  }, ["bwd-filter"]],
  ["F(3x3,4x4) in quads of channels", {
    ...tile(3, 4, 2),
    transformed: { places: "places", channels: "channels", outerInner: true },
  }, ["bwd-filter"]],
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

function problemOf(op: Operation, batch = 3, size = 12) {
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
function changed(
  { result, reference }: ReturnType<typeof healthyResult>,
  change: (value: number, index: number, ref: number) => number,
): Float32Array {
  return result.map((value, i) => change(value, i, reference.values[i]!));
}

for (const [name, arithmetic, operations, all = FILLS] of ARITHMETICS) {
  Deno.test(`judge() passes healthy results and finds faults: ${name}`, () => {
    for (const op of operations) {
      // Where neighbours are of unlike size, those that share a scale err as the largest does: no channel stands out.
      const fills = quadsOf(arithmetic)
        ? FILLS.slice(0, 3)
        // Of every operation data of one size and of unlike ones, of one of them all.
        : op === operations[0]
        ? all
        : all.filter((fill) => fill === "uniform01" || fill === "mixed");
      for (const fill of fills) {
        const what = `${op} ${fill}`;
        const given = simulatedCase(problemOf(op), arithmetic, fill);
        const healthy = healthyResult(given, { separate: true, start: 7 });
        const right = judgeCase(given, healthy.result, healthy.reference);
        assert.deepEqual([right.verdict, right.reasons], ["pass", []], what);
        findsFaults(given, healthy, what, fill === fills[0]);
      }
    }
  });
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
    return Math.max(magnitudes[i]!, given.floors()?.(i) ?? 0);
  }
}

Deno.test("judge() passes constant data, whose sums round to one side, and finds what is off (G2)", () => {
  const problem = convProblem({
    batch: 1,
    inChannels: 64,
    outChannels: 8,
    inputSize: [14, 14],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
  const given = simulatedCase(problem, {}, "constant");
  const healthy = healthyResult(given);
  const { verdict, measured } = judgeCase(given, healthy.result, healthy.reference);
  assert.equal(verdict, "pass");
  // The closed limit, 2·√L, was 48.
  assert.ok(measured.report.max_bound_ratio > 48, `${measured.report.max_bound_ratio}`);
  const wrong = changed(healthy, (value, i) => i === 700 ? value * 1.0005 : value);
  assert.equal(judgeCase(given, wrong, healthy.reference).verdict, "fail");
});

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

for (const [name, arithmetic, operations] of ARITHMETICS) {
  Deno.test(`judge() passes right results where the exact ones are all 0, and finds faults: ${name}`, async () => {
    for (const op of operations) {
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
      const scale = (i: number) => u * Math.max(magnitudes[i]!, given.floors()?.(i) ?? 0);
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
  });
}

Deno.test("judge() finds a zeroed small image beside one 1e5 times as large, for Winograd too (G4)", () => {
  for (const arithmetic of [{}, tile(4, 3, 2), tile(6, 3, 2)]) {
    const problem = { ...problemOf("fwd"), batch: 2 };
    const given = simulatedCase(problem, arithmetic, "normal");
    const input = given.request.inputs.input!.data as Float32Array;
    for (let i = input.length / 2; i < input.length; i++) input[i]! *= 1e5;
    const healthy = healthyResult(given);
    assert.equal(judgeCase(given, healthy.result, healthy.reference).verdict, "pass");
    const half = healthy.result.length / 2;
    const zeroed = changed(healthy, (value, i) => i < half ? 0 : value);
    assert.equal(judgeCase(given, zeroed, healthy.reference).verdict, "fail");
  }
});

Deno.test("judge() allows no more where tiles of tiny products have transforms of large data", () => {
  for (const [name, arithmetic, operations] of ARITHMETICS) {
    if (arithmetic.tiles === undefined) continue;
    for (const op of operations) {
      const given = simulatedCase(problemOf(op, 1, 24), arithmetic, "normal");
      darken(given, 11);
      const healthy = healthyResult(given, { separate: true, start: 7 });
      const { values } = healthy.reference;
      const right = judgeCase(given, healthy.result, healthy.reference);
      const what = `${name} ${op}`;
      assert.deepEqual([right.verdict, right.reasons], ["pass", []], what);
      const mean = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);
      // Of data in f32, and in half the bytes.
      const error = arithmetic.transformed === undefined ? 1e-4 : 1e-2;
      const off = changed(healthy, (_, i, ref) => ref + (i % 2 === 0 ? 1 : -1) * error * mean);
      assert.equal(judgeCase(given, off, healthy.reference).verdict, "fail", what);
      assert.ok(right.rel_l2_limit < error, `${what}: ${right.rel_l2_limit}`);
    }
  }
});

Deno.test("judge() passes large pictures with a few bright dots or a blob, and allows little more", () => {
  const size = 96;
  const problem = convProblem({
    batch: 1,
    inChannels: 3,
    outChannels: 4,
    inputSize: [size, size],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
  const pictures: readonly (readonly [string, (y: number, x: number) => number])[] = [
    ["blob", (y, x) => 1 + 1e5 * Math.exp(-((y - 30) ** 2 + (x - 61) ** 2) / 32)],
    ["dots", (y, x) => y % 41 === 3 && x % 37 === 8 ? 1e4 : 1],
    ["dots in black", (y, x) => y % 41 === 3 && x % 37 === 8 ? 1 : 0],
  ];
  for (const [what, factor] of pictures) {
    const given = simulatedCase(problem, tile(4, 3, 2), "normal");
    const input = given.request.inputs.input!.data as Float32Array;
    input.forEach((value, i) => {
      input[i] = value * factor(Math.floor(i / size) % size, i % size);
    });
    const healthy = healthyResult(given, { separate: true, start: 2 });
    const right = judgeCase(given, healthy.result, healthy.reference);
    assert.deepEqual([right.verdict, right.reasons], ["pass", []], what);
    assert.ok(right.rel_l2_limit < 10 * right.measured.relL2, `${what}: ${right.rel_l2_limit}`);
    const off = changed(healthy, (value, i) => value * (i % 2 === 0 ? 1.00003 : 0.99997));
    assert.equal(judgeCase(given, off, healthy.reference).verdict, "fail", what);
  }
});

Deno.test("judge() fails F(14x14,3x3) on normal data, and a result of zeros (G1)", () => {
  const problem = convProblem({
    batch: 1,
    inChannels: 128,
    outChannels: 4,
    inputSize: [28, 28],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
  const given = simulatedCase(problem, tile(14, 3, 2), "normal");
  const { result, reference } = healthyResult(given);
  const { verdict, reasons } = judgeCase(given, result, reference);
  assert.equal(verdict, "fail");
  assert.match(reasons.join(), /^error over the data's norm 0\.0\d+ is above 0\.001$/);
  const zeros = judgeCase(given, new Float32Array(result.length), reference);
  assert.match(zeros.reasons.join(), /relative L2 error 1 is above/);
});

Deno.test("judge() wants exact results where simulated arithmetic is exact", () => {
  for (const arithmetic of [{}, tile(2, 3, 2)]) {
    const given = simulatedCase(problemOf("fwd"), arithmetic, "integer");
    const healthy = healthyResult(given);
    const { verdict, bound_typical } = judgeCase(given, healthy.result, healthy.reference);
    assert.deepEqual([verdict, bound_typical], ["pass", 0]);
    const off = changed(healthy, (value, i) => i === 99 ? value + 1 : value);
    assert.equal(judgeCase(given, off, healthy.reference).verdict, "fail");
  }
});

Deno.test("judge() looks closer at places that the sample missed", () => {
  // One image in 200 is not whole numbers: its outputs alone have errors.
  const problem = { ...problemOf("fwd"), batch: 200, inChannels: 4, outChannels: 8 };
  const given = simulatedCase(problem, {}, "integer");
  const input = given.request.inputs.input!.data as Float32Array;
  const size = input.length / 200;
  for (let i = 77 * size; i < 77 * size + 12; i++) input[i]! += 0.1 * i;
  const healthy = healthyResult(given, { separate: true });
  const right = judgeCase(given, healthy.result, healthy.reference);
  assert.deepEqual([right.verdict, right.reasons], ["pass", []]);
  const wrong = changed(healthy, (value, i) => i === 5 ? value + 0.5 : value);
  assert.equal(judgeCase(given, wrong, healthy.reference).verdict, "fail");
});

Deno.test("simulateConv() has the reference of the CPU's reference kernels", async () => {
  for (const [name, arithmetic, operations] of ARITHMETICS) {
    for (const op of operations) {
      const { request } = simulatedCase(problemOf(op), arithmetic, "normal");
      const { reference } = simulateConv(request);
      const { values, magnitudes } = await referenceConv(request.problem, request.inputs, {
        workers: 0,
      });
      values.forEach((value, i) => {
        const off = Math.abs(value - reference.values[i]!) / magnitudes[i]!;
        assert.ok(off < 1e-13, `${name} ${op} ${i}: ${off}`);
        const size = Math.abs(reference.magnitudes[i]! / magnitudes[i]! - 1);
        assert.ok(size < 1e-12, `${name} ${op} ${i}: Σ|a||b| off by ${size}`);
      });
    }
  }
});
