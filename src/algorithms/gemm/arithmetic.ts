import type { Accumulation } from "../../kernels/micro_kernel.ts";
import { type StorageElement, sumElement } from "../../kernels/module.ts";
import type { Scalar } from "../../kernels/scalar.ts";
import type { GemmAccumulate, GemmDType } from "../../problem/gemm_problem.ts";

/** What a product's tensors, tiles and sums are made of. */
export interface GemmElements {
  /** Name of kernels up to the tile. */
  readonly trait: string;
  /** A and B in memory; words of four int8 are `u32`. */
  readonly operand: StorageElement;
  /** The other tensors. */
  readonly result: StorageElement;
  /** A and B in workgroup memory. */
  readonly tile: Scalar;
  readonly accumulation: Accumulation;
  /** Of the epilogue, and of partial results where the depth is split. */
  readonly sum: StorageElement;
  /** Elements of the depth that one of `operand` holds. */
  readonly packed: 1 | 4;
}

/**
 * The elements of a dtype.
 *
 * @param halfTile f16 stays f16 in workgroup memory where it is summed in f32.
 */
export function gemmElements(
  dtype: GemmDType,
  accumulate: GemmAccumulate = "f32",
  halfTile = false,
): GemmElements {
  if (dtype === "i8") {
    return {
      trait: "gemm_i8",
      operand: "u32",
      result: "i32",
      tile: "u32",
      accumulation: "i32",
      sum: "i32",
      packed: 4,
    };
  }
  const chained = dtype === "f16" && accumulate === "f16";
  const tile = dtype === "f16" && (chained || halfTile) ? "f16" : sumElement(dtype);
  return {
    trait: chained ? "gemm_f16_sum16" : `gemm_${dtype}`,
    operand: dtype,
    result: dtype,
    tile,
    accumulation: chained ? "f16" : dtype === "f64" ? "f64" : "f32",
    sum: sumElement(dtype),
    packed: 1,
  };
}
