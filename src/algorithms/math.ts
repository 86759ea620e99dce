import { MOST_SPLIT_DEPTH } from "../kernels/split_rescale.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** In what f32 operands may be multiplied: f32 itself, or three products of their halves on matrix units. */
export const MATHS = ["auto", "f32", "f16x3"] as const;

/** One of {@linkcode MATHS}. */
export type MathChoice = (typeof MATHS)[number];

/** Products of a sum from which on `auto` weighs halves at all. */
export const LEAST_SPLIT_DEPTH = 32;

/** Why products of this depth cannot be made of halves. */
export function refuseSplitMath(
  { dtype, depth, hasUnit }: {
    readonly dtype: string;
    readonly depth: number;
    /** Whether there is a matrix unit for them. */
    readonly hasUnit: boolean;
  },
): Refusal | undefined {
  if (dtype !== "f32") {
    return refusal("problem", `math f16x3 is of f32 operands, the dtype is ${dtype}`);
  }
  if (depth >= MOST_SPLIT_DEPTH) {
    return refusal("problem", `math f16x3 takes sums of fewer than 2^24 products, not ${depth}`);
  }
  return hasUnit ? undefined : refusal(
    "limit",
    "math f16x3 wants matrix units of f16 with f32 sums, and there are none: wgconv devices --backend dawn lists a device's",
  );
}
