import { elementsOf } from "../../elements/elements.ts";
import type { SizeMode } from "../../kernels/module.ts";
import {
  type FilterSplit,
  filterTransformKernel,
  filterTransformWorkgroups,
} from "../../kernels/slices/filter_transform.ts";
import type { PatchTransform } from "../../kernels/slices/patch.ts";
import { pass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import type { BufferList } from "../tensors.ts";
import { filterShape } from "../winograd_fused/geometry.ts";
import type { PlannedTile } from "./tiles.ts";

/**
 * The pass that transforms the filter for the products, as fused Winograd's does; none where it has no elements.
 *
 * @param padded What places and channels are padded to multiples of.
 * @param split Of halves; `places` then has their marks.
 */
export function filterPass(
  request: PlanRequest,
  mode: SizeMode,
  { trait, stored }: PlannedTile,
  transform: PatchTransform,
  padded: { readonly extent: number; readonly depth: number },
  buffers: BufferList,
  places: { readonly filter: number; readonly transformed: number; readonly marks?: number },
  split?: FilterSplit,
): Pass[] {
  const runs = request.problem.filterSize.map((r) => ({ n: 1, r, first: 0, count: 1 }));
  const shape = {
    ...filterShape(request, runs, padded.extent, padded.depth, "slice"),
    split,
  };
  const workgroups = filterTransformWorkgroups(shape);
  if (workgroups === 0) return [];
  const kernel = filterTransformKernel(
    trait,
    shape,
    transform,
    mode,
    {
      filter: buffers.split(places.filter),
      transformed: buffers.split(places.transformed),
    },
    elementsOf(request).storage,
    stored,
  );
  return [pass(kernel, buffers, places, workgroups, request.limits)];
}
