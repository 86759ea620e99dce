import template from "../../../shaders/slice_loop.wgsl" with { type: "text" };
import {
  loopIterations,
  type ModuleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
} from "../module.ts";
import { type PatchTransform, transformResults, transformText } from "./patch.ts";
import {
  sliceBytes,
  type SlicePolicy,
  slicePolicyName,
  sliceRowVectors,
  sliceThreads,
} from "./policy.ts";

/** Brings one operand of every slice into the tile: text, as the loaders of the main loop are. */
export interface SliceLoader {
  readonly declarations: string;
  /** Declares what stays fixed for this thread. */
  readonly begin: string;
  /** Declares the registers between fetch and store. */
  readonly registers: string;
  /** Fills the registers for the step `at`. */
  readonly fetch: string;
  /** Transforms the registers and stores them into `tile[slice][depth][vector]`. */
  readonly store: string;
}

/** A sliced product as the loop iterates over it. */
export interface SliceLoopShape {
  readonly slices: number;
  /** Whether a loader stores along the depth, which needs tile rows of an odd number of vectors. */
  readonly padded: boolean;
  readonly rows: number;
  readonly columns: number;
  /** Independent products; `batch` is in scope of the loaders and the store. */
  readonly batches: number;
  /** WGSL of the first step and the step after the last, over `batch`. */
  readonly firstStep: string;
  readonly endStep: string;
  /** Most steps of a workgroup. */
  readonly steps: number;
  /** Statements that declare what the loaders and the store derive from `batch`. */
  readonly batchText: string;
  /** Steps after which the sums go to the store, which then adds where `again` is true; 0 or absent for never. */
  readonly partial?: number;
  /** Keeps the number of batches out of the text, so that problems cut into more or fewer share a kernel. */
  readonly anyBatches?: boolean;
}

/** Stores the transformed results of four columns of a row. */
export interface SliceStore {
  readonly declarations: string;
  /**
   * Statements; `row` and `column` (of the first of four) are in scope as u32, and where sums are stored in parts
   * `again`: whether a part is there already.
   */
  text(outputs: readonly string[]): string;
}

/** Workgroups of the loop. */
export function sliceWorkgroups(
  shape: Pick<SliceLoopShape, "rows" | "columns" | "batches">,
  policy: SlicePolicy,
): number {
  return Math.ceil(shape.rows / policy.rows) * Math.ceil(shape.columns / policy.columns) *
    shape.batches;
}

/**
 * The main loop of fused Winograd algorithms: α products of the same tile at once, one a group of threads,
 * operands transformed on their way into workgroup memory, results transformed on their way out of it.
 *
 * @param flush Steps after which the sums move to a second set of registers, which shortens what one
 *   accumulator adds up; 0 for never.
 */
export function sliceLoopKernel(
  traits: string,
  suffix: string,
  mode: SizeMode,
  module: ModuleBuilder,
  shape: SliceLoopShape,
  policy: SlicePolicy,
  a: SliceLoader,
  b: SliceLoader,
  output: PatchTransform,
  store: SliceStore,
  flush: number,
): SizedKernel {
  const perSlice = sliceThreads(policy);
  const threads = perSlice * shape.slices;
  const fragments = policy.threadColumns / 4;
  const width = sliceRowVectors(policy, false);
  const sums = policy.threadRows * fragments;
  const round = sumsPerRound(policy, sums);
  const partial = shape.partial ?? 0;
  const outputs = transformResults(output);
  const text = transformText(
    output,
    "y",
    (i, j) => `m${i * output.columns[0]!.length + j}`,
    "vec4f",
  );
  const values = {
    name: `${traits}_${slicePolicyName(policy)}${flush === 0 ? "" : `_flush${flush}`}${
      partial === 0 ? "" : "_partial"
    }_${suffix}`,
    policy,
    shape,
    perSlice,
    threads,
    threadsX: policy.columns / policy.threadColumns,
    threadsY: policy.rows / policy.threadRows,
    warpColumns: Math.min(8, policy.columns / policy.threadColumns),
    aFragments: policy.threadRows / 4,
    bFragments: fragments,
    rowVectors: sliceRowVectors(policy, shape.padded),
    width,
    sums,
    round,
    flush,
    partial,
    // A uniform, so that sums of any length share a kernel.
    partialSteps: partial === 0 ? "" : module.parameter("partial_steps", partial),
    free: partial > 0 && policy.buffers === 2 ? "free" : "0",
    outputs,
    positions: perSlice * round,
    transform: text.statements,
    stored: store.text(text.outputs),
    workgroups: (shape.anyBatches ? module.parameter : module.size)(
      "workgroups",
      sliceWorkgroups(shape, policy),
    ),
    rowTiles: module.size("row_tiles", Math.ceil(shape.rows / policy.rows)),
    columnTiles: module.size("column_tiles", Math.ceil(shape.columns / policy.columns)),
    a,
    b,
  };
  const wgsl = render(template, {
    ...values,
    declarations: [module.declarations(), a.declarations, b.declarations, store.declarations]
      .filter((one) => one !== "").join("\n"),
  });
  return sizedKernel(
    values.name,
    mode,
    wgsl,
    module,
    [threads, 1, 1],
    sliceBytes(policy, shape.slices, shape.padded),
    partial === 0
      ? loopIterations(shape.steps)
      : loopIterations(Math.ceil(shape.steps / partial), 1) + shape.steps,
  );
}

/** Vectors of sums that each thread passes on in one round through the tile's memory. */
function sumsPerRound(policy: SlicePolicy, sums: number): number {
  const room = policy.depth * sliceRowVectors(policy, false);
  let round = sums;
  while (round > 1 && (sums % round !== 0 || round * sliceThreads(policy) > room)) round--;
  return round;
}
