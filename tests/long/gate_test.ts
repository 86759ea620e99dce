/** The gate on every way to sum, operation and kind of data; src/simulate/gate_test.ts has one of each way. */
import assert from "#assert";
import { convProblem } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { referenceConv } from "../../src/reference/reference.ts";
import { simulateConv } from "../support/simulate_conv.ts";
import {
  ARITHMETICS,
  assertGate,
  assertGateOnZeros,
  changed,
  FILLS,
  problemOf,
  tile,
} from "../support/gate_cases.ts";
import { darken, healthyResult, judgeCase, simulatedCase } from "../support/simulated_cases.ts";

for (const [name, arithmetic, operations, all = FILLS] of ARITHMETICS) {
  Deno.test(`judge() passes healthy results and finds faults: ${name}`, () => {
    for (const op of operations) {
      // Of every operation data of one size and of unlike ones, of one of them all.
      const fills = op === operations[0]
        ? all
        : all.filter((fill) => fill === "uniform01" || fill === "mixed");
      for (const fill of fills) assertGate(arithmetic, op, fill, fill === fills[0]);
    }
  });
}

for (const [name, arithmetic, operations] of ARITHMETICS) {
  Deno.test(`judge() passes right results where the exact ones are all 0, and finds faults: ${name}`, async () => {
    for (const op of operations) await assertGateOnZeros(arithmetic, op);
  });
}

Deno.test("judge() passes constant data, whose sums round to one side, and finds what is off (G2)", () => {
  const problem = parseDescriptor("mb1ic64ih14oc8kh3ph1");
  const given = simulatedCase(problem, {}, "constant");
  const healthy = healthyResult(given);
  const { verdict, measured } = judgeCase(given, healthy.result, healthy.reference);
  assert.equal(verdict, "pass");
  // The closed limit, 2·√L, was 48.
  assert.ok(measured.report.max_bound_ratio > 48, `${measured.report.max_bound_ratio}`);
  const wrong = changed(healthy, (value, i) => i === 700 ? value * 1.0005 : value);
  assert.equal(judgeCase(given, wrong, healthy.reference).verdict, "fail");
});

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
  const problem = parseDescriptor("mb1ic128ih28oc4kh3ph1");
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
