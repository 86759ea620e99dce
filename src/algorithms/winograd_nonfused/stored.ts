import { elementsOf, sumOf } from "../../elements/elements.ts";
import type { Stored } from "../../elements/scalar.ts";
import type { WinogradTile } from "../../winograd/tile.ts";
import { HALF_ALLOWED } from "../cost/accuracy.ts";
import type { PlanRequest } from "../request.ts";

/**
 * Relative L2 errors of f16 results over those of direct sums, where transformed data and products are quads: of an axis'
 * tile by itself, and on two axes. The largest of normal, uniform11 and uniform01 data and of sizes from 1e-3 to 1e3.
 * Simulated, with exact transforms and sums.
 */
const HALF_ERRORS: Readonly<Record<string, readonly [alone: number, squared: number]>> = {
  "F(2,2)": [1.34, 1.51],
  "F(3,2)": [1.29, 1.41],
  "F(4,2)": [1.64, 3.09],
  "F(5,2)": [1.85, 3.78],
  "F(6,2)": [2.87, 11.96],
  "F(7,2)": [3.17, 14.85],
  "F(2,3)": [1.26, 1.38],
  "F(3,3)": [1.64, 2.92],
  "F(4,3)": [1.8, 3.49],
  "F(5,3)": [2.51, 9.79],
  "F(6,3)": [2.8, 12.09],
  "F(2,4)": [1.68, 3.04],
  "F(3,4)": [1.75, 3.39],
  "F(4,4)": [2.63, 9.41],
  "F(5,4)": [2.86, 11.11],
  "F(2,5)": [1.72, 3.63],
  "F(4,5)": [2.81, 11.35],
  "F(2,7)": [3.34, 14.54],
};

/** The relative L2 error of a tile in quads over that of direct sums; infinite where it was not measured. */
export function halvedError({ n, r }: WinogradTile): number {
  const axes = n.map((size, axis) => ({ n: size, r: r[axis]! }))
    .filter((axis) => axis.n > 1 && axis.r > 1)
    .map((axis) => HALF_ERRORS[`F(${axis.n},${axis.r})`] ?? [Infinity, Infinity]);
  if (axes.length === 0) return 1;
  if (axes.length === 1) return axes[0]![0];
  // Roundings beside the result's own grow with both axes' enlargements.
  const squares = axes.map(([, squared]) => squared ** 2 - 1);
  return Math.sqrt(1 + Math.sqrt(squares[0]! * squares[1]!));
}

/** Whether a tile that nobody names is weighed in half the bytes, where those are asked for. */
export function weighsHalved({ variant, maxBoundRatio }: PlanRequest, tile: WinogradTile): boolean {
  return !variant?.halfTransforms || maxBoundRatio !== undefined ||
    halvedError(tile) <= HALF_ALLOWED;
}

/**
 * What transformed data of a request is stored in: two halves a value where matrix units multiply them, half the bytes where that is
 * asked for. Never unasked: values that are much
 * smaller than a neighbour lose bits, as channels do whose scales are unlike.
 */
export function storedOf(request: PlanRequest): Stored {
  if (request.math === "f16x3") return "halves";
  const elements = elementsOf(request);
  const halved = elements.storage === "f16" && request.variant?.halfTransforms === true;
  return halved ? "quad" : sumOf(elements);
}
