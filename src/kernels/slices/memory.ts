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
  const sums = scalar === "f32" ? 0 : 16 * slices * sumLines(policy, scalar) *
    sliceRowVectors(policy, []);
  return tile + sums + slices * sumLinesBytes(policy, outputLayout);
}

/** Why a policy cannot pass sums through workgroup memory in a layout, whatever the device has of it; undefined if it can. */
export function unfitPolicy(
  policy: SlicePolicy,
  scalar: Scalar,
  outputLayout: OutputLayout,
): string | undefined {
  const name = `policy ${slicePolicyName(policy)}`;
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
