import type { SplitBlocks } from "../../kernels/slices/loop.ts";
import type { SlicePolicy } from "../../kernels/slices/policy.ts";
import { partElements } from "../../kernels/slices/split_blocks.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import type { TileRun } from "./geometry.ts";
import { choosePolicy } from "./policies.ts";
import { type SlicedProduct, slicedProduct } from "./product.ts";
import { splitBlocks } from "./split.ts";

/** A kernel's product, the policy that it runs with, and which of its blocks share depths. */
export interface RunCut {
  readonly runs: readonly TileRun[];
  readonly product: SlicedProduct;
  readonly policy: SlicePolicy;
  readonly split: SplitBlocks | undefined;
  /** Elements of the partial results of these; 0 where there are none. */
  readonly parts: number;
}

/** How the kernel of `runs` is cut where so many workgroups share a depth. Refused if no policy fits the device. */
export function cutRun(
  request: PlanRequest,
  runs: readonly TileRun[],
  splits: number,
): Planned<RunCut> {
  const product = slicedProduct(request, runs, splits);
  const policy = choosePolicy(request, product);
  if (isRefusal(policy)) return policy;
  const split = splitBlocks(request, product, policy);
  const parts = split === undefined ? 0 : partElements({ split, results: product.results }, policy);
  return { runs, product, policy, split, parts };
}
