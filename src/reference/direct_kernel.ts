import type { Geometry, HostArray } from "./geometry.ts";

/** Computes results `start` to `end`; see {@linkcode makeDirect}. */
export type Direct = (
  geometry: Geometry,
  first: HostArray,
  second: HostArray,
  indices: Float64Array | undefined,
  start: number,
  end: number,
  values: Float64Array,
  magnitudes: Float64Array,
) => void;

/**
 * Makes the kernel that computes each output by itself, reading both operands where they lie: for samples,
 * and for depthwise problems, where packing does not pay. Entry i of `values` and `magnitudes` is the
 * result at canonical flat index `indices[i]`, or i where there is no list.
 *
 * Every output is a dot product over four loops (channel or batch, three spatial axes) with constant
 * strides in both operands: taps that fall outside are cut off the loops' ends. Self-contained.
 */
export function makeDirect(): Direct {
  /** One of the four loops: its steps in the two operands, and for each coordinate of the result where it runs. */
  interface Loop {
    readonly firstStep: number;
    readonly secondStep: number;
    readonly most: number;
    readonly counts: Int32Array;
    readonly firstStarts: Int32Array;
    readonly secondStarts: Int32Array;
  }

  const gcd = (a: number, b: number): number => b === 0 ? a : gcd(b, a % b);

  // One loop of `size` coordinates; `run` gives the count and where the operands start at each, in elements.
  function makeLoop(
    size: number,
    firstStep: number,
    secondStep: number,
    run: (at: number) => [number, number, number],
  ): Loop {
    const counts = new Int32Array(size);
    const firstStarts = new Int32Array(size);
    const secondStarts = new Int32Array(size);
    let most = 0;
    for (let at = 0; at < size; at++) {
      const [count, first, second] = run(at);
      counts[at] = count;
      firstStarts[at] = first;
      secondStarts[at] = second;
      most = Math.max(most, count);
    }
    return { firstStep, secondStep, most, counts, firstStarts, secondStarts };
  }

  function axisLoop(g: Geometry, axis: number): Loop {
    const s = g.stride[axis]!, d = g.dilation[axis]!, pad = g.padding[axis]!;
    const inSize = g.inputSize[axis]!, outSize = g.outputSize[axis]!, taps = g.filterSize[axis]!;
    const inStride = g.inputStrides[axis + 2]!;
    const outStride = g.outputStrides[axis + 2]!;
    const tapStride = g.filterStrides[axis + 2]!;
    // Steps 0, 1, ... of `limit` for which base + step·pace lies in the input.
    const inside = (
      base: number,
      pace: number,
      limit: number,
      stride: number,
    ): [number, number, number] => {
      const low = Math.max(0, Math.ceil(-base / pace));
      const high = Math.min(limit - 1, Math.floor((inSize - 1 - base) / pace));
      return [Math.max(0, high - low + 1), (base + low * pace) * inStride, low * stride];
    };
    if (g.op === "fwd") {
      return makeLoop(
        outSize,
        d * inStride,
        tapStride,
        (at) => inside(at * s - pad, d, taps, tapStride),
      );
    }
    if (g.op === "bwd-filter") {
      return makeLoop(
        taps,
        s * inStride,
        outStride,
        (at) => inside(at * d - pad, s, outSize, outStride),
      );
    }
    // Output position (at + pad − tap·d) / s: every (s / gcd)-th tap divides.
    const common = gcd(s, d);
    return makeLoop(inSize, -(d / common) * outStride, (s / common) * tapStride, (at) => {
      const meets = (tap: number) => {
        const rest = at + pad - tap * d;
        return rest >= 0 && rest % s === 0 && rest / s < outSize;
      };
      let tap = 0;
      while (tap < taps && !meets(tap)) tap++;
      let count = 0;
      for (let next = tap; next < taps && meets(next); next += s / common) count++;
      return [count, count === 0 ? 0 : (at + pad - tap * d) / s * outStride, tap * tapStride];
    });
  }

  // The loop that no spatial axis is: over the group's channels, or over the batch.
  function outerLoop(g: Geometry): Loop {
    const [count, firstStep, secondStep] = g.op === "fwd"
      ? [g.inChannels, g.inputStrides[1]!, g.filterStrides[1]!]
      : g.op === "bwd-data"
      ? [g.outChannels, g.outputStrides[1]!, g.filterStrides[0]!]
      : [g.batch, g.inputStrides[0]!, g.outputStrides[0]!];
    return makeLoop(1, firstStep, secondStep, () => [count, 0, 0]);
  }

  // Where the operands start for batch (or output channel) `outer` and channel `channel` of the result.
  function firstStart(g: Geometry, outer: number, channel: number): number {
    if (g.op === "fwd") {
      const group = Math.floor(channel / g.outChannels);
      return outer * g.inputStrides[0]! + group * g.inChannels * g.inputStrides[1]!;
    }
    if (g.op === "bwd-data") {
      const group = Math.floor(channel / g.inChannels);
      return outer * g.outputStrides[0]! + group * g.outChannels * g.outputStrides[1]!;
    }
    const group = Math.floor(outer / g.outChannels);
    return (group * g.inChannels + channel) * g.inputStrides[1]!;
  }

  function secondStart(g: Geometry, outer: number, channel: number): number {
    if (g.op === "fwd") return channel * g.filterStrides[0]!;
    if (g.op === "bwd-filter") return outer * g.outputStrides[1]!;
    const group = Math.floor(channel / g.inChannels);
    return group * g.outChannels * g.filterStrides[0]! +
      (channel - group * g.inChannels) * g.filterStrides[1]!;
  }

  return (g, first, second, indices, start, end, values, magnitudes) => {
    const axes: readonly [Loop, Loop, Loop] = [axisLoop(g, 0), axisLoop(g, 1), axisLoop(g, 2)];
    const [n0, n1, n2] = axes.map((loop) => loop.counts.length) as [number, number, number];
    const channels = g.op === "fwd"
      ? g.outChannels * g.groups
      : g.op === "bwd-data"
      ? g.inChannels * g.groups
      : g.inChannels;
    // Longest strides outside, so that the innermost loop walks neighbours; loops of one step outermost.
    const weight = (loop: Loop) => loop.most > 1 ? Math.abs(loop.firstStep) : Infinity;
    const loops = [outerLoop(g), ...axes].sort((a, b) => weight(b) > weight(a) ? 1 : -1);
    const [l0, l1, l2, l3] = loops as [Loop, Loop, Loop, Loop];
    // Integers for the engine's sake: arrays have fewer than 2³¹ elements.
    const a0 = l0.firstStep | 0, a1 = l1.firstStep | 0, a2 = l2.firstStep | 0;
    const a3 = l3.firstStep | 0;
    const b0 = l0.secondStep | 0, b1 = l1.secondStep | 0, b2 = l2.secondStep | 0;
    const b3 = l3.secondStep | 0;
    const at0 = axes.indexOf(l0), at1 = axes.indexOf(l1), at2 = axes.indexOf(l2);
    const at3 = axes.indexOf(l3);
    for (let result = start; result < end; result++) {
      const index = indices === undefined ? result : indices[result]!;
      const r2 = Math.floor(index / n2), x2 = index - r2 * n2;
      const r1 = Math.floor(r2 / n1), x1 = r2 - r1 * n1;
      const r0 = Math.floor(r1 / n0), x0 = r1 - r0 * n0;
      const outer = Math.floor(r0 / channels), channel = r0 - outer * channels;
      const aStart = firstStart(g, outer, channel) + axes[0].firstStarts[x0]! +
        axes[1].firstStarts[x1]! + axes[2].firstStarts[x2]!;
      const bStart = secondStart(g, outer, channel) + axes[0].secondStarts[x0]! +
        axes[1].secondStarts[x1]! + axes[2].secondStarts[x2]!;
      const c0 = l0.counts[at0 === 0 ? x0 : at0 === 1 ? x1 : at0 === 2 ? x2 : 0]!;
      const c1 = l1.counts[at1 === 0 ? x0 : at1 === 1 ? x1 : at1 === 2 ? x2 : 0]!;
      const c2 = l2.counts[at2 === 0 ? x0 : at2 === 1 ? x1 : at2 === 2 ? x2 : 0]!;
      const c3 = l3.counts[at3 === 0 ? x0 : at3 === 1 ? x1 : at3 === 2 ? x2 : 0]!;
      let sum = 0, absolute = 0;
      for (let i0 = 0; i0 < c0; i0++) {
        for (let i1 = 0; i1 < c1; i1++) {
          for (let i2 = 0; i2 < c2; i2++) {
            let i = (aStart + i0 * a0 + i1 * a1 + i2 * a2) | 0;
            let j = (bStart + i0 * b0 + i1 * b1 + i2 * b2) | 0;
            for (let i3 = 0; i3 < c3; i3++, i = (i + a3) | 0, j = (j + b3) | 0) {
              const product = first[i]! * second[j]!;
              sum += product;
              absolute += Math.abs(product);
            }
          }
        }
      }
      values[result] = sum;
      magnitudes[result] = absolute;
    }
  };
}
