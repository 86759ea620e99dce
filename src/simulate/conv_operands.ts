import type { ConvProblem } from "../problem/conv_problem.ts";
import { operandTensors, tensorShape } from "../problem/conv_problem.ts";
import type { AxisTile, TileShare } from "../problem/plan_arithmetic.ts";
import {
  canonicalStrides,
  type Geometry,
  geometryOf,
  type HostArray,
  type Triple,
} from "../reference/geometry.ts";
import type { ReferenceInputs } from "../reference/reference.ts";
import { stridesInLayout } from "../tensor/layout.ts";

/**
 * Outputs of one group that share operands: every left one with every right one. A left one is a place: forward and
 * backward-data an image and a tile of it, backward-filter an input channel and a tile of the filter's taps. A right one
 * is a channel of the group: K, of backward-data C.
 */
export interface ConvBlock {
  readonly group: number;
  /** Outer index (image, or channel of the group), then the tile along each of three axes. */
  readonly lefts: readonly (readonly [outer: number, ...tile: Triple])[];
  readonly rights: readonly number[];
}

/** A problem's operands and how they lie, for sources of its blocks. */
export interface ConvOperands {
  readonly problem: ConvProblem;
  readonly geometry: Geometry;
  readonly first: HostArray;
  readonly second: HostArray;
}

/** @throws {TypeError} where an operand is missing. */
export function convOperands(problem: ConvProblem, inputs: ReferenceInputs): ConvOperands {
  const strides = { ...canonicalStrides(problem) };
  const [first, second] = operandTensors(problem.op).map((which) => {
    const operand = inputs[which];
    if (operand === undefined) throw new TypeError(`Cannot simulate: ${which} is missing`);
    strides[which] = stridesInLayout(tensorShape(problem, which), operand.layout);
    return operand.data;
  }) as [HostArray, HostArray];
  return { problem, geometry: geometryOf(problem, strides), first, second };
}

/** Tiles along three axes; axes that a problem lacks have none. */
export function threeTiles(share: TileShare | undefined): [AxisTile, AxisTile, AxisTile] {
  const given = share?.axes ?? [];
  const [a, b, c] = [...Array.from({ length: 3 - given.length }, () => ({ n: 1, r: 1 })), ...given];
  return [a!, b!, c!];
}

/** Sizes of the result along three axes: places, or taps of a filter's gradient. */
export function resultSizes({ op, inputSize, filterSize, outputSize }: Geometry): Triple {
  return op === "fwd" ? outputSize : op === "bwd-data" ? inputSize : filterSize;
}
