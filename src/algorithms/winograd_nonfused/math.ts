import { inMath as convInMath } from "../halves.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { geometryOf } from "./geometry.ts";
import { timeInMath } from "./price.ts";
import { summedPatches } from "./split.ts";
import { plannedTile } from "./tiles.ts";

/** The request with how its products are multiplied. */
export function inMath(request: PlanRequest): Planned<PlanRequest> {
  return convInMath(request, {
    products: (split) => summedPatches(geometryOf(split, plannedTile(split)), split.problem.batch),
    time: timeInMath,
    clearly: 0.95,
  });
}

/** Microseconds of non-fused Winograd, as {@linkcode timeInMath} has them. */
export function nonfusedTime(asked: PlanRequest): Planned<number> {
  const request = inMath(asked);
  return isRefusal(request) ? request : timeInMath(request);
}
