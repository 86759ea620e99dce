import { type FilterLayout, type Layout, layoutAxes, permute } from "../tensor/layout.ts";
import { tensor } from "../tensor/tensor.ts";

/** Rounds values in canonical order to f32, laid out as `layout`. */
export function fromCanonical(
  values: Float64Array,
  shape: readonly number[],
  layout: Layout | FilterLayout,
): Float32Array<ArrayBuffer> {
  const canonical = tensor("f32", shape, Float32Array.from(values));
  return permute(canonical, layoutAxes(layout, shape.length - 2)).data;
}
