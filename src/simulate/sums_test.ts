import assert from "#assert";
import { fillTensor } from "../tensor/fill.ts";
import type { SumSource } from "./sum_source.ts";
import { unitChain } from "../kernels/matrix_units.ts";
import { splitDrift } from "../problem/split_rounding.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { simulateSums } from "./sums.ts";

/** Sums of so many products of halves from 0 to 1, 24 of one factor with 24 of the other. */
function halves(units: number): SumSource {
  const fill = (seed: number) =>
    fillTensor("f64", [units, 24], "uniform01", seed).data.map((x) => Math.f16round(Number(x)));
  const [a, b] = [fill(1), fill(2)];
  return {
    units,
    lefts: 24,
    rights: 24,
    load(unit, lefts, rights) {
      lefts.set(a.subarray(24 * unit, 24 * unit + 24) as Float64Array);
      rights.set(b.subarray(24 * unit, 24 * unit + 24) as Float64Array);
    },
  };
}

/** Mean relative error, signed and not. */
function errors(units: number, chain?: number) {
  const { values, exact, rounded } = simulateSums(halves(units), {
    unit: 16,
    ...(chain === undefined ? {} : { chain }),
  });
  assert.ok(rounded);
  const relative = values.map((value, i) => (value - exact[i]!) / exact[i]!);
  const mean = (data: Float64Array) => data.reduce((sum, one) => sum + one, 0) / data.length;
  return { signed: mean(relative), size: mean(relative.map(Math.abs)) };
}

Deno.test("sums of matrix units are cut off as an H200's are", () => {
  // The errors of its units on such data, of 16 x 16 x 16.
  for (const [units, measured] of [[64, 1.8e-7], [256, 1.1e-6], [1152, 6.7e-6]] as const) {
    const { signed, size } = errors(units);
    assert.ok(size > measured / 1.4 && size < measured * 1.4, `${units}: ${size}`);
    assert.ok(signed < -0.9 * size, `${units}: ${signed}`);
  }
});

Deno.test("sums that leave the units every so many products err no more with their length", () => {
  // As measured on an H200, 3072 on an H100.
  const figures = [[128, 6.7e-7], [1024, 4.9e-6], [2048, 1.1e-5], [3072, 1.65e-5]] as const;
  for (const [chain, measured] of figures) {
    const { size } = errors(Math.max(1152, 2 * chain), chain);
    assert.ok(size > measured / 1.5 && size < measured * 1.5, `${chain}: ${size}`);
  }
});

/** What errors of sums of so many products of f32 are, in the mean and as the root of their squares. */
function splitErrors(
  units: number,
  fill: "uniform01" | "normal",
  arithmetic: PlanArithmetic,
  made: (value: number) => number = (value) => value,
) {
  const [a, b] = [1, 2].map((seed) =>
    Array.from(fillTensor("f32", [units, 24], fill, seed).data, (value) => made(Number(value)))
  );
  const source: SumSource = {
    units,
    lefts: 24,
    rights: 24,
    load(unit, lefts, rights) {
      for (let i = 0; i < 24; i++) lefts[i] = a![24 * unit + i]!;
      for (let i = 0; i < 24; i++) rights[i] = b![24 * unit + i]!;
    },
  };
  const { values, exact } = simulateSums(source, arithmetic);
  const squares = (data: Float64Array) => data.reduce((sum, one) => sum + one * one, 0);
  return {
    mare: values.reduce((sum, one, i) => sum + Math.abs(one / exact[i]! - 1), 0) / values.length,
    relL2: Math.sqrt(squares(values.map((one, i) => one - exact[i]!)) / squares(exact)),
  };
}

Deno.test("sums of f32 in halves err by less than 7e-7, and 4 times what sums in f32 do", () => {
  for (const units of [32, 64, 96, 128, 256, 512, 768, 1152, 2048, 4096]) {
    const chain = unitChain("f32", { split: { products: units, cutsOff: true } })!.length / 2;
    const own = { unit: 16, math: "f16x3", chain } as const;
    const halves = { ...own, ...splitDrift(own, units, true) };
    for (const fill of ["uniform01", "normal"] as const) {
      const split = splitErrors(units, fill, halves);
      const whole = splitErrors(units, fill, {});
      assert.ok(split.relL2 < 4 * whole.relL2, `${units} ${fill}: ${split.relL2}`);
      if (fill === "uniform01") assert.ok(split.mare < 7e-7, `${units}: ${split.mare}`);
    }
  }
});

Deno.test("sums of what a high half holds err by less than 4 times what sums in f32 do, and of whole numbers by nothing", () => {
  for (const units of [128, 512, 1152, 2048, 4096]) {
    const chain = unitChain("f32", { split: { products: units, cutsOff: true } })!.length / 2;
    const own = { unit: 16, math: "f16x3", chain } as const;
    const halves = { ...own, ...splitDrift(own, units, true) };
    for (const fill of ["uniform01", "normal"] as const) {
      const [split, whole] = [halves, {}].map((way) =>
        splitErrors(units, fill, way, Math.f16round)
      );
      assert.ok(split!.relL2 < 4 * whole!.relL2, `${units} ${fill}: ${split!.relL2}`);
    }
  }
  const own = { unit: 16, math: "f16x3", chain: 512 } as const;
  const bytes = (value: number) => Math.floor(256 * value);
  const exact = { ...own, ...splitDrift(own, 256, true) };
  assert.equal(splitErrors(256, "uniform01", exact, bytes).relL2, 0);
});

Deno.test("high halves away from zero lose a third of what others do, which leaves a drift to be made up for", () => {
  const own = { unit: 16, math: "f16x3", chain: 512 } as const;
  const drift = splitDrift(own, 2048, true);
  const { highs } = drift;
  assert.deepEqual(drift, { highs: "away", drift: 12 });
  for (
    const [fill, most] of [["uniform01", [0.35, 0.6]], ["normal", [1.05, 0.65]]] as const
  ) {
    const error = (more: PlanArithmetic) => splitErrors(2048, fill, { ...own, ...more }).relL2;
    const [all, away, made] = [error({}), error({ highs: highs! }), error(drift)];
    assert.ok(away < most[0] * all && made < most[1] * away, `${fill}: ${[all, away, made]}`);
  }
  // Too few products to lose much, and units that round.
  assert.deepEqual(splitDrift(own, 63, true), {});
  assert.deepEqual(splitDrift(own, 2048), {});
});

/** One sum of given factors, as a unit makes it in halves. */
function splitSum(a: readonly number[], b: readonly number[]) {
  const source: SumSource = {
    units: a.length,
    lefts: 1,
    rights: 1,
    load(unit, lefts, rights) {
      lefts[0] = Math.fround(a[unit]!);
      rights[0] = Math.fround(b[unit]!);
    },
  };
  const arithmetic = { unit: 16, math: "f16x3" } as const;
  const { values, exact, rounded } = simulateSums(source, arithmetic);
  return {
    value: values[0]!,
    exact: exact[0]!,
    rounded,
    whole: simulateSums(source, {}).values[0]!,
  };
}

Deno.test("sums that halves hold less of than f32 are those of f32", () => {
  const range = (count: number, of: (i: number) => number) =>
    Array.from({ length: count }, (_, i) => of(i));
  // What is small meets what is large, and the large a zero.
  const wide = splitSum(
    range(40, (i) => i === 7 ? 1e30 : 1 / (i + 3)),
    range(40, (i) => i === 7 ? 0 : i - 19.3),
  );
  assert.equal(wide.value, wide.whole);
  assert.ok(Math.abs(wide.value / wide.exact - 1) < 1e-6);
  const tiny = splitSum(range(40, (i) => (i + 1) * 1e-35), range(40, () => 1e30));
  assert.equal(tiny.value, tiny.whole);
  assert.deepEqual(
    splitSum(range(40, (i) => i === 3 ? Infinity : 1), range(40, () => 1)).value,
    Infinity,
  );
  assert.ok(Number.isNaN(splitSum(range(40, (i) => i === 3 ? NaN : 1), range(40, () => 1)).value));
  // Eleven bits each: halves hold them, and the sum is exact.
  const exact = splitSum(range(40, (i) => 2000 + i), range(40, (i) => i - 20));
  assert.deepEqual([exact.value, exact.rounded], [exact.exact, false]);
  assert.equal(splitSum(range(40, (i) => 2 ** (i % 15)), range(40, () => 2 ** 90)).rounded, false);
});

Deno.test("sums of matrix units that need no rounding are exact", () => {
  const source: SumSource = {
    units: 40,
    lefts: 1,
    rights: 1,
    load(unit, lefts, rights) {
      lefts[0] = unit - 20;
      rights[0] = 3;
    },
  };
  const { values, exact, rounded } = simulateSums(source, { unit: 16 });
  assert.deepEqual([...values], [...exact]);
  assert.equal(rounded, false);
});

Deno.test("operands are rounded before they are multiplied, and the exact sums are of what they are", () => {
  const source = {
    units: 1,
    lefts: 1,
    rights: 1,
    load(_: number, lefts: Float64Array, rights: Float64Array) {
      lefts[0] = 1 + 2 ** -12;
      rights[0] = 3;
    },
  };
  const { values, exact, rounded } = simulateSums(source, { operands: "tf32" });
  assert.deepEqual([values[0], exact[0], rounded], [3, 3 + 3 * 2 ** -12, true]);
  const f32 = simulateSums(source, { operands: "f32" });
  assert.deepEqual([f32.values[0], f32.rounded], [3 + 3 * 2 ** -12, false]);
});

Deno.test("sums begin with what is added to them, and each sum rounds it", () => {
  const source = {
    units: 4,
    lefts: 1,
    rights: 1,
    initial: Float64Array.of(2 ** 24),
    load(_: number, lefts: Float64Array, rights: Float64Array) {
      lefts[0] = 1;
      rights[0] = 1;
    },
  };
  const { values, exact } = simulateSums(source, {});
  assert.deepEqual([values[0], exact[0]], [2 ** 24, 4]);
});
