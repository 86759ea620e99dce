import {
  type FilterLayout,
  type Layout,
  layoutAxes,
  permute,
  stridesInLayout,
} from "../tensor/layout.ts";
import { tensor, unravelIndex } from "../tensor/tensor.ts";

/** Rounds values in canonical order to f32, laid out as `layout`. */
export function fromCanonical(
  values: Float64Array,
  shape: readonly number[],
  layout: Layout | FilterLayout,
): Float32Array<ArrayBuffer> {
  const canonical = tensor("f32", shape, Float32Array.from(values));
  return permute(canonical, layoutAxes(layout, shape.length - 2)).data;
}

/** Picks the elements at canonical flat indices out of a tensor that lies in memory as `layout`. */
export function pickCanonical(
  data: Float32Array,
  indices: Float64Array,
  shape: readonly number[],
  layout: Layout | FilterLayout,
): Float32Array<ArrayBuffer> {
  const strides = stridesInLayout(shape, layout);
  return Float32Array.from(indices, (index) => {
    const at = unravelIndex(index, shape);
    return data[at.reduce((offset, place, axis) => offset + place * strides[axis]!, 0)]!;
  });
}
