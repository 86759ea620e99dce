import { deviceOf } from "./device/h200.ts";
import { packedElements, type PackShape } from "../kernels/pack_strided.ts";
import { type ConvTensor, resultTensor, tensorShape } from "../problem/conv_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type Cut, cutProduct } from "./cut.ts";
import { moveTime, passTime, productTime } from "./device/model.ts";
import type { Product } from "./product.ts";
import { operandBytes, resultBytes } from "./tensors.ts";
import { expectPlanned } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

/** Cost of a product in chunks, each of which ends with a wave of its own. */
export function chunkedCost(
  request: PlanRequest,
  cut: Cut,
  chunk: Product,
  chunks: number,
): number {
  if (chunks === 1) return cut.cost;
  const alike = { ...request, policy: cut.policy.name, splits: 1, balance: "none" } as const;
  // What fits the whole batch fits a chunk.
  return chunks * expectPlanned(cutProduct(alike, chunk)).cost;
}

/** A packed filter, then in each chunk the input transformed and its product. */
export function transformedTime(
  request: PlanRequest,
  { cost, chunks, filter, elements, rate }: {
    /** Of the products of all chunks, in multiply-adds. */
    readonly cost: number;
    readonly chunks: number;
    readonly filter: PackShape;
    /** Of the transformed input, and TB/s at which it is written. */
    readonly elements: number;
    readonly rate: number;
  },
): number {
  const count = (which: ConvTensor) => elementCount(tensorShape(request.problem, which));
  const device = deviceOf(request);
  const bytes = operandBytes(request);
  const packing = passTime(
    0,
    moveTime(bytes * 2 * packedElements(filter), device.rates.filterStream),
    device,
  );
  const transform = moveTime(bytes * (count("input") + elements), rate);
  const product = Math.max(
    productTime(cost, device.rates.packed),
    moveTime(bytes * elements + resultBytes(request) * count("output"), device.rates.stream),
  );
  return packing + transform + product + 2 * chunks * device.times.dispatch;
}

/** Packing what there is to pack, then a product that reads and writes the problem's tensors. */
export function gatheredTime(
  request: PlanRequest,
  product: number,
  pack: PackShape | undefined,
): number {
  const device = deviceOf(request);
  const { problem } = request;
  const bytes = (which: ConvTensor) =>
    elementCount(tensorShape(problem, which)) *
    (which === resultTensor(problem.op) ? resultBytes(request) : operandBytes(request));
  const moved = bytes("input") + bytes("filter") + bytes("output");
  const packing = pack === undefined ? 0 : passTime(
    0,
    moveTime(operandBytes(request) * 2 * packedElements(pack), device.rates.filterStream),
    device,
  );
  return packing + passTime(product, moveTime(moved, device.rates.stream), device);
}
