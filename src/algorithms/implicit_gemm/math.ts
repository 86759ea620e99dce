import { accumulationLength } from "../../problem/conv_problem.ts";
import { inMath as convInMath } from "../halves.ts";
import { LEAST_SPLIT_DEPTH } from "../math.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { halvesProduct } from "./halves.ts";
import { implicitProduct } from "./product.ts";

/** The request with how its products are multiplied. */
export function inMath(request: PlanRequest): Planned<PlanRequest> {
  return convInMath(request, {
    products: ({ problem }) => accumulationLength(problem),
    time: timeInMath,
    least: LEAST_SPLIT_DEPTH,
    // What was predicted to gain less lost as often on an H100, whose memory is slower than the model's.
    clearly: 0.87,
  });
}

/** Microseconds of implicit GEMM whose kind of multiplication is said. */
export function timeInMath(request: PlanRequest): Planned<number> {
  const product = (request.math === "f16x3" ? halvesProduct : implicitProduct)(request);
  return isRefusal(product) ? product : product.time;
}
