import type { HostArray } from "./geometry.ts";

/** Elements that can be projected. */
export type ProjectedArray = HostArray | Int32Array;

/** A tensor in memory as three axes, whatever its layout: what is outside, the channels, and their places. */
export interface ChannelView {
  readonly outer: number;
  readonly channels: number;
  readonly places: number;
  /** First element, and strides of the three axes, in elements. */
  readonly offset: number;
  readonly outerStride: number;
  readonly channelStride: number;
  readonly placeStride: number;
}

/** Sums over the channels of each group, [outer, group, place]. */
export interface ChannelSums {
  /** Σ s·y */
  readonly sums: Float64Array;
  /** Σ s²·y² */
  readonly squares: Float64Array;
}

/** Places whose sums stay in the L1 cache while the channels stream by. */
const BLOCK = 1024;

/** Adds up weighted channels of `data`, `weights` one a channel; groups are runs of equally many channels. */
export function projectChannels(
  data: ProjectedArray,
  view: ChannelView,
  weights: Float64Array,
  groups: number,
): ChannelSums {
  const { outer, channels, places, outerStride, channelStride, placeStride } = view;
  const count = outer * groups * places;
  const result = { sums: new Float64Array(count), squares: new Float64Array(count) };
  if (count === 0 || channels === 0) return result;
  if (placeStride === 1 || places === 1) {
    alongPlaces(data, view, weights, groups, result);
  } else if (channelStride === 1) {
    alongChannels(data, view, weights, groups, result);
  } else if (outerStride === 1 && placeStride === outer) {
    // Places and what is outside lie together: one run of places, put in order afterwards.
    const flat = { ...view, outer: 1, places: outer * places, placeStride: 1 };
    const { sums, squares } = projectChannels(data, flat, weights, groups);
    transposed(sums, result.sums, groups, places, outer);
    transposed(squares, result.squares, groups, places, outer);
  } else {
    alongPlaces(data, view, weights, groups, result);
  }
  return result;
}

function alongPlaces(
  data: ProjectedArray,
  { outer, channels, places, offset, outerStride, channelStride, placeStride }: ChannelView,
  weights: Float64Array,
  groups: number,
  { sums, squares }: ChannelSums,
): void {
  const each = channels / groups;
  for (let at = 0; at < outer * groups; at++) {
    const group = at % groups;
    const base = offset + (at - group) / groups * outerStride + group * each * channelStride;
    for (let start = 0; start < places; start += BLOCK) {
      const end = Math.min(places, start + BLOCK);
      const from = base + start * placeStride;
      let channel = 0;
      for (; channel + 4 <= each; channel += 4) {
        addFour(
          data,
          from + channel * channelStride,
          channelStride,
          placeStride,
          weights,
          group * each + channel,
          sums,
          squares,
          at * places + start,
          at * places + end,
        );
      }
      for (; channel < each; channel++) {
        const weight = weights[group * each + channel]!;
        let i = from + channel * channelStride;
        for (let to = at * places + start; to < at * places + end; to++, i += placeStride) {
          const y = weight * data[i]!;
          sums[to]! += y;
          squares[to]! += y * y;
        }
      }
    }
  }
}

/** Four channels at once: a sum is loaded and stored once for four elements. */
function addFour(
  data: ProjectedArray,
  i: number,
  channelStride: number,
  placeStride: number,
  weights: Float64Array,
  first: number,
  sums: Float64Array,
  squares: Float64Array,
  start: number,
  end: number,
): void {
  const w0 = weights[first]!, w1 = weights[first + 1]!;
  const w2 = weights[first + 2]!, w3 = weights[first + 3]!;
  let i1 = i + channelStride, i2 = i1 + channelStride, i3 = i2 + channelStride;
  for (let to = start; to < end; to++) {
    const y0 = w0 * data[i]!, y1 = w1 * data[i1]!, y2 = w2 * data[i2]!, y3 = w3 * data[i3]!;
    sums[to]! += (y0 + y1) + (y2 + y3);
    squares[to]! += (y0 * y0 + y1 * y1) + (y2 * y2 + y3 * y3);
    i += placeStride, i1 += placeStride, i2 += placeStride, i3 += placeStride;
  }
}

function alongChannels(
  data: ProjectedArray,
  { outer, channels, places, offset, outerStride, placeStride }: ChannelView,
  weights: Float64Array,
  groups: number,
  { sums, squares }: ChannelSums,
): void {
  const each = channels / groups;
  for (let one = 0; one < outer; one++) {
    for (let place = 0; place < places; place++) {
      let i = offset + one * outerStride + place * placeStride;
      for (let group = 0; group < groups; group++) {
        let s0 = 0, s1 = 0, q0 = 0, q1 = 0;
        let channel = group * each;
        const end = channel + each;
        for (; channel + 2 <= end; channel += 2, i += 2) {
          const y0 = weights[channel]! * data[i]!, y1 = weights[channel + 1]! * data[i + 1]!;
          s0 += y0, s1 += y1;
          q0 += y0 * y0, q1 += y1 * y1;
        }
        if (channel < end) {
          const y0 = weights[channel]! * data[i++]!;
          s0 += y0;
          q0 += y0 * y0;
        }
        const to = (one * groups + group) * places + place;
        sums[to] = s0 + s1;
        squares[to] = q0 + q1;
      }
    }
  }
}

/** [group, place, outer] to [outer, group, place]. */
function transposed(
  from: Float64Array,
  to: Float64Array,
  groups: number,
  places: number,
  outer: number,
): void {
  for (let group = 0; group < groups; group++) {
    for (let one = 0; one < outer; one++) {
      const target = (one * groups + group) * places;
      let i = group * places * outer + one;
      for (let place = 0; place < places; place++, i += outer) to[target + place] = from[i]!;
    }
  }
}
