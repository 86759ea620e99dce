import { elementsOf, sumOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { type OutputVector, outputVector } from "../../kernels/output.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import type { GemmProblem } from "../../problem/gemm_problem.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { type Product, productUnit, stepsOf } from "../product.ts";
import type { Planned } from "../refusal.ts";
import {
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
import { HALVES } from "../../kernels/split_halves.ts";
import type { GemmRequest } from "./request.ts";

/** The side along which four results of a product leave in one store, with a micro kernel. */
export function gemmVector({ m, n }: GemmProblem): OutputVector {
  return outputVector({ row: n, outer: 0, inner: 1, base: [m * n] }, m, n);
}

/** The matrix unit of a product, where it runs on one. */
export function gemmUnit(request: GemmRequest): Product["matrix"] {
  return productUnit(request, gemmVector(request.problem) !== "none", request.problem.k);
}

/** The policy and splits that {@linkcode planGemm} takes, with their predicted cost. */
export function cutGemm(request: GemmRequest): Planned<Cut> {
  const { problem: { m, n, k, batch } } = request;
  const device = deviceOf(request);
  const types = elementsOf(request);
  const { a, b } = operandShapes(request.problem, types);
  const valueBytes = scalarBytes(types.storage);
  const matrix = gemmUnit(request);
  const depth = storedDepth(k, types, matrix);
  const tile = (
    shape: OperandShape,
    side: "rows" | "columns",
    other: number,
  ): Product["a"] =>
    matrix?.split ? inHalves(shape) : ({
      ...shape,
      value: types.tile,
      steps: loadSteps(shape),
      packing: (policy: TilePolicy) =>
        packingPays(device, request.limits, valueBytes, shape, policy, side, other)
          ? packingCost(device, shape, policy)
          : undefined,
      packedAlong: (policy: TilePolicy) => packsPanels(policy) ? "depth" : "place",
    });
  const inHalves = (shape: OperandShape) => ({
    along: "place",
    vector: 4,
    value: HALVES.tile,
    packing: () => splittingCost(device, shape),
  } as const);
  return cutProduct(request, {
    rows: m,
    columns: n,
    batches: batch,
    ...stepsOf((policy) => loopDepth(depth, policy, matrix?.chain), request.variant),
    elements: batch * m * n,
    partialBytes: scalarBytes(sumOf(types)),
    finishedApart: matrix?.split === true,
    // Without a micro kernel the tiles are not the policy's.
    streams: fullVariant(request.variant).microKernel && batch * m * n > 0 && !matrix?.split,
    matrix,
    a: tile(a, "rows", n),
    b: tile(b, "columns", m),
  });
}
