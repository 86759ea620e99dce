import { packedElements, type PackShape } from "../kernels/pack.ts";
import { tensorBytes } from "../problem/conv_problem.ts";
import { targetStore } from "./conv_product.ts";
import type { Cut } from "./cut.ts";
import { deviceOf } from "./device/h200.ts";
import { copyTime, moveTime, overlappedTime, productTime } from "./device/model.ts";
import type { PlanRequest } from "./request.ts";
import { operandBytes, resultBytes } from "./tensors.ts";

/**
 * Microseconds that the problem's tensors take to move, each once.
 *
 * @param stored Share of the rate at which results leave.
 */
function tensorsTime(request: PlanRequest, stored = 1): number {
  const bytes = tensorBytes(request.problem, operandBytes(request), resultBytes(request) / stored);
  return moveTime(bytes, deviceOf(request).rates.stream);
}

/** f16 stays so in workgroup memory where moving takes at least this share of multiplying, which conversions slow down. */
const MOVING = 0.2;

/** The request of a product that is cut so, with what the planner chooses of the main loop's variant: f16 tiles of matrix units, and where memory bounds the product. */
export function withHalfTile(request: PlanRequest, cut: Cut): PlanRequest {
  const { dtype, variant } = request;
  if (dtype !== "f16" || variant?.halfTile !== undefined) return request;
  const multiplying = productTime(cut.cost, deviceOf(request).rates.gathered);
  const half = cut.policy.matrix !== undefined || tensorsTime(request) >= MOVING * multiplying;
  return half ? { ...request, variant: { ...variant, halfTile: true } } : request;
}

/** Bytes of a sector: what a store leaves of one is read and written again. */
const SECTOR = 32;

/** Share of the rate of memory at which a product's results leave. */
export function storedShare(
  request: PlanRequest,
  target: Parameters<typeof targetStore>[0],
  rows: number,
): number {
  const { shares } = deviceOf(request);
  if (targetStore(target, rows, request.variant) !== "none") return 1;
  if (target.classes !== undefined) return shares.interleaved;
  // Of images in turn neighbouring threads store what lies side by side.
  return target.interleave !== undefined && (target.row * resultBytes(request)) % SECTOR === 0
    ? 1
    : shares.single;
}

/**
 * Packing what there is to pack, then a product that reads and writes the problem's tensors.
 *
 * @param stored As `tensorsTime()` has it.
 */
export function gatheredTime(
  request: PlanRequest,
  product: number,
  pack: PackShape | undefined,
  stored = 1,
): number {
  const device = deviceOf(request);
  const packing = pack === undefined
    ? 0
    : copyTime(operandBytes(request) * 2 * packedElements(pack), device.rates.filterStream, device);
  return packing + overlappedTime(product, tensorsTime(request, stored)) + device.times.dispatch;
}
