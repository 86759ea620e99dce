import { deviceOf } from "../device/h200.ts";
import { productTime } from "../device/model.ts";
import { gatheredTime } from "../product_time.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { implicitProduct } from "./product.ts";

/** Microseconds of implicit GEMM: the packed filter, then the product; sums of split depth are in the cut's cost. */
export function implicitTime(request: PlanRequest): Planned<number> {
  const device = deviceOf(request);
  const { problem, layout } = request;
  const product = implicitProduct(request);
  if (isRefusal(product)) return product;
  const { operands, cut: { policy, cost } } = product;
  const rate = problem.op !== "bwd-filter"
    ? device.rates.gathered
    : device.rates.correlated[layout === "nhwc" ? "along" : "across"];
  // Of a vector the first element finds it.
  const alone = problem.op === "bwd-filter" || operands.b.vector === 1;
  const share = operands.linear(policy) && alone ? device.shares.linear : 1;
  return gatheredTime(request, productTime(cost, share * rate), operands.pack(policy));
}
