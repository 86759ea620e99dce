import type { ReferenceResult } from "../reference/reference.ts";

/**
 * The reference of an algorithm that mixes neighbouring outputs' data (Winograd): Σ|a||b| of an output, which its
 * errors are measured by, is at least the root of the mean square of its channel's. An output whose own products are
 * tiny, or all 0 on padding, has the rounding errors of its tile.
 */
export function mixedReference(reference: ReferenceResult, channelAxis: number): ReferenceResult {
  const { shape, magnitudes, indices } = reference;
  const channels = shape[channelAxis] ?? 1;
  const stride = shape.slice(channelAxis + 1).reduce((product, size) => product * size, 1);
  const squares = new Float64Array(channels);
  const counts = new Float64Array(channels);
  const channelOf = (i: number) => Math.floor((indices?.[i] ?? i) / stride) % channels;
  for (let i = 0; i < magnitudes.length; i++) {
    const magnitude = magnitudes[i]!;
    if (!Number.isFinite(magnitude)) continue;
    squares[channelOf(i)]! += magnitude * magnitude;
    counts[channelOf(i)]!++;
  }
  const floors = squares.map((square, channel) =>
    Math.sqrt(square / Math.max(1, counts[channel]!))
  );
  return {
    ...reference,
    magnitudes: magnitudes.map((magnitude, i) => Math.max(magnitude, floors[channelOf(i)]!)),
  };
}
