import assert from "#assert";
import { F16, F32, judge, measureAccuracy, NO_ERRORS, rmsLimit, type Yardstick } from "./mod.ts";
import type { ErrorGroup } from "./groups.ts";
import { BF16 } from "./precision.ts";
import type { Measured } from "./measure.ts";
import { type ErrorStatistics, errorStatistics } from "./yardstick.ts";

const UNIT_ROUNDOFF = 2 ** -24;

/** A yardstick whose errors are normal of deviation 1, in units of the scale. */
function yardstick(deviation = 1): Yardstick {
  const sample = {
    count: 5000,
    rms: deviation,
    typical: 3.29 * deviation,
    largest: 3.9 * deviation,
    largestError: 0,
    kurtosis: 3,
    squareRms: 1,
    relL2: 1,
  };
  return { sample, of: () => sample, again: () => [sample] };
}

function measured(got: readonly number[], values: readonly number[], precision = F32) {
  const exact = Float64Array.from(values);
  const reference = { values: exact, magnitudes: exact.map(Math.abs), shape: [1, 1, got.length] };
  return measureAccuracy(got, reference, { strides: [got.length, got.length, 1], precision });
}

Deno.test("judge() says nothing where nothing was compared, and finds what is NaN by itself", () => {
  const of = (got: readonly number[], values: readonly number[]) => {
    const { verdict, reasons } = judge(measured(got, values), yardstick(), F32);
    return [verdict, reasons.join()];
  };
  assert.deepEqual(of([], []), ["none", "the result is empty"]);
  const nothing = "every output is NaN, as the reference's are: nothing was compared";
  assert.deepEqual(of([NaN, NaN], [NaN, NaN]), ["none", nothing]);
  for (const wrong of [[NaN, 1], [NaN, Infinity], [1, 1]]) {
    assert.equal(of(wrong, [NaN, NaN])[0], "fail");
    assert.equal(of([NaN, NaN], wrong)[0], "fail");
  }
});

Deno.test("judge() compares infinities, and says where nothing else was", () => {
  const right = judge(measured([Infinity, NaN], [Infinity, NaN]), yardstick(), F32);
  assert.deepEqual([right.verdict, right.reasons], ["pass", []]);
  assert.deepEqual(right.notes, [
    "no output is finite: 1 infinite and 1 NaN are as in the reference",
  ]);
  for (const wrong of [-Infinity, NaN, 3e38, 0]) {
    assert.equal(judge(measured([wrong, NaN], [Infinity, NaN]), yardstick(), F32).verdict, "fail");
  }
});

Deno.test("judge() takes NaN for right where padding meets one, counts it, and nothing else", () => {
  const judged = (got: readonly number[], ref: readonly number[]) => {
    const values = Float64Array.from(ref);
    const reference = {
      values,
      magnitudes: values.map(Math.abs),
      paddedNaN: Uint8Array.from(ref, (_, i) => i === 0 ? 1 : 0),
      shape: [1, 1, got.length],
    };
    const strides = [got.length, got.length, 1];
    const measured = measureAccuracy(got, reference, { strides, precision: F32 });
    return judge(measured, yardstick(), F32);
  };
  for (const value of [2, Infinity, -Infinity]) {
    assert.equal(judged([value, 1], [value, 1]).verdict, "pass");
    const padded = judged([NaN, 1], [value, 1]);
    assert.equal(padded.verdict, "pass");
    assert.match(padded.notes.join(), /^1 of 2 outputs are NaN where padding meets /);
    assert.equal(judged([value, NaN], [value, 1]).verdict, "fail");
    assert.equal(judged([3, 1], [value, 1]).verdict, "fail");
    assert.equal(judged([3, 1], [NaN, 1]).verdict, "fail");
    const alone = judged([NaN], [value]);
    assert.equal(alone.verdict, "none");
    assert.match(alone.reasons.join(), /^every output is NaN, .*as padding makes it/);
  }
});

Deno.test("judge() names what overflows f16, which is no fault", () => {
  const half = (values: readonly number[]) =>
    judge(measured(values.map(Math.f16round), values, F16), yardstick(), F16);
  assert.equal(half([1, 2, 65_504]).verdict, "pass");
  const cause =
    /^2 of \d outputs overflow f16 to infinity: the reference reaches 1250000; .*loss scale/;
  const some = half([1, 2, -1.25e6, 70_000]);
  assert.deepEqual([some.verdict, some.reasons], ["pass", []]);
  assert.match(some.notes.join(), cause);
  const all = half([-1.25e6, 70_000]);
  assert.deepEqual([all.verdict, all.reasons], ["pass", []]);
  assert.match(all.notes.join(), cause);
  // What is infinite in the reference, too, is none.
  assert.deepEqual(half([1, 2, Infinity]).notes, []);
});

for (
  const [precision, largest, next] of [[F16, 65_504, 2 ** 16], [
    BF16,
    2 ** 128 - 2 ** 120,
    2 ** 128,
  ], [F32, 2 ** 128 - 2 ** 104, 2 ** 128]] as const
) {
  Deno.test(`judge() wants infinity of what ${precision.result} cannot hold, of all results and of a part`, () => {
    const verdict = (got: readonly number[], values: readonly number[]) =>
      judge(measured(got, values, precision), yardstick(), precision).verdict;
    for (const more of [[], [1, 2]]) {
      const values = [3 * next, -3 * next, ...more];
      assert.equal(verdict([Infinity, -Infinity, ...more], values), "pass");
      for (const wrong of [largest, -Infinity, NaN, 0]) {
        assert.equal(verdict([wrong, -Infinity, ...more], values), "fail", `${wrong}`);
      }
    }
    // The end of the range: roundings may lie on either side of it.
    const end = (largest + next) / 2;
    for (const value of [end * (1 - 2 ** -26), end * (1 + 2 ** -26)]) {
      for (const got of [largest, Infinity]) assert.equal(verdict([got, 1], [value, 1]), "pass");
      for (const got of [-Infinity, NaN]) assert.equal(verdict([got, 1], [value, 1]), "fail");
    }
    for (const value of [0.9 * next, 1]) assert.equal(verdict([Infinity, 1], [value, 1]), "fail");
  });
}

Deno.test("judge() passes results that are right to the last place of subnormal numbers", () => {
  const values = Array.from({ length: 64 }, (_, i) => (i + 0.4) * 2 ** -140);
  for (const got of [values.map(Math.fround), values.map(() => 0)]) {
    assert.deepEqual(judge(measured(got, values), yardstick(0), F32).reasons, []);
  }
});

Deno.test("judge() allows 7 times the typical error and no more", () => {
  const ones = Array.from({ length: 1000 }, () => 1);
  const off = (units: number) =>
    measured(ones.map((one, i) => i === 7 ? one + units * UNIT_ROUNDOFF : one), ones);
  assert.equal(judge(off(22), yardstick(), F32).verdict, "pass");
  assert.equal(judge(off(24), yardstick(), F32).verdict, "fail");
});

Deno.test("judge() wants an exact result where simulated errors are 0", () => {
  const exact = { sample: NO_ERRORS, of: () => NO_ERRORS, again: () => [] };
  assert.equal(judge(measured([1, 2], [1, 2]), exact, F32).verdict, "pass");
  assert.equal(judge(measured([1, 2 + UNIT_ROUNDOFF], [1, 2]), exact, F32).verdict, "fail");
});

Deno.test("judge() asks outputs that err themselves where no simulated error of the sample is above 0", () => {
  const ones = Array.from({ length: 3000 }, () => 1);
  const { sample } = yardstick();
  /** Outputs that round in some of their own orders. */
  const order = { ...sample, largestError: sample.largest * UNIT_ROUNDOFF };
  const rounding = { sample: NO_ERRORS, of: () => NO_ERRORS, again: () => [NO_ERRORS, order] };
  const wrong = (count: number, units: number) =>
    measured(ones.map((one, i) => i < count ? one + units * UNIT_ROUNDOFF : one), ones);
  for (const count of [1, 20, 200]) {
    assert.equal(judge(wrong(count, 1), rounding, F32).verdict, "pass", `${count}`);
    assert.equal(judge(wrong(count, 40), rounding, F32).verdict, "fail", `${count}`);
  }
});

Deno.test("rmsLimit() falls to 2.5 as outputs grow, and allows for the errors' tails", () => {
  const { sample } = yardstick();
  assert.ok(rmsLimit(sample, 1e6) < 2.51);
  assert.ok(rmsLimit(sample, 32) > 3.1 && rmsLimit(sample, 32) < 3.2);
  assert.ok(rmsLimit({ ...sample, kurtosis: 20 }, 32) > 4.3);
});

Deno.test("errorStatistics() gives moments, and a tail for few errors", () => {
  const { rms, kurtosis, typical, largest } = errorStatistics([1, -1, 3, -3], {
    largestError: 3,
    squareRms: 1,
    relL2: 0,
  });
  assert.deepEqual([rms, largest], [Math.sqrt(5), 3]);
  assert.equal(kurtosis, 4 * (2 + 2 * 81) / (20 * 20));
  assert.equal(typical, 4.5);
  const many = Float64Array.from({ length: 10_000 }, (_, i) => i);
  assert.equal(errorStatistics(many, { largestError: 0, squareRms: 1, relL2: 0 }).typical, 9989);
});

/** Errors of made-up statistics: of the least variance, so that limits are nearly those of endlessly many. */
function errors(more: Partial<ErrorStatistics>): ErrorStatistics {
  return { ...yardstick().sample, rms: 0, typical: 0, largest: 0, kurtosis: 1, ...more };
}

/** A yardstick of made-up statistics, that of closer looks with no errors where they are not given. */
function madeUp(
  sample: Partial<ErrorStatistics>,
  own: Partial<ErrorStatistics> = {},
  orders: readonly Partial<ErrorStatistics>[] = [{}],
): Yardstick {
  return { sample: errors(sample), of: () => errors(own), again: () => orders.map(errors) };
}

/** A comparison that found nothing but what is given: an RMS of all outputs, a group, or one output. */
function found(
  { ratio = 0, error, ...more }: Partial<Measured> & {
    ratio?: number;
    error?: number;
  },
): Measured {
  const right = measured([1, 2], [1, 2]);
  const members = Array.from({ length: 1024 }, (_, index) => ({
    index,
    error: index + 1,
    ratio: 1,
  }));
  return {
    ...right,
    report: { ...right.report, max_bound_ratio: ratio },
    outliers: ratio === 0 ? [] : [{ index: 7, ratio, scale: 1, error: error! }],
    scaleNorm: 1,
    effective: 1e9,
    members: () => members,
    weighty: () => members,
    ...more,
  };
}

function group(more: Partial<ErrorGroup>): ErrorGroup {
  return {
    name: "channel 3",
    isRow: true,
    count: 1e6,
    independent: 1e6,
    rms: 0,
    largest: 0,
    largestIndex: 7,
    has: () => true,
    ...more,
  };
}

/** Holds that a figure passes up to a limit, to 2 %, and no further. */
function holdLimit(
  limit: number,
  make: (value: number) => Measured,
  against: Yardstick,
  reason: RegExp,
): void {
  const within = judge(make(0.98 * limit), against, F32);
  assert.deepEqual([within.verdict, within.reasons], ["pass", []], `${0.98 * limit}`);
  assert.ok(within.of_limit <= 1);
  const above = judge(make(1.02 * limit), against, F32);
  assert.equal(above.verdict, "fail", `${1.02 * limit}`);
  assert.match(above.reasons.join("; "), reason);
  assert.ok(above.of_limit > 1);
}

const RMS_LOOKS: readonly [string, (rms: number, independent?: number) => Measured, RegExp][] = [
  [
    "the whole result",
    (rms, independent = 1e9) => found({ relL2: rms, weightedRms: rms, effective: independent }),
    /^relative L2 error/,
  ],
  [
    "a group",
    (rms, independent = 1e9) => found({ groups: [group({ rms, independent })] }),
    /^RMS error of channel 3 over the typical/,
  ],
];

Deno.test("judge() simulates no sums again that no order would allow, but of the output that it names", () => {
  const again = (make: Measured) => {
    const counts: number[] = [];
    const against = {
      ...madeUp({ rms: 1, typical: 1 }, { rms: 1, typical: 1, largest: 1, largestError: 1 }),
      again(indices: readonly number[]) {
        counts.push(indices.length);
        return [errors({})];
      },
    };
    assert.equal(judge(make, against, F32).verdict, "fail");
    return counts;
  };
  const output = (largest: number) =>
    found({ ratio: largest, error: largest, groups: [group({ largest })] });
  assert.deepEqual(again(output(1e5)), [1]);
  assert.deepEqual(again(output(15)), [1024, 1]);
  for (const [, make] of RMS_LOOKS) {
    assert.deepEqual(again(make(1e5)), []);
    assert.deepEqual(again(make(3)), [1024]);
  }
});

Deno.test("judge() allows an output 7 times the sample's 99.9th percentile", () => {
  const sample = { rms: 1, typical: 10 };
  holdLimit(70, (ratio) => found({ ratio, error: ratio }), madeUp(sample), /^bound ratio/);
  assert.equal(judge(found({}), madeUp(sample), F32).bound_limit, 70);
});

Deno.test("judge() allows an output 4 times its own channel's 99.9th percentile", () => {
  const look = (largest: number) =>
    found({ ratio: largest, error: largest, groups: [group({ largest })] });
  const sample = { rms: 1, typical: 30 };
  holdLimit(400, look, madeUp(sample, { typical: 100 }), /^bound ratio/);
  // Or of one of the many orders that are simulated before it fails.
  holdLimit(400, look, madeUp(sample, {}, [{ typical: 1 }, { typical: 100 }]), /^bound ratio/);
});

Deno.test("judge() lets an output answer for itself from 19 times the typical on, whatever its channel may", () => {
  const look = (largest: number) =>
    found({ ratio: largest, error: largest, groups: [group({ largest })] });
  const sample = { rms: 1, typical: 1 };
  holdLimit(19, look, madeUp(sample, { typical: 100 }), /^bound ratio/);
  holdLimit(30, look, madeUp(sample, { typical: 100, largestError: 10 }), /^bound ratio/);
});

Deno.test("judge() allows an output 3 times the largest error of its own in a dozen orders, and in many more", () => {
  const sample = { rms: 1, typical: 1 };
  const own = { largestError: 100, largest: 1 };
  for (const look of [madeUp(sample, own), madeUp(sample, {}, [{ largestError: 1 }, own])]) {
    holdLimit(300, (error) => found({ ratio: 1e4, error }), look, /^bound ratio/);
  }
  // An output of a channel that has no list of outliers goes by its error over its scale.
  const large = { largest: 100, largestError: 1 };
  holdLimit(
    300,
    (largest) => found({ ratio: largest, outliers: [], groups: [group({ largest })] }),
    madeUp(sample, large),
    /^bound ratio/,
  );
});

for (const [what, look, reason] of RMS_LOOKS) {
  Deno.test(`judge() allows an RMS of ${what} 2.5 times the sample's or that of its own outputs`, () => {
    holdLimit(250, look, madeUp({ rms: 100 }), reason);
    // Of 1024 members an RMS of the least kurtosis varies by 0.005.
    holdLimit((2.5 + 5 * 0.005) * 100, look, madeUp({ rms: 1 }, { rms: 100 }), reason);
  });

  Deno.test(`judge() allows an RMS of ${what} 5 standard deviations more where outputs are few`, () => {
    // √((3 - 1) / (4 · 2)) = 0.5
    const few = (rms: number) => look(rms, 2);
    holdLimit(2.5 + 5 * 0.5, few, madeUp({ rms: 1, kurtosis: 3 }), reason);
  });

  Deno.test(`judge() allows an RMS of ${what} 2.5 times that of many orders and 5 of its deviations`, () => {
    const orders = [{ rms: 0.7 }, { rms: 1.3 }];
    const mean = Math.sqrt((0.7 ** 2 + 1.3 ** 2) / 2);
    holdLimit(2.5 * mean + 5 * 0.3, look, madeUp({ rms: 1.5 }, { rms: 0.1 }, orders), reason);
  });

  Deno.test(`judge() allows an RMS of ${what} one and a half times the largest of any one order`, () => {
    const orders = Array.from({ length: 100 }, (_, i) => ({ rms: i === 42 ? 2 : 0.01 }));
    holdLimit(1.5 * 2, look, madeUp({ rms: 1 }, {}, orders), reason);
  });

  Deno.test(`judge() allows an RMS of ${what} 3.8 times the sample's usual one, whatever orders show`, () => {
    const usual = 1 + 3.1 * 0.005;
    holdLimit(3.8 * usual, look, madeUp({ rms: 1 }, {}, [{ rms: 50 }, { rms: 100 }]), reason);
  });
}
