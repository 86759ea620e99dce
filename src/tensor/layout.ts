import { expectWord } from "../expect.ts";
import { arrayConstructor, type DType, type TensorData } from "./dtype.ts";
import { rowMajorStrides, type Tensor, tensor } from "./tensor.ts";

/**
 * Order of the axes of activations (input and output), outermost first. With 1 or 3 spatial axes the
 * same names stand for ncw and ncdhw, nwc and ndhwc, cwn and cdhwn.
 */
export type Layout = "nchw" | "nhwc" | "chwn";

/** Order of the axes of a filter: K output channels, C input channels of a group, R S the spatial axes. */
export type FilterLayout = "kcrs" | "krsc" | "crsk";

/** Order of the axes of a filter in a file: `rsck` is TensorFlow's and JAX's HWIO, which is brought to one of the others to be run. */
export type FileFilterLayout = FilterLayout | "rsck";

/** All three, in the order of help texts. */
export const LAYOUTS: readonly Layout[] = ["nchw", "nhwc", "chwn"];
/** All three; each goes with the layout at its place in `LAYOUTS`. */
export const FILTER_LAYOUTS: readonly FilterLayout[] = ["kcrs", "krsc", "crsk"];
/** Those, and what is read and written too. */
export const FILE_FILTER_LAYOUTS: readonly FileFilterLayout[] = [...FILTER_LAYOUTS, "rsck"];

/** The names with as many spatial axes as a tensor of one or three has. */
export const LAYOUT_ALIASES: Readonly<Record<string, Layout | FileFilterLayout>> = {
  ncw: "nchw",
  nwc: "nhwc",
  cwn: "chwn",
  ncdhw: "nchw",
  ndhwc: "nhwc",
  cdhwn: "chwn",
  kcs: "kcrs",
  ksc: "krsc",
  csk: "crsk",
  kctrs: "kcrs",
  ktrsc: "krsc",
  ctrsk: "crsk",
  sck: "rsck",
  trsck: "rsck",
};

/**
 * The filter layout that goes with an activation layout (DESIGN.md, Vocabulary).
 * @example
 * ```ts
 * import { filterLayoutFor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * assert.equal(filterLayoutFor("nhwc"), "krsc");
 * ```
 */
export function filterLayoutFor(layout: Layout): FilterLayout {
  return layout === "nchw" ? "kcrs" : layout === "nhwc" ? "krsc" : "crsk";
}

/**
 * Axis permutation of a layout: entry i is the canonical axis (0 outer = N or K, 1 = C, 2.. spatial)
 * that stands at place i in memory.
 *
 * @throws {RangeError} for what is no layout.
 */
export function layoutAxes(layout: Layout | FileFilterLayout, spatialRank: number): number[] {
  expectWord("Cannot lay out a tensor", "layout", layout, [...LAYOUTS, ...FILE_FILTER_LAYOUTS]);
  const spatial = Array.from({ length: spatialRank }, (_, axis) => 2 + axis);
  switch (layout) {
    case "nchw":
    case "kcrs":
      return [0, 1, ...spatial];
    case "nhwc":
    case "krsc":
      return [0, ...spatial, 1];
    case "chwn":
    case "crsk":
      return [1, ...spatial, 0];
    case "rsck":
      return [...spatial, 1, 0];
  }
}

/** Shape in memory order of a tensor whose canonical shape is [N, C, spatial...] (or [K, C, spatial...]). */
export function shapeInLayout(
  canonical: readonly number[],
  layout: Layout | FileFilterLayout,
): number[] {
  return layoutAxes(layout, canonical.length - 2).map((axis) => canonical[axis]!);
}

/** Canonical shape [N, C, spatial...] of a tensor that lies in memory as `shape` in `layout`. */
export function canonicalShape(
  shape: readonly number[],
  layout: Layout | FileFilterLayout,
): number[] {
  const canonical = new Array<number>(shape.length);
  layoutAxes(layout, shape.length - 2).forEach((axis, place) => canonical[axis] = shape[place]!);
  return canonical;
}

/** Strides in elements, one per canonical axis, of a tensor with canonical shape `canonical` in `layout`. */
export function stridesInLayout(
  canonical: readonly number[],
  layout: Layout | FileFilterLayout,
): number[] {
  const memory = rowMajorStrides(shapeInLayout(canonical, layout));
  const strides = new Array<number>(canonical.length);
  layoutAxes(layout, canonical.length - 2).forEach((axis, place) => strides[axis] = memory[place]!);
  return strides;
}

/** Copies `source` with its axes permuted: axis i of the result is axis `axes[i]` of the source. */
export function permute<D extends DType>(source: Tensor<D>, axes: readonly number[]): Tensor<D> {
  if (axes.every((axis, place) => axis === place)) return source;
  const shape = axes.map((axis) => source.shape[axis]!);
  const sourceStrides = rowMajorStrides(source.shape);
  const strides = axes.map((axis) => sourceStrides[axis]!);
  const data = new (arrayConstructor(source.dtype))(source.data.length);
  const from: TensorData = source.data;
  const to: TensorData = data;
  const rank = shape.length;
  const innerSize = rank > 0 ? shape[rank - 1]! : 1;
  const innerStride = rank > 0 ? strides[rank - 1]! : 0;
  const index = new Array<number>(rank).fill(0);
  let offset = 0;
  for (let out = 0; out < to.length; out += innerSize) {
    for (let i = 0; i < innerSize; i++) to[out + i] = from[offset + i * innerStride]!;
    for (let axis = rank - 2; axis >= 0; axis--) {
      index[axis]! += 1;
      offset += strides[axis]!;
      if (index[axis]! < shape[axis]!) break;
      offset -= strides[axis]! * shape[axis]!;
      index[axis] = 0;
    }
  }
  return tensor(source.dtype, shape, data);
}

/**
 * Copies a tensor from one layout to another, shape and data in that order; the same object when nothing changes.
 *
 * @throws {RangeError} for what is no layout.
 * @example
 * ```ts
 * import { convertLayout, tensor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * // One image of 1 x 2 places and two channels, each of which lies together in nchw.
 * const image = tensor("f32", [1, 2, 1, 2], new Float32Array([1, 2, 10, 20]));
 * const { shape, data } = convertLayout(image, "nchw", "nhwc");
 * assert.deepEqual(shape, [1, 1, 2, 2]);
 * assert.deepEqual([...data], [1, 10, 2, 20]);
 * ```
 */
export function convertLayout<D extends DType, L extends Layout | FileFilterLayout>(
  source: Tensor<D>,
  from: L,
  to: L,
): Tensor<D> {
  return permute(source, convertedAxes(from, to, source.shape.length - 2));
}

/** Axis permutation from one layout to another: axis i of the one that is made is axis `axes[i]` of the other. */
export function convertedAxes<L extends Layout | FileFilterLayout>(
  from: L,
  to: L,
  spatialRank: number,
): number[] {
  const places = layoutAxes(from, spatialRank);
  return layoutAxes(to, spatialRank).map((axis) => places.indexOf(axis));
}
