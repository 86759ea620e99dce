import { elementsOf } from "../../elements/elements.ts";
import { policyVector } from "../../kernels/loader.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { targetStore } from "../conv_product.ts";
import type { Cut } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { productTime } from "../device/model.ts";
import { gatheredTime, storedShare } from "../product_time.ts";
import type { PlanRequest } from "../request.ts";
import { quantizeTime, sumsRequest } from "../quantize.ts";
import type { Operands } from "./access.ts";

/** Whether a pass of its own stores int8 results: where four that a thread has are no word, which has one writer. */
export function storesApart(
  request: PlanRequest,
  { result, rows }: Operands,
): boolean {
  return elementsOf(request).result === "i8" &&
    targetStore(result, rows, request.variant) !== "rows";
}

/** Microseconds of implicit GEMM: the packed filter, then the product; sums of split depth are in the cut's cost. */
export function implicitTime(
  request: PlanRequest,
  operands: Operands,
  { policy, cost }: Cut,
): number {
  const { problem, layout } = request;
  const { rates, shares } = deviceOf(request);
  const rate = problem.op !== "bwd-filter"
    ? rates.gathered
    : rates.correlated[layout === "nhwc" ? "along" : "across"];
  // Of a vector the first element finds it.
  const alone = problem.op === "bwd-filter" || operands.b.vector === 1;
  const share = problem.op === "bwd-filter" && layout === "nhwc" && operands.b.vector === 1
    ? shares.singleLoads
    : operands.linear(policy) && alone
    ? shares.linear
    : 1;
  const units = policy.matrix === undefined ? 1 : unitsShare(request, operands, policy);
  const { result, rows } = operands;
  // Of a filter that is read as it lies, element by element.
  const strewn = operands.left === "filter" && operands.a.vector === 1 &&
    operands.pack(policy) === undefined;
  const loads = strewn ? shares.strewn : 1;
  const apart = storesApart(request, operands);
  return (apart ? quantizeTime(request) : 0) + gatheredTime(
    apart ? sumsRequest(request) : request,
    productTime(cost, share * units * loads * rate),
    operands.pack(policy),
    storedShare(request, result, rows),
  );
}

/** On matrix units, of images that are loaded fewer than eight halves at a time, and of int8. */
function unitsShare(
  request: PlanRequest,
  { b, linear, pack }: Operands,
  policy: TilePolicy,
): number {
  const { singleHalves, fewHalves, gatheredWords } = deviceOf(request).shares;
  if (request.dtype === "i8") {
    if (b.vector === 1) return gatheredWords.one;
    if (linear(policy)) return gatheredWords.linear;
    return gatheredWords[pack(policy) === undefined ? "lying" : "packed"];
  }
  const filters = request.problem.op === "bwd-filter";
  if (request.layout !== "nhwc") {
    if (b.vector !== 1) return 1;
    return linear(policy) ? fewHalves.one : singleHalves[filters ? "correlated" : "gathered"];
  }
  const vector = policyVector(policy, b.vector, b.steps ?? []);
  return vector === 8 ? 1 : fewHalves[vector === 4 ? "four" : "one"];
}
