import { type Reference, resultStrides } from "../run/check.ts";
import type { HostData } from "../run/subject.ts";
import { unravelIndex } from "../tensor/tensor.ts";

/** Outputs, and what they should be. */
export interface SampledOutputs {
  /** Canonical and flat. */
  readonly indices: readonly number[];
  readonly got: readonly number[];
  readonly expected: readonly number[];
  /** Σ|a||b| */
  readonly magnitudes: readonly number[];
}

/**
 * Up to `count` finite outputs of those that a reference has, spread over them.
 *
 * @param first Others that come before, by their canonical indices.
 */
export function sampledOutputs(
  { subject, values, magnitudes, indices: sampled }: Reference,
  result: HostData,
  count: number,
  first: readonly number[] = [],
): SampledOutputs {
  const strides = resultStrides(subject);
  const places = new Map(sampled && Array.from(sampled, (index, at) => [index, at]));
  const any = spread(values.length, count).map((at) => sampled?.[at] ?? at);
  const all = [...new Set([...first, ...any])].map((index) => ({
    index,
    at: sampled === undefined ? index : places.get(index)!,
    got: result[
      unravelIndex(index, subject.shape).reduce((sum, at, axis) => sum + at * strides[axis]!, 0)
    ]!,
  })).map((one) => ({ ...one, expected: values[one.at]!, magnitude: magnitudes[one.at]! })).filter((
    { got, expected },
  ) => Number.isFinite(got) && Number.isFinite(expected));
  return {
    indices: all.map(({ index }) => index),
    got: all.map(({ got }) => got),
    expected: all.map(({ expected }) => expected),
    magnitudes: all.map(({ magnitude }) => magnitude),
  };
}

/** Up to `count` of the first `total` whole numbers, spread over them. */
export function spread(total: number, count: number): number[] {
  if (total <= count) return Array.from({ length: total }, (_, i) => i);
  return Array.from({ length: count }, (_, i) => Math.floor((i + 0.5) * total / count));
}
