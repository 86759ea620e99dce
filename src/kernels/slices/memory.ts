import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import { type OutputLayout, outputLayoutName } from "../main_loop_variant.ts";
import { sumLinesBytes, sumLinesOf } from "./output_layout.ts";
import {
  type AcrossSides,
  sliceGrid,
  type SlicePolicy,
  slicePolicyName,
  sliceRowVectors,
  sliceThreads,
  sumLines,
} from "./policy.ts";

/**
 * Bytes of workgroup memory of a product of `slices`, whose tile holds `scalar`. A tile of f16 has no room for the sums of
 * f32 on their way to the output transform, which then have memory of their own, as in layouts of pairs.
 */
export function sliceBytes(
  policy: SlicePolicy,
  slices: number,
  across: AcrossSides,
  scalar: Scalar,
  outputLayout: OutputLayout = "threads",
): number {
  const tile = 4 * scalarBytes(scalar) * slices * policy.depth *
    sliceRowVectors(policy, across);
  if (policy.allSlices) return tile;
  const sums = scalar === "f32" ? 0 : 16 * slices * sumLines(policy, scalar) *
    sliceRowVectors(policy, []);
  return tile + sums + slices * sumLinesBytes(policy, outputLayout);
}

/**
 * Why a policy does not fit so many slices, whose sums pass through workgroup memory in a layout, whatever the device has of it;
 * undefined if it does.
 */
export function unfitPolicy(
  policy: SlicePolicy,
  slices: number,
  scalar: Scalar,
  outputLayout: OutputLayout,
): string | undefined {
  const name = `policy ${slicePolicyName(policy)}`;
  if (policy.allSlices) {
    const threads = sliceThreads(policy);
    if (threads < slices) return `${name} has ${threads} threads for ${slices} slices`;
    return outputLayout === "threads"
      ? undefined
      : `${name} passes no sums through workgroup memory, where ${
        outputLayoutName(outputLayout)
      } lays them out`;
  }
  if (outputLayout === "threads") {
    return scalar !== "f32" || sliceThreads(policy) <= policy.depth * sliceRowVectors(policy, [])
      ? undefined
      : `the tile of ${name} has no room for a vector of each thread's sums`;
  }
  if (sumLinesOf(policy, outputLayout) !== undefined) return undefined;
  const { rows } = sliceGrid(policy);
  const layout = outputLayoutName(outputLayout);
  return rows % 2 !== 0
    ? `${name} has ${
      rows === 1 ? "1 row" : `${rows} rows`
    } of threads, ${layout} takes pairs of them`
    : `the tile of ${name} has no room for a row of each thread's sums in ${layout}`;
}
