import assert from "#assert";
import { F32, stored } from "../accuracy/mod.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { PLAIN_ACTIVATIONS } from "../problem/activations.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { type GemmDType, type GemmProblem, gemmProblem } from "../problem/gemm_problem.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { simulateConv } from "../../tests/support/simulate_conv.ts";
import { caseChecks } from "./case_checks.ts";
import { checkAgainst, computeReference } from "./check.ts";
import { convSubject, referenceInputs } from "./conv_subject.ts";
import { gemmSubject } from "./gemm_subject.ts";
import { fillOperands } from "./operands.ts";
import { type HostData, type HostOperands, isIntegral } from "./subject.ts";

const LAYOUTS = { layout: "nchw", filterLayout: "kcrs" } as const;

Deno.test("checkAgainst() measures Winograd's outputs by the products of their tile, other sums by their own", async () => {
  const problem = parseDescriptor("mb1ic8ih12oc4kh3ph1");
  // One place of each image is not 0: most outputs have no products, but the rounding errors of their tile.
  const subject = convSubject({ problem, ...LAYOUTS });
  const operands = fillOperands(subject, "normal", 1);
  operands.input!.forEach((value, i, input) => input[i] = i % 144 === 40 ? value : 0);
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  const inputs = referenceInputs(problem, operands, LAYOUTS);
  const simulated = { problem, inputs, epilogue: NO_EPILOGUE, seed: 1, precision: F32 };
  const arithmetic: PlanArithmetic = { tiles: [{ axes: [{ n: 4, r: 3 }, { n: 4, r: 3 }] }] };
  const { result } = simulateConv({ ...simulated, arithmetic }, { start: 7 });
  assert.ok(result.some((value, i) => reference.magnitudes[i] === 0 && value !== 0));
  const tiled = checkAgainst(reference, result, arithmetic);
  assert.deepEqual([tiled.verdict, tiled.message], ["pass", undefined]);
  assert.ok(tiled.accuracy.max_bound_ratio < tiled.accuracy.bound_limit);
  assert.notEqual(tiled.accuracy.worst_group, null);
  const off = result.map((value) => value * 1.00005);
  assert.equal(checkAgainst(reference, off, arithmetic).verdict, "fail");
  const plain = checkAgainst(reference, result, {});
  assert.equal(plain.verdict, "fail");
  assert.equal(plain.accuracy.max_bound_ratio, Infinity);
});

Deno.test("checkAgainst() says that Winograd spreads a NaN of the data, and of no other fault", async () => {
  const problem = parseDescriptor("mb1ic2ih8oc2kh3ph1");
  const subject = convSubject({ problem, ...LAYOUTS });
  const arithmetic: PlanArithmetic = { tiles: [{ axes: [{ n: 4, r: 3 }, { n: 4, r: 3 }] }] };
  const said = async (nan: boolean, arithmetic: PlanArithmetic) => {
    const operands = fillOperands(subject, "normal", 1);
    if (nan) operands.input![0] = NaN;
    const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
    const result = Float32Array.from(reference.values);
    result[40] = NaN;
    const { verdict, message } = checkAgainst(reference, result, arithmetic);
    assert.equal(verdict, "fail");
    return message!.includes("Winograd spreads a NaN");
  };
  assert.deepEqual(
    [await said(true, arithmetic), await said(true, {}), await said(false, arithmetic)],
    [true, false, false],
  );
});

const ARRAYS = { f32: Float32Array, f16: Float16Array, f64: Float64Array } as const;
type Real = keyof typeof ARRAYS;

/** A product's reference, the right result, and what the check makes of results. */
async function productCase(
  dtype: Real,
  init: Partial<GemmProblem>,
  data: Partial<Record<keyof HostOperands, readonly number[]>>,
) {
  const problem = gemmProblem({ m: 3, n: 1, k: 1, ...init });
  const subject = gemmSubject(problem, { dtype: dtype as GemmDType });
  const operands = Object.fromEntries(
    subject.operands.map(({ role }) => [role, ARRAYS[dtype].from(data[role] ?? [1])]),
  ) as HostOperands;
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  const arithmetic: PlanArithmetic = { sums: dtype === "f64" ? "f64" : "f32" };
  const precision = subject.tolerance.precision(arithmetic);
  const right = [...reference.values].map((value) => stored(precision, value));
  const check = (values: readonly number[]) =>
    checkAgainst(reference, ARRAYS[dtype].from(values) as HostData, arithmetic);
  return { right, check };
}

const { POSITIVE_INFINITY: INF } = Number;

Deno.test("infinities in operands and epilogues pass where they are right, under every activation, and faults do not", async () => {
  for (const dtype of ["f32", "f16", "f64"] as const) {
    for (const activation of dtype === "f32" ? PLAIN_ACTIVATIONS : ["relu", "tanh"] as const) {
      for (const [init, data] of INFINITE) {
        const { right, check } = await productCase(dtype, { activation, ...init }, data);
        const what = `${dtype} ${activation} ${JSON.stringify(init)} ${right}`;
        const { verdict, message, accuracy } = check(right);
        assert.equal(verdict, "pass", `${what}: ${message}`);
        for (const figure of [accuracy.bound_limit, accuracy.rel_l2_limit, accuracy.of_limit]) {
          assert.ok(!Number.isNaN(figure), what);
        }
        right.forEach((value, i) => {
          for (const wrong of [NaN, -INF, 0.25]) {
            if (Object.is(wrong, value) || Math.abs(wrong - value) < 1e-2) continue;
            const spoilt = check(right.with(i, wrong));
            assert.equal(spoilt.verdict, "fail", `${what}: ${wrong} at ${i}`);
            assert.doesNotMatch(spoilt.message!, /NaN is above|above NaN|above Infinity/);
          }
        });
      }
    }
  }
});

/** What follows the sums, and operands with an infinity or NaN at some place. */
const INFINITE: readonly (readonly [
  Partial<GemmProblem>,
  Partial<Record<keyof HostOperands, readonly number[]>>,
])[] = [
  [{}, { a: [INF, 1, 2] }],
  [{}, { a: [-INF, 1, 2] }],
  [{}, { a: [INF, -INF, INF] }],
  [{}, { a: [NaN, INF, 0.5] }],
  [{ bias: "row" }, { a: [1, 2, 3], bias: [-INF, INF, 0.5] }],
  [{ bias: "row" }, { a: [INF, 2, 3], bias: [-INF, -INF, -INF] }],
  [{ bias: "column" }, { a: [1, 2, 3], bias: [-INF] }],
  [{ alpha: 2, beta: 2 }, { a: [INF, 1, -2], c: [1, -INF, NaN] }],
  [{ alpha: 0, beta: 2 }, { a: [INF, NaN, -2], c: [1, 0.5, -1] }],
  [{ alpha: -0.5, beta: 0 }, { a: [INF, NaN, -2] }],
  [{ residual: true }, { a: [INF, -INF, 2], residual: [0.5, 1, -INF] }],
];

Deno.test("f64 beyond f32, and sums beyond doubles, are checked", async () => {
  const data = [1e39, -3e200, 7e-300];
  for (const activation of ["none", "relu", "tanh"] as const) {
    const { right, check } = await productCase("f64", { activation }, { a: data, b: [1.5] });
    assert.equal(check(right).verdict, "pass");
    assert.equal(check(right.with(0, right[0]! * (1 + 1e-12) + 1e-9)).verdict, "fail");
  }
  // What does not fit is infinite; Σ|a||b| of the last row is, though its sum is not.
  const a = [1e308, 1e308, -1e308, -1e308, 1.2e308, -1.25e308];
  const { right, check } = await productCase("f64", { k: 2 }, { a, b: [1.25, 1] });
  assert.deepEqual(right.slice(0, 2), [INF, -INF]);
  assert.equal(check(right).verdict, "pass");
  for (const wrong of [0, 1e300, INF, NaN]) {
    assert.equal(check(right.with(2, wrong)).verdict, "fail", `${wrong}`);
  }
  // f32 whose sums overflow it.
  const large = await productCase("f32", { alpha: 0 }, { a: [3e38, 1, 2], b: [3e38] });
  assert.deepEqual(large.right, [0, 0, 0]);
  assert.equal(large.check(large.right).verdict, "pass");
  assert.equal(large.check([1e-6, 0, 0]).verdict, "fail");
});

Deno.test("an empty result is not checked, and says so, whatever it is of", async () => {
  const problem = parseDescriptor("mb0ic4ih8oc4kh3");
  const subjects = [
    convSubject({ problem, ...LAYOUTS }),
    convSubject({ problem: { ...problem, op: "bwd-data" }, ...LAYOUTS }),
    convSubject({ problem, ...LAYOUTS, dtype: "f16" }),
    ...(["f32", "f64", "i8"] as const).map((dtype) =>
      gemmSubject(gemmProblem({ m: 0, n: 4, k: 4, activation: "relu" }), { dtype })
    ),
  ];
  for (const subject of subjects) {
    const operands = fillOperands(subject, isIntegral(subject) ? "int8" : "normal", 1);
    for (const mode of ["auto", "sample", "full"] as const) {
      const reference = await computeReference({ subject, operands, mode, seed: 1 });
      const { verdict, message } = checkAgainst(reference, new Float32Array(0), {});
      assert.deepEqual([verdict, message], ["none", "the result is empty"]);
    }
  }
});

Deno.test("outputs that rounding or flushing may take are named where they are a share that matters", async () => {
  const note = /^2 of 3 outputs are hardly checked: up to \S+ f(32|16) rounds or flushes them/;
  for (const [dtype, a] of [["f32", [1, 1e-38, -2e-40]], ["f16", [1, 1e-7, -2e-7]]] as const) {
    // Products that f16 rounds.
    const { right, check } = await productCase(dtype, { alpha: 0.3 }, { a });
    for (const values of [right, [right[0]!, 0, 0]]) {
      const { verdict, message } = check(values);
      assert.equal(verdict, "pass", `${dtype} ${values}: ${message}`);
      assert.match(message!, note);
    }
    assert.equal(check([right[0]!, 1e-3, 0]).verdict, "fail");
  }
  const few = { m: 200, n: 1, k: 1 };
  const a = Array.from({ length: 200 }, (_, i) => i === 7 ? 1e-39 : 1 + i);
  const { right, check } = await productCase("f32", few, { a });
  assert.deepEqual([check(right).verdict, check(right).message], ["pass", undefined]);
  // Zeros are exact.
  const zeros = await productCase("f32", {}, { a: [0, 0, 1] });
  assert.equal(zeros.check(zeros.right).message, undefined);
});

Deno.test("NaN passes where padding meets an infinity of the filter, sampled and projected, and nowhere else", async () => {
  const problem = parseDescriptor("mb1ic32ih112oc32kh3ph1");
  const subject = convSubject({ problem, ...LAYOUTS });
  const operands = fillOperands(subject, "normal", 1);
  // The first tap of channel 5, which the first row and column meet on padding.
  operands.filter![5 * 32 * 9] = Infinity;
  const whole = await computeReference({ subject, operands, mode: "full", seed: 1 });
  const meets = (i: number) =>
    Math.floor(i / 112 ** 2) === 5 && (i % 112 === 0 || i % 112 ** 2 < 112);
  assert.ok(
    whole.values.every((value, i) =>
      Number.isFinite(value) === (meets(i) || i < 5 * 112 ** 2 || i >= 6 * 112 ** 2)
    ),
  );
  const plain = Float32Array.from(whole.values);
  const padded = plain.map((value, i) => meets(i) ? NaN : value);
  for (const mode of ["sample", "auto"] as const) {
    const checks = caseChecks({ subject, operands, mode, seed: 1 }, false);
    const check = (result: Float32Array<ArrayBuffer>) => checks.check({ result, arithmetic: {} });
    const right = await check(padded);
    assert.deepEqual([mode, right.verdict], [mode, "pass"], right.message);
    assert.match(right.message ?? "", /outputs are NaN where padding meets/);
    assert.equal((await check(plain)).verdict, "pass");
    const wrong = await check(padded.map((value, i) => meets(i) ? -Infinity : value));
    assert.deepEqual([mode, wrong.verdict], [mode, "fail"]);
    // All others of the channel, which are infinite.
    const lost = await check(padded.map((value) => Number.isFinite(value) ? value : NaN));
    assert.deepEqual([mode, lost.verdict], [mode, "fail"]);
  }
});
