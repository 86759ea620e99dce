import { InputRangeError } from "../errors.ts";
import { arrayConstructor, type DType, type TensorData, type TypedArrayOf } from "./dtype.ts";

/** A dense host tensor in C (row-major) order. What its axes mean is said by a {@linkcode Layout} beside it. */
export interface Tensor<D extends DType = DType> {
  /** Element type. */
  readonly dtype: D;
  /** Sizes, outermost first; empty for a scalar. */
  readonly shape: readonly number[];
  /** The elements, the last axis fastest. */
  readonly data: TypedArrayOf<D>;
}

/** Number of elements of `shape`; 1 for a scalar's empty shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/**
 * Wraps `data` as a tensor.
 *
 * @throws {RangeError} if a size is negative or fractional, or `data` has another number of elements than `shape`.
 * @example
 * ```ts
 * import { tensor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const { shape, data } = tensor("f32", [2, 2], new Float32Array([1, 2, 3, 4]));
 * assert.deepEqual(shape, [2, 2]);
 * assert.equal(data[3], 4);
 * ```
 */
export function tensor<D extends DType>(
  dtype: D,
  shape: readonly number[],
  data: TypedArrayOf<D>,
): Tensor<D> {
  if (shape.some((size) => !Number.isSafeInteger(size) || size < 0)) {
    throw new InputRangeError(`Cannot make a tensor: shape [${shape}] is not made of sizes >= 0`);
  }
  const count = elementCount(shape);
  if ((data as TensorData).length !== count) {
    throw new InputRangeError(
      `Cannot make a tensor: shape [${shape}] has ${count} elements, data has ${data.length}`,
    );
  }
  return { dtype, shape: [...shape], data };
}

/** A tensor of zeros. */
export function zeros<D extends DType>(dtype: D, shape: readonly number[]): Tensor<D> {
  return tensor(dtype, shape, new (arrayConstructor(dtype))(elementCount(shape)));
}

/** Row-major strides of `shape`, in elements. */
export function rowMajorStrides(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis]!;
  }
  return strides;
}

/** The multi-dimensional index of flat element `offset` of `shape`. */
export function unravelIndex(offset: number, shape: readonly number[]): number[] {
  const index = new Array<number>(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis]!;
    index[axis] = offset % size;
    offset = Math.floor(offset / size);
  }
  return index;
}
