import type { Scalar } from "../../elements/scalar.ts";
import type { TapRing, TapRow, TileLoader } from "../../kernels/loader.ts";
import type { UnevenRows } from "../../kernels/tile_scheduler.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import type { ModuleBuilder, TensorSplit } from "../../kernels/module.ts";
import type { PackShape } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import type { ResultPlaces } from "../../kernels/reduce.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { type FilterLayout, type Layout, stridesInLayout } from "../../tensor/layout.ts";
import type { PlanRequest } from "../request.ts";

/** How an operand lies in memory. */
export interface Access {
  readonly along: TileLoader["along"];
  readonly value: Scalar;
  readonly vector: 1 | 4;
  /** Runs of a step's depth in which it lies; one where absent. */
  readonly runs?: number;
  /** Taps that a step multiplies each load with. */
  readonly tapRow?: TapRow;
  /** Taps whose columns a step multiplies with what it and steps before it have loaded. */
  readonly tapRing?: TapRing;
  /** Whether each step finds anew where it lies. */
  readonly gathered?: boolean;
  /** Elements from a place to the next in memory, where that is known and places do not lie beside each other. */
  readonly pitch?: number;
  /** Elements that its loads step over: for matrix units they are of eight halves where all are whole eights. */
  readonly steps?: readonly number[];
}

/** The product a problem becomes, and how its operands and result lie in memory. */
export interface Operands {
  readonly rows: number;
  readonly columns: number;
  /** Independent products: groups, and classes of strides whose rows tiles do not share. */
  readonly batches: number;
  /** Rows of the main loop, where they are padded between classes; `rows` where absent. */
  loopRows?(policy: TilePolicy): number;
  /** Mean depth of the rows over the most; 1 where absent. */
  readonly share?: number;
  /** What rows of classes of strides are. */
  uneven?(module: ModuleBuilder, policy: TilePolicy): UnevenRows;
  readonly a: Access;
  readonly b: Access;
  /** What A is read from where nothing is packed. */
  readonly left: ConvTensor;
  /** Products that a result sums, padding of the taps included. */
  depth(policy: TilePolicy): number;
  /** The filter's packed form, which is read in its place. */
  pack(policy: TilePolicy): PackShape | undefined;
  loaders(
    module: ModuleBuilder,
    policy: TilePolicy,
    split: (operand: "a" | "b") => TensorSplit,
  ): [TileLoader, TileLoader];
  readonly result: ResultPlaces;
  /** Whether a step may reach into several taps, so that every load finds its own. */
  linear(policy: TilePolicy): boolean;
  /** Enters the kernel's name. */
  trait(policy: TilePolicy): string;
  /** What products of classes of strides are, for notes. */
  readonly classes?: string;
}

/** Strides in elements of one of the problem's tensors, per canonical axis. */
export function stridesOf(
  { problem, layout: images, filterLayout }: PlanRequest,
  which: ConvTensor,
  layout: Layout | FilterLayout = which === "filter" ? filterLayout : images,
): number[] {
  return stridesInLayout(tensorShape(problem, which), layout);
}

/** `nhwc`, `nhwc_to_nchw`: how images lie, and results where they lie otherwise, as it stands in kernel names. */
export function layoutTrait({ layout }: Pick<PlanRequest, "layout">, results: Layout): string {
  return results === layout ? layout : `${layout}_to_${results}`;
}

/** Elements of a load, four where they lie on whole fours. */
export function loadVector({ variant }: PlanRequest): (elements: number) => 1 | 4 {
  const { vectorLoads } = fullVariant(variant);
  return (elements) => vectorLoads && elements % 4 === 0 ? 4 : 1;
}

/** Channels of a group. */
export function groupChannels(problem: ConvProblem): { input: number; output: number } {
  return {
    input: problem.inChannels / problem.groups,
    output: problem.outChannels / problem.groups,
  };
}
