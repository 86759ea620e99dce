import { matrixElements } from "../../kernels/im2col.ts";
import { windowElements } from "../../kernels/im2win.ts";
import { packedElements, type PackShape } from "../../kernels/pack_strided.ts";
import { type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { type Cut, cutProduct } from "../cut.ts";
import type { Product } from "../product.ts";
import { im2colFilter, windowMatrix } from "../im2col/geometry.ts";
import { cutMatrices } from "../im2col/plan.ts";
import { cutWindows, windowProduct } from "../im2win/cut.ts";
import { fusedProduct } from "../im2win/fused.ts";
import { windowFilter, windowShape } from "../im2win/geometry.ts";
import { operandsOf } from "../implicit_gemm/operands.ts";
import { productOf } from "../implicit_gemm/plan.ts";
import type { Plan } from "../plan.ts";
import { expectPlanned, isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import {
  type DeviceModel,
  moveTime,
  passTime,
  productTime,
  residentWorkgroups,
  waveTime,
} from "../device/model.ts";

/** Microseconds of implicit GEMM: the packed filter, then the product; sums of split depth are in the cut's cost. */
export function implicitTime(request: PlanRequest, device: DeviceModel): Planned<number> {
  const { problem, layout } = request;
  const operands = operandsOf(request);
  const cut = cutProduct(request, productOf(request, operands));
  if (isRefusal(cut)) return cut;
  const { policy, cost } = cut;
  const rate = problem.op !== "bwd-filter"
    ? device.rates.gathered
    : device.rates.correlated[layout === "nhwc" ? "along" : "across"];
  // Of a vector the first element finds it.
  const alone = problem.op === "bwd-filter" || operands.b.vector === 1;
  const share = operands.linear(policy) && alone ? device.shares.linear : 1;
  return gatheredTime(request, device, productTime(cost, share * rate), operands.pack(policy));
}

/** Microseconds of im2win that builds its windows on the way. */
export function im2winFusedTime(request: PlanRequest, device: DeviceModel): Planned<number> {
  const { geometry, product, filter } = fusedProduct(request);
  const cut = cutProduct(request, product);
  if (isRefusal(cut)) return cut;
  const { policy, cost } = cut;
  const linear = filter(policy).paddedChannels % policy.depth !== 0;
  // Four images share it, but they are four loads where one could take four channels.
  const alone = geometry.interleave === 1 ||
    request.layout === "nhwc" && geometry.channels % 4 === 0;
  const share = linear && alone ? device.shares.linear : 1;
  const time = productTime(cost, share * device.rates.gathered);
  return gatheredTime(request, device, time, filter(policy));
}

/** Microseconds of im2win: the filter, windows and their product, in chunks where there are several. */
export function im2winTime(request: PlanRequest, device: DeviceModel): Planned<number> {
  const windows = cutWindows(request);
  if (isRefusal(windows)) return windows;
  const { geometry, cut, chunks } = windows;
  const shape = windowShape(request, geometry, request.problem.batch, false);
  const share = device.shares.windows[request.layout === "nhwc" ? "along" : "across"];
  const chunk = windowProduct(request, geometry, chunks[0]!.images);
  return transformedTime(request, device, {
    cost: chunkedCost(request, cut, chunk, chunks.length),
    chunks: chunks.length,
    filter: windowFilter(request, geometry, cut.policy),
    elements: windowElements(shape),
    rate: share * device.rates.stream,
  });
}

/** The same of im2col, forward. */
export function im2colTime(request: PlanRequest, device: DeviceModel): Planned<number> {
  const matrices = cutMatrices(request);
  if (isRefusal(matrices)) return matrices;
  const { geometry, needs, cut: { cut, chunks } } = matrices;
  const matrix = windowMatrix(request, geometry, request.problem.batch, false);
  const share = device.shares.matrices[request.layout === "nhwc" ? "along" : "across"];
  return transformedTime(request, device, {
    cost: chunkedCost(request, cut, needs.product(chunks[0]!.images), chunks.length),
    chunks: chunks.length,
    filter: im2colFilter(request, geometry, cut.policy),
    elements: matrixElements(matrix),
    rate: share * device.rates.stream,
  });
}

/** Cost of a product in chunks, each of which ends with a wave of its own. */
function chunkedCost(request: PlanRequest, cut: Cut, chunk: Product, chunks: number): number {
  if (chunks === 1) return cut.cost;
  const alike = { ...request, policy: cut.policy.name, splits: 1, balance: "none" } as const;
  // What fits the whole batch fits a chunk.
  return chunks * expectPlanned(cutProduct(alike, chunk)).cost;
}

/** A packed filter, then in each chunk the input transformed and its product. */
function transformedTime(
  { problem }: PlanRequest,
  device: DeviceModel,
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
  const count = (which: ConvTensor) => elementCount(tensorShape(problem, which));
  const packing = passTime(
    0,
    moveTime(2 * packedElements(filter), device.rates.filterStream),
    device,
  );
  const transform = moveTime(count("input") + elements, rate);
  const product = Math.max(
    productTime(cost, device.rates.packed),
    moveTime(elements + count("output"), device.rates.stream),
  );
  return packing + transform + product + 2 * chunks * device.times.dispatch;
}

/** Packing what there is to pack, then a product that reads and writes the problem's tensors. */
function gatheredTime(
  { problem }: PlanRequest,
  device: DeviceModel,
  product: number,
  pack: PackShape | undefined,
): number {
  const elements = (["input", "filter", "output"] as const)
    .reduce((sum, which) => sum + elementCount(tensorShape(problem, which)), 0);
  const packing = pack === undefined
    ? 0
    : passTime(0, moveTime(2 * packedElements(pack), device.rates.filterStream), device);
  return packing + passTime(product, moveTime(elements, device.rates.stream), device);
}

/**
 * Microseconds of a plan by its passes: each takes as long as its workgroups' multiplications, or as all that it binds
 * takes to move. Rougher than a model of its own: all main loops are alike to it.
 */
export function planTime(plan: Plan, device: DeviceModel): number {
  return plan.passes.reduce((sum, { kernel, grid, bindings, multiplications }) => {
    const workgroups = elementCount(grid);
    const warps = elementCount(kernel.workgroupSize) / 32;
    const waves = waveTime(device, workgroups, residentWorkgroups(device, warps), warps);
    const product = productTime(
      multiplications / workgroups * device.multiprocessors * waves,
      device.rates.planned,
    );
    const elements = bindings.reduce((all, { size }) => all + size / 4, 0);
    return sum + passTime(product, moveTime(elements, device.rates.stream), device);
  }, 0);
}
