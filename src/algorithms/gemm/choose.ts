import { depthOfValue, type Elements, elementsOf, sumOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import { F16_CHAIN } from "../../kernels/loop/thread_products.ts";
import type { UnitChain } from "../../kernels/matrix_units.ts";
import { type OutputVector, outputVector } from "../../kernels/output.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { HALVES } from "../../kernels/split_halves.ts";
import type { GemmProblem } from "../../problem/gemm_problem.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { type Cut, cutArithmetic, cutProduct } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import {
  type DeviceModel,
  moveTime,
  overlappedTime,
  productTime,
  residentPolicies,
} from "../device/model.ts";
import { chooseSplit, LEAST_SPLIT_DEPTH } from "../halves.ts";
import { type Product, productUnit, stepsOf } from "../product.ts";
import { isRefusal, type Planned, refusal } from "../refusal.ts";
import type { MathChoice } from "../request.ts";
import { chooseGemv, type Gemv } from "./gemv.ts";
import {
  type GemmRequest,
  loadSteps,
  loopDepth,
  type OperandShape,
  operandShapes,
  packingCost,
  packingPays,
  packsPanels,
  splittingCost,
  storedDepth,
} from "./operands.ts";

/** How the sums of a product are rounded; f16 chains are a whole number of steps. */
export function gemmSums(
  { accumulate: sums }: Elements,
  cut: Cut,
  steps: number,
  packed: number,
  asked: UnitChain | undefined,
): PlanArithmetic {
  const { chain, segment, unit, math } = cutArithmetic(cut, steps, asked);
  const depth = cut.policy.depth * packed;
  return {
    sums,
    ...(unit === undefined ? {} : { unit }),
    ...(math === undefined ? {} : { math }),
    ...(segment === undefined ? {} : { segment: segment * packed }),
    ...(sums === "f16"
      ? { chain: Math.max(1, Math.floor(F16_CHAIN / depth)) * depth }
      : chain === undefined
      ? {}
      : { chain: chain * packed }),
  };
}

/**
 * Rows of tiles of a band, in which workgroups go over the results: the tiles of a wave are about as many elements high as wide, so
 * that its operands are read least often. 0 for all rows: of threads, which gain 1 % at most, and where rows or columns are few. On an
 * H200 8192³ gains 1 to 4 % on matrix units, 32768 x 2048 x 2048 16 % in f16 and 23 % in int8.
 */
export function bandOfTiles(
  device: DeviceModel,
  policy: TilePolicy,
  { problem: { m, n } }: Pick<GemmRequest, "problem">,
): number {
  if (policy.matrix === undefined || n <= policy.columns) return 0;
  const wave = device.multiprocessors * residentPolicies(device, policy);
  const band = 2 ** Math.round(Math.log2(Math.sqrt(wave * policy.columns / policy.rows)));
  return Math.ceil(m / policy.rows) > 2 * band ? band : 0;
}

/** The side along which four results of a product leave in one store. */
export function gemmVector({ m, n }: GemmProblem): OutputVector {
  return outputVector({ row: n, outer: 0, inner: 1, base: [m * n] }, m, n);
}

export function gemmUnit(request: GemmRequest): Product["matrix"] {
  return productUnit(request, gemmVector(request.problem) !== "none", request.problem.k);
}

/** The policy and splits that {@linkcode planGemm} takes, with their predicted cost. */
export function cutGemm(request: GemmRequest): Planned<Cut> {
  const { problem: { m, n, k, batch } } = request;
  const device = deviceOf(request);
  const types = elementsOf(request);
  const { a, b } = operandShapes(request.problem, types);
  const matrix = gemmUnit(request);
  const depth = storedDepth(k, types, matrix);
  const tile = (shape: OperandShape, side: "rows" | "columns"): Product["a"] => {
    if (matrix?.split) {
      const packing = () => splittingCost(device, shape);
      return { along: "place", vector: 4, value: HALVES.tile, packing };
    }
    return {
      ...shape,
      value: types.tile,
      steps: loadSteps(shape),
      packing: (policy) =>
        packingPays(request, types, shape, policy, side)
          ? packingCost(device, shape, policy)
          : undefined,
      packedAlong: (policy) => packsPanels(policy) ? "depth" : "place",
    };
  };
  return cutProduct(request, {
    rows: m,
    columns: n,
    batches: batch,
    ...stepsOf((policy) => loopDepth(depth, policy, matrix?.chain), request.schedule),
    elements: batch * m * n,
    partialBytes: scalarBytes(sumOf(types)),
    finishedApart: matrix?.split === true,
    streams: batch * m * n > 0 && !matrix?.split,
    matrix,
    a: tile(a, "rows"),
    b: tile(b, "columns"),
  });
}

/** Microseconds that the mainloop should take, cut so, its operands read and its results written once. */
export function mainloopTime(request: GemmRequest, { cost, policy }: Cut): number {
  const { m, n, k, batch } = request.problem;
  const { rates, times } = deviceOf(request);
  const types = elementsOf(request);
  const operand = scalarBytes(types.storage) / depthOfValue(types);
  const bytes = batch * ((m + n) * k * operand + m * n * scalarBytes(types.result));
  const moved = moveTime(bytes, rates.stream);
  return overlappedTime(productTime(cost, rates.packed), moved, policy.matrix !== undefined) +
    times.dispatch;
}

/** `auto` takes halves only where they are predicted to take less than this share of f32's time. */
const CLEARLY_LESS = 0.9;

type Math = Exclude<MathChoice, "auto">;

/**
 * How a product is multiplied: what was asked for, or what takes less time where the device's model says that halves may be
 * taken at all. Products of nothing are in f32.
 */
function chooseMath(request: GemmRequest, cutOf: (math: Math) => Planned<Cut>): Planned<Math> {
  const { problem: { m, n, k, batch }, dtype, math = "auto" } = request;
  if (math === "f32" && dtype !== "f32") {
    return refusal("problem", `math f32 is of f32 operands, the dtype is ${dtype}`);
  }
  if (math === "f32" || m * n * k * batch === 0) return "f32";
  const split = { ...request, math: "f16x3" } as const;
  return chooseSplit(request, {
    products: k,
    hasUnit: productUnit(split) !== undefined,
    least: LEAST_SPLIT_DEPTH,
    clearly: CLEARLY_LESS,
    time(math) {
      const cut = cutOf(math);
      if (isRefusal(cut)) return cut;
      // Beside what the cut reckons with there is the pass over flagged tiles.
      return cut.cost + (math === "f16x3" ? deviceOf(request).costs.dispatch : 0);
    },
  });
}

/** What multiplies a product: the mainloop, cut so, or a matrix times vectors in its place. */
export interface GemmChoice {
  readonly math: Math;
  readonly gemv: Gemv | undefined;
  /** The mainloop's cut, derived once. */
  cut(): Planned<Cut>;
}

/** What was asked for, else what should take less. */
export function chooseGemm(request: GemmRequest): Planned<GemmChoice> {
  const cuts: { [math in Math]?: Planned<Cut> } = {};
  const cutOf = (math: Math) => cuts[math] ??= cutGemm({ ...request, math });
  const math = chooseMath(request, cutOf);
  if (isRefusal(math)) return math;
  const gemv = chooseGemv(request, () => {
    const cut = cutOf(math);
    return isRefusal(cut) ? Infinity : mainloopTime({ ...request, math }, cut);
  });
  return isRefusal(gemv) ? gemv : { math, gemv, cut: () => cutOf(math) };
}
