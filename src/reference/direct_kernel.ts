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
  // Loop 3 is the innermost.
  const counts = new Int32Array(4);
  const firstSteps = new Float64Array(4);
  const secondSteps = new Float64Array(4);
  let firstStart = 0;
  let secondStart = 0;
  let magnitude = 0;

  const gcd = (a: number, b: number): number => b === 0 ? a : gcd(b, a % b);

  // The loop of spatial axis `axis` for result coordinate `at`: 0 counts where nothing is inside.
  function axisLoop(g: Geometry, axis: number, at: number): void {
    const s = g.stride[axis]!, d = g.dilation[axis]!, pad = g.padding[axis]!;
    const inSize = g.inputSize[axis]!, outSize = g.outputSize[axis]!, taps = g.filterSize[axis]!;
    const inStride = g.inputStrides[axis + 2]!;
    const outStride = g.outputStrides[axis + 2]!;
    const tapStride = g.filterStrides[axis + 2]!;
    if (g.op === "fwd") {
      const base = at * s - pad;
      const low = Math.max(0, Math.ceil(-base / d));
      const high = Math.min(taps - 1, Math.floor((inSize - 1 - base) / d));
      counts[axis + 1] = Math.max(0, high - low + 1);
      firstSteps[axis + 1] = d * inStride;
      secondSteps[axis + 1] = tapStride;
      firstStart += (base + low * d) * inStride;
      secondStart += low * tapStride;
    } else if (g.op === "bwd-filter") {
      const base = at * d - pad;
      const low = Math.max(0, Math.ceil(-base / s));
      const high = Math.min(outSize - 1, Math.floor((inSize - 1 - base) / s));
      counts[axis + 1] = Math.max(0, high - low + 1);
      firstSteps[axis + 1] = s * inStride;
      secondSteps[axis + 1] = outStride;
      firstStart += (base + low * s) * inStride;
      secondStart += low * outStride;
    } else {
      // Output position (at + pad − tap·d) / s: every (s / gcd)-th tap divides.
      const common = gcd(s, d);
      const base = at + pad;
      const inside = (tap: number) => {
        const rest = base - tap * d;
        return rest >= 0 && rest % s === 0 && rest / s < outSize;
      };
      let tap = 0;
      while (tap < taps && !inside(tap)) tap++;
      let count = 0;
      for (let next = tap; next < taps && inside(next); next += s / common) count++;
      counts[axis + 1] = count;
      firstSteps[axis + 1] = -(d / common) * outStride;
      secondSteps[axis + 1] = (s / common) * tapStride;
      firstStart += ((base - tap * d) / s) * outStride;
      secondStart += tap * tapStride;
    }
  }

  // Longest strides outside, so that the innermost loop walks neighbours; loops of one step outermost.
  function sortLoops(): void {
    const weight = (loop: number) => counts[loop]! > 1 ? Math.abs(firstSteps[loop]!) : Infinity;
    for (let i = 1; i < 4; i++) {
      for (let j = i; j > 0 && weight(j) > weight(j - 1); j--) {
        for (const list of [counts, firstSteps, secondSteps]) {
          const swap = list[j]!;
          list[j] = list[j - 1]!;
          list[j - 1] = swap;
        }
      }
    }
  }

  function dot(a: HostArray, b: HostArray): number {
    const n0 = counts[0]!, n1 = counts[1]!, n2 = counts[2]!, n3 = counts[3]!;
    const a3 = firstSteps[3]!, b3 = secondSteps[3]!;
    let sum = 0, absolute = 0;
    for (let i0 = 0; i0 < n0; i0++) {
      for (let i1 = 0; i1 < n1; i1++) {
        for (let i2 = 0; i2 < n2; i2++) {
          let i = firstStart + i0 * firstSteps[0]! + i1 * firstSteps[1]! + i2 * firstSteps[2]!;
          let j = secondStart + i0 * secondSteps[0]! + i1 * secondSteps[1]! + i2 * secondSteps[2]!;
          for (let i3 = 0; i3 < n3; i3++, i += a3, j += b3) {
            const product = a[i]! * b[j]!;
            sum += product;
            absolute += Math.abs(product);
          }
        }
      }
    }
    magnitude = absolute;
    return sum;
  }

  return (g, first, second, indices, start, end, values, magnitudes) => {
    const spatial = g.op === "fwd"
      ? g.outputSize
      : g.op === "bwd-data"
      ? g.inputSize
      : g.filterSize;
    const channels = g.op === "fwd"
      ? g.outChannels * g.groups
      : g.op === "bwd-data"
      ? g.inChannels * g.groups
      : g.inChannels;
    for (let i = start; i < end; i++) {
      let rest = indices === undefined ? i : indices[i]!;
      firstStart = 0;
      secondStart = 0;
      for (let axis = 2; axis >= 0; axis--) {
        const size = spatial[axis]!;
        const outer = Math.floor(rest / size);
        axisLoop(g, axis, rest - outer * size);
        rest = outer;
      }
      const outer = Math.floor(rest / channels);
      const channel = rest - outer * channels;
      if (g.op === "fwd") {
        const group = Math.floor(channel / g.outChannels);
        counts[0] = g.inChannels;
        firstSteps[0] = g.inputStrides[1]!;
        secondSteps[0] = g.filterStrides[1]!;
        firstStart += outer * g.inputStrides[0]! + group * g.inChannels * g.inputStrides[1]!;
        secondStart += channel * g.filterStrides[0]!;
      } else if (g.op === "bwd-data") {
        const group = Math.floor(channel / g.inChannels);
        counts[0] = g.outChannels;
        firstSteps[0] = g.outputStrides[1]!;
        secondSteps[0] = g.filterStrides[0]!;
        firstStart += outer * g.outputStrides[0]! + group * g.outChannels * g.outputStrides[1]!;
        secondStart += group * g.outChannels * g.filterStrides[0]! +
          (channel - group * g.inChannels) * g.filterStrides[1]!;
      } else {
        const group = Math.floor(outer / g.outChannels);
        counts[0] = g.batch;
        firstSteps[0] = g.inputStrides[0]!;
        secondSteps[0] = g.outputStrides[0]!;
        firstStart += (group * g.inChannels + channel) * g.inputStrides[1]!;
        secondStart += outer * g.outputStrides[1]!;
      }
      sortLoops();
      values[i] = dot(first, second);
      magnitudes[i] = magnitude;
    }
  };
}
