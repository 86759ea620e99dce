import { InputTypeError } from "../errors.ts";
import { rowMajorStrides, type Tensor } from "../tensor/tensor.ts";
import { measureAccuracy } from "./measure.ts";
import { F16, F32, F64 } from "./precision.ts";
import type { AccuracyReport } from "./report.ts";

/**
 * The metrics between two tensors of one shape. Nothing is known of the sums they were made by, so |ref|
 * stands in for Σ|a||b|: the bound ratio is the largest relative error in roundings of `got`'s dtype, and
 * infinite where `ref` is 0 and `got` is not. Axis 1 counts as channels, where there is one.
 *
 * @throws {TypeError} if the shapes differ.
 * @example
 * ```ts
 * import { compareTensors, tensor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const ref = tensor("f32", [2], new Float32Array([1, 2]));
 * const got = tensor("f32", [2], new Float32Array([1, 2.5]));
 * assert.equal(compareTensors(got, ref).max_rel, 0.25);
 * ```
 */
export function compareTensors(got: Tensor, ref: Tensor): AccuracyReport {
  const { shape } = ref;
  if (got.shape.length !== shape.length || got.shape.some((size, axis) => size !== shape[axis])) {
    throw new InputTypeError(`Cannot compare tensors: shapes are [${got.shape}] and [${shape}]`);
  }
  const values = numbers(ref);
  return measureAccuracy(numbers(got), { values, magnitudes: values.map(Math.abs), shape }, {
    strides: rowMajorStrides(shape),
    precision: got.dtype === "f64" ? F64 : got.dtype === "f16" ? F16 : F32,
  }).report;
}

function numbers({ data }: Tensor): Float64Array {
  const values = new Float64Array(data.length);
  for (let i = 0; i < values.length; i++) values[i] = Number(data[i]!);
  return values;
}
