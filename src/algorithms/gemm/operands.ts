import { depthOfValue, type Elements, sumOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import {
  activationStep,
  addTensorStep,
  biasStep,
  type EpilogueFactory,
  scaleStep,
} from "../../kernels/epilogue.ts";
import { matrixVector } from "../../kernels/loaders/matrix.ts";
import { type UnitChain, unitDepth } from "../../kernels/matrix_units.ts";
import type { ModuleBuilder, SizeMode } from "../../kernels/module.ts";
import type { OutputMap } from "../../kernels/output.ts";
import { packBytesKernel, packStridedKernel } from "../../kernels/pack.ts";
import type { MatrixTile, TilePolicy } from "../../kernels/policy.ts";
import type { ReduceShape } from "../../kernels/reduce.ts";
import { halvesDepth } from "../../kernels/split_halves.ts";
import { paddedSteps } from "../../kernels/tile_scheduler.ts";
import {
  type GemmAccumulate,
  type GemmDType,
  gemmOperands,
  type GemmOutDType,
  type GemmProblem,
  gemmShape,
  type GemmTensor,
} from "../../problem/gemm_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { type DeviceModel, policyShare } from "../device/model.ts";
import { ceilTo } from "../geometry.ts";
import { depthShare } from "../loop_cost.ts";
import { pass } from "../passes.ts";
import type { DeviceLimits, Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { BufferList } from "../tensors.ts";

/** All that planning a product needs to know. */
export interface GemmRequest extends
  Pick<
    PlanRequest,
    | "math"
    | "schedule"
    | "limits"
    | "matrixUnits"
    | "device"
    | "tuning"
    | "sizes"
  > {
  /** Sizes, transposes and epilogue. */
  readonly problem: GemmProblem;
  /** Of A and B. */
  readonly dtype: GemmDType;
  /** Of f16 only; f32 where absent. */
  readonly accumulate?: GemmAccumulate;
  /** Of f16's result, bias, C and residual; f16 where absent. */
  readonly outDtype?: GemmOutDType;
}

/** A product's tensors as the first buffers of a plan, the result last. */
export function gemmBuffers(
  problem: GemmProblem,
  types: Elements,
  limits: DeviceLimits,
  mode: SizeMode,
): { buffers: BufferList; place: Partial<Record<GemmTensor, number>> } {
  const buffers = new BufferList(limits, mode);
  const place: Partial<Record<GemmTensor, number>> = {};
  for (const which of [...gemmOperands(problem), "output"] as const) {
    const count = elementCount(gemmShape(problem, which));
    place[which] = which === "a" || which === "b"
      ? buffers.add(which, which, Math.ceil(count / depthOfValue(types)), types.storage)
      : buffers.add(which, which, count, types.result);
  }
  return { buffers, place };
}

/** Where a product's results lie: row by row, a matrix of the batch after the other, and so each of several splits. */
export function resultMap(
  module: ModuleBuilder,
  { m, n, batch }: GemmProblem,
  vector: OutputMap["vector"],
  splits = 1,
): OutputMap {
  const columns = module.size("n", n);
  return {
    rows: module.size("m", m),
    columns,
    rowStride: columns,
    period: columns,
    outerStride: module.size("zero", 0),
    innerStride: module.size("one", 1),
    base: `group * ${module.size("out_batch", m * n)}${
      splits === 1 ? "" : ` + split * ${module.size("out_split", batch * m * n)}`
    }`,
    vector,
  };
}

export function gemmReduction({ m, n, batch }: GemmProblem, splits: number): ReduceShape {
  return { elements: batch * m * n, splits, rows: m, rowStride: n, columns: n, columnStride: 1 };
}

/** α, then β·C, then bias, then the activation, then the residual. */
export function gemmEpilogue(
  problem: GemmProblem,
  elements: Elements,
  buffers: BufferList,
  place: Partial<Record<GemmTensor, number>>,
): EpilogueFactory {
  const { result } = elements;
  const sum = sumOf(elements);
  return (module, width, rowIndex) => {
    const tensor = (name: "c" | "residual") =>
      module.tensor(name, "read", width, buffers.split(place[name]!), result);
    const { alpha, beta, bias, activation, residual } = problem;
    return [
      ...(alpha === 1 ? [] : [scaleStep("alpha", alpha, sum)]),
      ...(beta === 0 ? [] : [addTensorStep("beta", tensor("c"), beta)]),
      ...(bias === "none" ? [] : [
        biasStep(
          module,
          bias === "row" ? "rows" : "columns",
          buffers.split(place.bias!),
          bias === "row" ? rowIndex : undefined,
          result,
        ),
      ]),
      ...(activation === "none" ? [] : [activationStep(module, activation, sum)]),
      ...(residual ? [addTensorStep("residual", tensor("residual"), 1)] : []),
    ];
  };
}

/** How an operand lies in memory, in values of `Elements.storage`. */
export interface OperandShape {
  /** Rows of A or columns of B. */
  readonly places: number;
  readonly depth: number;
  /** Which side is contiguous. */
  readonly along: "place" | "depth";
  readonly batches: number;
  readonly batchStride: number;
  readonly vector: 1 | 4;
  /** Depth in bytes, where words do not lie along it and have to be made first. */
  readonly bytes?: { readonly depth: number; readonly along: "place" | "depth" };
}

/** Values along the depth of what the mainloop loads: in halves high and low ones of whole matrices. */
export function storedDepth(
  k: number,
  elements: Pick<Elements, "storage">,
  matrix: Pick<MatrixTile, "unit" | "split"> | undefined,
): number {
  return matrix?.split
    ? halvesDepth(k, unitDepth(matrix.unit))
    : Math.ceil(k / depthOfValue(elements));
}

/** Elements that loads of an operand step over, as it lies. */
export function loadSteps({ along, places, depth, batchStride }: OperandShape): number[] {
  return [along === "place" ? places : depth, batchStride];
}

export function operandShapes(
  problem: GemmProblem,
  elements: Pick<Elements, "storage">,
): { a: OperandShape; b: OperandShape } {
  const { m, n, k, transpose, batch: batches } = problem;
  const packed = depthOfValue(elements);
  const operand = (places: number, along: "place" | "depth"): OperandShape => {
    if (packed === 4 && (along === "place" || k % 4 !== 0)) {
      const depth = Math.ceil(k / 4);
      const bytes = { depth: k, along };
      return { places, depth, along: "place", batches, batchStride: 0, vector: 4, bytes };
    }
    const depth = k / packed;
    const shape = { places, depth, along, batches, batchStride: places * depth };
    return { ...shape, vector: matrixVector(shape) };
  };
  return {
    a: operand(m, transpose[0] === "n" ? "depth" : "place"),
    b: operand(n, transpose[1] === "n" ? "place" : "depth"),
  };
}

/**
 * What the mainloop gains by a packed operand, as a share of its time: stores across a
 * tile of A, and loads of single elements, cost it that much. Tiles of matrix units lie as their operands do.
 */
function packingGain(
  { shares }: DeviceModel,
  { along, vector }: OperandShape,
  policy: TilePolicy,
  extent: number,
): number {
  const { packing } = shares;
  if (vector === 1) return packing.single;
  if (along === "place") return 0;
  if (policy.matrix !== undefined) return 1 - depthShare(shares, policy, extent);
  return extent >= 128 ? packing.across : packing.narrow;
}

/** Values along the depth that the mainloop goes over, zeros behind those of the operands included. */
export function loopDepth(depth: number, policy: TilePolicy, chain: UnitChain | undefined): number {
  const steps = Math.ceil(depth / policy.depth);
  const padded = paddedSteps(policy, chain, steps);
  return padded === steps ? depth : padded * policy.depth;
}

/** Places and depth of a packed operand, whole tiles. */
export function packedSize(
  { places, depth }: Pick<OperandShape, "places" | "depth">,
  policy: TilePolicy,
  side: "rows" | "columns",
): { places: number; depth: number } {
  return { places: ceilTo(places, policy[side]), depth: ceilTo(depth, policy.depth) };
}

/**
 * Whether an operand is packed first: where it has to be, and where it fits a buffer and that gains more than reading and
 * writing it once more costs.
 *
 * @param side Which side of a policy's tile it is.
 */
export function packingPays(
  request: GemmRequest,
  { storage }: Pick<Elements, "storage">,
  operand: OperandShape,
  policy: TilePolicy,
  side: "rows" | "columns",
): boolean {
  if (operand.bytes !== undefined) return true;
  const { problem: { m, n }, limits: { maxBufferSize, maxStorageBufferBindingSize } } = request;
  const device = deviceOf(request);
  const { places, depth, batches } = operand;
  const packed = packedSize(operand, policy, side);
  const bytes = batches * packed.places * packed.depth * scalarBytes(storage);
  const lying = batches * places * depth * scalarBytes(storage);
  // Padding is to bring neither a larger buffer than there is nor more bindings.
  if (
    bytes > maxBufferSize ||
    bytes > maxStorageBufferBindingSize && lying <= maxStorageBufferBindingSize
  ) {
    return false;
  }
  const products = batches * places * depth * (side === "rows" ? n : m);
  const gain = packingGain(device, operand, policy, policy[side]);
  // Fast products have less to gain.
  const speed = policy.matrix === undefined ? 1 : policyShare(device, policy);
  return products / speed * gain > packingCost(device, operand, policy);
}

/** Words of int8 over other values: their bytes are gathered on the way. */
const PACKED_WORD = 2;

/** Reading an operand and writing it once more for a policy, in multiply-adds. */
export function packingCost(
  { costs }: DeviceModel,
  { places, depth, batches, bytes }: OperandShape,
  policy: TilePolicy,
): number {
  const value = bytes !== undefined || packsPanels(policy) ? PACKED_WORD : 1;
  return 2 * batches * places * depth * value * costs.element + costs.dispatch;
}

/**
 * Finding the largest values of an operand's places, and splitting it: it is read twice and written once, by passes that wait for memory
 * half of their time (95 us at 4096³ on an H100), in multiply-adds.
 */
export function splittingCost(
  { costs }: DeviceModel,
  { places, depth, batches }: OperandShape,
): number {
  return 8 * batches * places * depth * costs.element + 4 * costs.dispatch;
}

/** Whether operands are packed in panels of the tile's depth: int8 on matrix units, whose bytes follow each other along it. */
export function packsPanels({ matrix }: TilePolicy): boolean {
  return matrix?.unit.component === "i8";
}

/** The pass that packs an operand to [batch][padded depth][padded places], or in panels ({@linkcode packedLoader}). */
export function packOperandPass(
  matrix: OperandShape,
  policy: TilePolicy,
  padded: { places: number; depth: number },
  { storage }: Elements,
  buffers: BufferList,
  at: { unpacked: number; packed: number },
): Pass {
  const { places, depth, batches, along } = matrix;
  const module = buffers.module(at);
  const panels = packsPanels(policy);
  const bytes = matrix.bytes ?? (panels ? { depth: 4 * depth, along } : undefined);
  if (bytes !== undefined) {
    const shape = {
      ...bytes,
      panel: panels ? policy.depth : 1,
      groups: batches,
      places,
      paddedPlaces: padded.places,
      paddedWords: padded.depth,
    };
    const kernel = packBytesKernel(module, shape);
    return pass(kernel, buffers, at);
  }
  const shape = {
    groups: batches,
    rows: places,
    paddedRows: padded.places,
    channels: depth,
    paddedChannels: depth,
    taps: 1,
    depth: padded.depth,
    strides: {
      group: places * depth,
      ...(along === "depth" ? { row: depth, channel: 1 } : { row: 1, channel: places }),
      tap: 0,
    },
  };
  const kernel = packStridedKernel(module, shape, storage);
  return pass(kernel, buffers, at);
}
