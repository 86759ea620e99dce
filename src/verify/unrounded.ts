/** What stood before results were rounded to 16 bits. */
import { aboveLargest } from "../accuracy/precision.ts";
import { type Reference, resultStrides } from "../run/check.ts";
import type { HostData } from "../run/subject.ts";
import { exponentOf } from "../simulate/unit_sums.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import { sampledOutputs } from "./hypothesis.ts";

/** Wrong outputs that say by what they are wrong: nearly all, by a share of what they should be that is as good as one. */
const SCALED = { fewest: 8, nearly: 0.8, least: 0.2, spread: 0.1 };

/** Whether outputs that are not the nearest are a multiple of what they should be: zeros, or negated. No rounding errs so. */
export function isScaled(reference: Reference, before: Float64Array<ArrayBuffer>): boolean {
  const { got, expected } = sampledOutputs(reference, before, before.length);
  const shares = expected.flatMap((exact, i) => got[i] === exact ? [] : [got[i]! / exact - 1]);
  const middle = shares.toSorted((one, other) => one - other)[shares.length >> 1] ?? 0;
  const near = shares.filter((one) => Math.abs(one - middle) <= SCALED.spread * Math.abs(middle));
  return shares.length >= SCALED.fewest && Number.isFinite(middle) &&
    Math.abs(middle) >= SCALED.least && near.length >= SCALED.nearly * shares.length;
}

/** The values nearest to the exact ones that 16 bits round to a result: of the nearest number the exact one itself. */
export function beforeRounding(
  { subject, values }: Reference,
  result: HostData,
  results: "f16" | "bf16",
): Float64Array<ArrayBuffer> {
  const strides = resultStrides(subject);
  const before = Float64Array.from(result);
  values.forEach((exact, index) => {
    const place = unravelIndex(index, subject.shape)
      .reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
    const got = before[place]!;
    if (Number.isNaN(got) || !Number.isFinite(exact)) return;
    // To an infinity round all numbers from halfway to the power of two above the largest one.
    const end = aboveLargest({ result: results });
    const number = Math.max(-end, Math.min(end, got));
    const edge = (number + besides(number, exact > number, results)) / 2;
    // Beyond the edge the exact value would round to another number.
    if (exact > number) before[place] = got === Infinity ? exact : Math.min(exact, edge);
    else before[place] = got === -Infinity ? exact : Math.max(exact, edge);
  });
  return before;
}

/** Bits behind the first one, and the exponent of the smallest normal number. */
const FORMATS = { f16: { bits: 10, least: -14 }, bf16: { bits: 7, least: -126 } } as const;

/** The number of 16 bits next to one of them. */
export function besides(value: number, above: boolean, results: "f16" | "bf16"): number {
  const { bits, least } = FORMATS[results];
  const exponent = Math.max(least, exponentOf(value));
  // Below a power of two numbers are closer.
  const inward = above !== value > 0 && exponent > least && Math.abs(value) === 2 ** exponent;
  const step = 2 ** (exponent - bits - (inward ? 1 : 0));
  return above ? value + step : value - step;
}
