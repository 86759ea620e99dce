import type { Geometry, HostArray, Triple } from "./geometry.ts";

/** Adds up, for each output that is wanted, the products of two operands of ones and zeros. */
type CountTerms = (
  geometry: Geometry,
  first: HostArray,
  second: HostArray,
) => Promise<Float64Array>;

const ONE = Uint8Array.of(1);
const NO_STRIDES = [0, 0, 0, 0, 0];

/**
 * Marks outputs whose sums have a term of padding times NaN or an infinity. Padding's zeros are no part of a convolution, and a
 * kernel may leave them out or multiply them, which gives NaN: either is right. Nothing where no output has such a term.
 *
 * Terms are counted: those of the operand's values that are not finite, with the padding and without it.
 *
 * @param first The operand that filters or gradients slide over; `second` is the other.
 */
export async function paddedTerms(
  g: Geometry,
  first: HostArray,
  second: HostArray,
  count: CountTerms,
): Promise<Uint8Array | undefined> {
  const counts: (readonly [all: Float64Array, some: Float64Array])[] = [];
  const inSecond = unboundedMarks(second);
  if (inSecond !== undefined) {
    const countSecond = (of: Geometry) => count(flat(of, "first"), ONE, inSecond);
    counts.push([await countSecond(allInside(g)), await countSecond(g)]);
  }
  const wide = widened(g);
  const inFirst = wide && unboundedMarks(first);
  if (inFirst !== undefined) {
    const countFirst = (of: Geometry) => count(flat(of, "second"), inFirst, ONE);
    counts.push([await countFirst(wide!), await countFirst(g)]);
  }
  const marks = new Uint8Array(counts[0]?.[0].length ?? 0);
  for (const [all, some] of counts) {
    all.forEach((terms, i) => {
      if (terms > some[i]!) marks[i] = 1;
    });
  }
  return marks.includes(1) ? marks : undefined;
}

/** 1 where a value is NaN or infinite; nothing where none is. */
function unboundedMarks(values: HostArray): Uint8Array | undefined {
  let at = 0;
  while (at < values.length && Number.isFinite(values[at])) at++;
  if (at === values.length) return undefined;
  const marks = new Uint8Array(values.length);
  for (; at < values.length; at++) marks[at] = Number.isFinite(values[at]) ? 0 : 1;
  return marks;
}

/** The geometry with one operand of a single element that stands for all. */
function flat(g: Geometry, which: "first" | "second"): Geometry {
  const first = g.op === "bwd-data" ? "outputStrides" : "inputStrides";
  const second = g.op === "bwd-filter" ? "outputStrides" : "filterStrides";
  return { ...g, [which === "first" ? first : second]: NO_STRIDES };
}

/** The geometry with a first operand so large that every tap meets it: its padding, and what strides leave out, are elements. */
function allInside(g: Geometry): Geometry {
  const reach = map3((axis) => (g.filterSize[axis]! - 1) * g.dilation[axis]!);
  return g.op === "bwd-data"
    ? {
      ...g,
      stride: [1, 1, 1],
      padding: reach,
      outputSize: map3((axis) => g.inputSize[axis]! + reach[axis]!),
    }
    : {
      ...g,
      padding: [0, 0, 0],
      inputSize: map3((axis) => (g.outputSize[axis]! - 1) * g.stride[axis]! + reach[axis]! + 1),
    };
}

/**
 * The geometry with zeros about the second operand that kernels multiply: about a filter those of its neighbours' taps, where
 * backward-data's classes of a stride share a window; about the rows of an output's gradient all that an input's row meets.
 * Nothing where there are none.
 */
function widened(g: Geometry): Geometry | undefined {
  if (g.op === "fwd") return undefined;
  if (g.op === "bwd-data") {
    const more = map3((axis) => g.dilation[axis] === 1 ? g.stride[axis]! - 1 : 0);
    if (more.every((taps) => taps === 0)) return undefined;
    return {
      ...g,
      filterSize: map3((axis) => g.filterSize[axis]! + 2 * more[axis]!),
      padding: map3((axis) => g.padding[axis]! + more[axis]!),
    };
  }
  const [stride, padding, size] = [g.stride[2], g.padding[2], g.outputSize[2]];
  const reach = (g.filterSize[2] - 1) * g.dilation[2];
  const before = Math.max(0, Math.ceil((reach - padding) / stride));
  const after = Math.max(0, Math.floor((g.inputSize[2] - 1 + padding) / stride) + 1 - size);
  if (before + after === 0) return undefined;
  return {
    ...g,
    padding: [g.padding[0], g.padding[1], padding + before * stride],
    outputSize: [g.outputSize[0], g.outputSize[1], before + size + after],
  };
}

function map3(value: (axis: number) => number): Triple {
  return [value(0), value(1), value(2)];
}
