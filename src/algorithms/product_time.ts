import type { Cut } from "./cut.ts";
import { deviceOf } from "./device/h200.ts";
import {
  copyTime,
  type DeviceModel,
  moveTime,
  overlappedTime,
  productTime,
  residentPolicies,
} from "./device/model.ts";
import type { PlanRequest } from "./request.ts";
import { operandBytes, resultBytes } from "./tensors.ts";
import { packedElements, type PackShape } from "../kernels/pack.ts";
import type { TilePolicy } from "../kernels/policy.ts";
import { tensorBytes } from "../problem/conv_problem.ts";
import { targetStore } from "./conv_product.ts";

/**
 * Microseconds that the problem's tensors take to move, each once.
 *
 * @param stored Share of the rate at which results leave.
 */
function tensorsTime(request: PlanRequest, stored = 1): number {
  const bytes = tensorBytes(request.problem, operandBytes(request), resultBytes(request) / stored);
  return moveTime(bytes, deviceOf(request).rates.stream);
}

/** Tiles stay f16 where moving data takes at least this share of the time of multiplying: conversions slow products down. */
const MOVING = 0.2;

/** Whether the f32 tiles of workgroups that a multiprocessor could run side by side do not fit its memory. */
function crowded(device: DeviceModel, policy: TilePolicy): boolean {
  const bytes = 4 * (policy.rows + policy.columns) * policy.depth;
  return residentPolicies(device, policy) * bytes > device.sharedBytes;
}

/** Share of its rate that a product of threads keeps whose tiles stay halves: it converts what it multiplies. */
export function convertingShare(request: PlanRequest, cut: Cut): number {
  const half = withHalfTile(request, cut).schedule?.halfTile === true;
  return half && cut.policy.matrix === undefined ? deviceOf(request).shares.halfTiles : 1;
}

/** The request with f16 tiles, where the planner chooses them: on matrix units, and where memory bounds the product. */
export function withHalfTile(request: PlanRequest, cut: Cut): PlanRequest {
  const { dtype, schedule } = request;
  if (dtype !== "f16" || schedule?.halfTile !== undefined) return request;
  const { policy, cost } = cut;
  const device = deviceOf(request);
  const multiplying = productTime(cost, device.rates.gathered);
  const half = policy.matrix !== undefined || crowded(device, policy) ||
    tensorsTime(request) >= MOVING * multiplying;
  return half ? { ...request, schedule: { ...schedule, halfTile: true } } : request;
}

/** Bytes of a sector: memory reads and rewrites one that a store fills in part. */
const SECTOR = 32;

/**
 * What is left of a single element's share in nchw where results are of classes of places: of every second place or fewer, so each
 * thread of a warp writes a sector of its own (f16 layers of 6 to 26 MB take 38 to 121 us on an H200, whatever tile
 * multiplies; f32 of 47 to 210 MB up to 1.8 times what they multiply).
 */
const CLASSES_APART = 0.2;
/** The same where halves of images are stored in turn. */
const HALVES_IN_TURN = 0.5;
/** The same of bf16 (layers of 6 to 11 M results on an H200). */
const BF16_APART = 0.4;

/** Share of memory's rate at which a product's results are stored. */
export function storedShare(
  request: PlanRequest,
  target: Parameters<typeof targetStore>[0],
  rows: number,
): number {
  const { shares, software } = deviceOf(request);
  if (targetStore(target, rows) !== "none") return 1;
  const images = target.classes === undefined && target.interleave !== undefined;
  // Of images in turn neighbouring threads store what lies side by side.
  if (images && (target.row * resultBytes(request)) % SECTOR === 0) return 1;
  const inTurn = images && isHalf(request) && request.layout !== "nhwc";
  // A CPU has no warps.
  const apart = target.classes !== undefined && request.layout === "nchw" && !software;
  const left = apart ? CLASSES_APART : inTurn ? HALVES_IN_TURN : 1;
  return Math.min(shares.single * left, bf16Apart(request));
}

/** Share of memory's rate at which bf16 leaves one at a time, since two atomic operations write its half of a word; 1 of other types. */
export function bf16Apart(request: PlanRequest): number {
  return request.dtype === "bf16" ? deviceOf(request).shares.single * BF16_APART : 1;
}

/** Whether tensors are of floats of two bytes. */
export function isHalf(request: PlanRequest): boolean {
  return request.dtype !== "i8" && resultBytes(request) === 2;
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
