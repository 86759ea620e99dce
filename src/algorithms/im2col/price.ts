import { deviceOf } from "../device/h200.ts";
import { matrixElements } from "../../kernels/im2col.ts";
import { chunkedCost, transformedTime } from "../product_time.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { im2colFilter, windowMatrix } from "./geometry.ts";
import { cutMatrices } from "./plan.ts";

/** Microseconds of im2col: the filter, matrices and their product, in chunks where there are several. */
export function im2colTime(request: PlanRequest): Planned<number> {
  const device = deviceOf(request);
  const matrices = cutMatrices(request);
  if (isRefusal(matrices)) return matrices;
  const { geometry, needs, cut: { cut, chunks } } = matrices;
  const matrix = windowMatrix(request, geometry, request.problem.batch, false);
  const share = device.shares.matrices[request.layout === "nhwc" ? "along" : "across"];
  return transformedTime(request, {
    cost: chunkedCost(request, cut, needs.product(chunks[0]!.images), chunks.length),
    chunks: chunks.length,
    filter: im2colFilter(request, geometry, cut.policy),
    elements: matrixElements(matrix),
    rate: share * device.rates.stream,
  });
}
