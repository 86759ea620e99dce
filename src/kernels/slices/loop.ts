import type { PipelineCut } from "../schedule/pipeline.ts";
import { lines, range } from "../lists.ts";
import { eitherOutput, mainloopText, type OperandLoader } from "../loop/mainloop.ts";
import {
  innerProduct,
  isWorthPipelining,
  type SumName,
  threadProducts,
} from "../loop/thread_products.ts";
import { threadPlace } from "../loop/threads.ts";
import { variantTrait } from "../variant.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import {
  eachElement,
  loopIterations,
  type SizedKernel,
  sizedKernel,
  textKernel,
} from "../sized_kernel.ts";
import {
  exchangedSums,
  ownSums,
  type SliceStore,
  type SliceSums,
  sumsDeclaration,
} from "./exchange.ts";
import type { PatchTransform } from "./patch.ts";
import {
  sliceBytes,
  type SlicePolicy,
  slicePolicyName,
  sliceThreads,
  workgroupThreads,
} from "./policy.ts";
import { type Side, sliceThreadGrid, sliceTile } from "./tile.ts";
import { compensationText } from "../sums.ts";
import { splitTileText, tilePlaceText, type TileRange } from "../tile_scheduler.ts";

/** A product in slices, one for each Winograd product, as the mainloop iterates over it. */
export interface SliceLoopShape extends SliceSums {
  readonly rows: number;
  readonly columns: number;
  /** Independent products; `batch` is in scope of the loaders and the store. */
  readonly batches: number;
  /** Split-K: the last blocks, whose depth several workgroups share; none where absent. */
  readonly split?: SplitBlocks | undefined;
  /** WGSL of the first step and the step after the last, over `batch`, of full blocks. */
  readonly firstStep: string;
  readonly endStep: string;
  /** Most steps of a workgroup. */
  readonly steps: number;
  /** Whether all workgroups have the same number. */
  readonly sameSteps?: boolean;
  /** Statements that declare what the loaders and the store derive from `batch`. */
  readonly batchText: string;
  /** The loop is software-pipelined, where that pays. */
  readonly rotatedLoop: boolean;
  /** Where its back edge lies then; at a step's end where absent. */
  readonly pipelineCut?: PipelineCut | undefined;
  /** Keeps the number of batches out of the text, so that problems with more or fewer segments share a kernel. */
  readonly anyBatches?: boolean;
}

/**
 * Consecutive blocks in the order of {@linkcode tilePlaceText}, whose depth `splits` workgroups share. A block is the results of a
 * workgroup.
 */
export interface SplitBlocks extends TileRange {
  readonly splits: number;
  /** Steps of a block. */
  readonly steps: number;
}

/** A workgroup's results, and the depth of a step. */
export type SliceCut = Pick<SlicePolicy, "rows" | "columns" | "depth">;

/** Blocks of the product. */
export function sliceBlocks(
  shape: Pick<SliceLoopShape, "rows" | "columns" | "batches">,
  policy: Pick<SliceCut, "rows" | "columns">,
): number {
  return Math.ceil(shape.rows / policy.rows) * Math.ceil(shape.columns / policy.columns) *
    shape.batches;
}

/** Workgroups of the kernel: one for each full block, several for each split one. */
export function sliceWorkgroups(
  shape: Pick<SliceLoopShape, "rows" | "columns" | "batches" | "split">,
  policy: Pick<SliceCut, "rows" | "columns">,
): number {
  const { split } = shape;
  return split === undefined
    ? sliceBlocks(shape, policy)
    : split.first + split.count * split.splits;
}

/**
 * The mainloop of fused Winograd algorithms: α products of the same tile at once, each by its own threads, or all by every thread. The
 * loaders transform the operands, the epilogue transforms the results.
 *
 * @param store Where results of full blocks go, or of all where all are split.
 * @param shared Where those of split blocks go, where others are full.
 */
export function sliceLoopKernel(
  traits: string,
  suffix: string,
  module: ModuleBuilder,
  shape: SliceLoopShape,
  policy: SlicePolicy,
  a: OperandLoader,
  b: OperandLoader,
  output: PatchTransform,
  store: SliceStore,
  shared?: SliceStore,
): SizedKernel {
  const perSlice = sliceThreads(policy);
  const threads = workgroupThreads(policy, shape.slices);
  const { partial = 0 } = shape;
  const { rotatedLoop, pipelineCut } = shape;
  const name = `${traits}_${slicePolicyName(policy)}${partial === 0 ? "" : "_partial"}${
    variantTrait({ rotatedLoop })
  }_${suffix}`;
  const grid = sliceThreadGrid(policy, shape);
  const fragments = policy.threadColumns / 4;
  const sumIndex: SumName = (row, fragment) => `${row * fragments + fragment}`;
  // A uniform, so that sums of any length share a kernel.
  const partialSteps = partial === 0 ? "" : module.parameter("partial_steps", partial);
  const exchange = (to: SliceStore) =>
    (policy.allSlices ? ownSums : exchangedSums)(shape, policy, output, to, sumIndex);
  const tile = sliceTile(policy, shape);
  const tileOf = (side: Side, slice: string) => ({
    scalar: shape.scalar,
    declaration: `var<workgroup> tile: ${tile.type};`,
    fragment: (depth: string, index: number) =>
      `${tile.slice(slice)}${tile.row(depth)}${tile.fragment(side, index, Number(depth))}`,
  });
  const pipelines = rotatedLoop && !policy.allSlices &&
    isWorthPipelining(module.mode, shape.steps);
  const slices = policy.allSlices ? range(shape.slices).map((slice) => `${slice}`) : ["slice"];
  const wgsl = mainloopText({
    name,
    summary: `${shape.slices} slices of ${policy.rows} x ${policy.columns} results a workgroup, ` +
      `${policy.threadRows} x ${policy.threadColumns} a thread, ${policy.depth} deep steps.`,
    declarations: [store.declarations, ...sumsDeclaration(shape, policy)],
    threads,
    ...sliceWorkgroupText(module, shape, policy),
    places: [
      ...(policy.allSlices
        ? ["  let u = t;"]
        : [`  let slice = t / ${perSlice}u;`, `  let u = t % ${perSlice}u;`]),
      threadPlace(grid, "u", "t"),
      tile.places,
    ].join("\n"),
    schedule: {
      buffers: 1,
      prefetch: true,
      tripCount: { form: "range" },
      steps: shape.steps,
    },
    loaders: [a, b],
    products: threadProducts({
      tiles: slices.map((slice) => [tileOf("a", slice), tileOf("b", slice)]),
      depth: policy.depth,
      unroll: true,
      cut: pipelines ? pipelineCut : undefined,
      // Where sums are stored in parts rows are up to 3 % faster on an H200.
      order: partial === 0 ? "serpentine" : "rows",
      // A thread's own sums need no exchange through the tile, so nobody waits behind a peeled last step.
      last: policy.allSlices && shape.sameSteps && module.mode === "constant" && shape.steps > 0
        ? policy.depth
        : undefined,
      inner: innerProduct("f32"),
      threadTile: policy,
      accumulate: partial === 0
        ? { into: "registers", every: 0 }
        : { into: "store", every: partialSteps },
      sumIndex,
    }),
    output: shared === undefined
      ? exchange(store)
      : eitherOutput("whole", exchange(store), exchange(shared)),
  }, module);
  return sizedKernel(module, name, wgsl, {
    workgroups: sliceWorkgroups(shape, policy),
    threads,
    bytes: sliceBytes(policy, shape.slices, shape.across, shape.scalar),
    iterations: sliceIterations(shape),
  });
}

/**
 * Loop iterations of a thread.
 *
 * @param written Unroll factor.
 */
export function sliceIterations(
  { steps, partial = 0 }: Pick<SliceLoopShape, "steps" | "partial">,
  written = 1,
): number {
  const rounds = Math.ceil(steps / written);
  const inner = written === 1 ? 0 : loopIterations(written);
  return partial === 0
    ? loopIterations(rounds, inner)
    : loopIterations(Math.ceil(steps / partial), 1) + rounds * (1 + inner);
}

/** Declares the `batch`, first row and first column of a block. */
function blockPlaceText(
  module: ModuleBuilder,
  block: string,
  shape: Pick<SliceLoopShape, "rows" | "columns">,
  policy: Pick<SliceCut, "rows" | "columns">,
): string[] {
  const tiles = {
    rows: Math.ceil(shape.rows / policy.rows),
    columns: Math.ceil(shape.columns / policy.columns),
    classes: 1,
    raster: 0,
  };
  return [
    ...tilePlaceText(module, [block, "batch"], tiles),
    `  let first_row = row_tile * ${policy.rows}u;`,
    `  let first_column = column_tile * ${policy.columns}u;`,
  ];
}

/** Which workgroups there are, and what of the product is one's. */
export function sliceWorkgroupText(
  module: ModuleBuilder,
  shape: Pick<
    SliceLoopShape,
    | "rows"
    | "columns"
    | "batches"
    | "split"
    | "anyBatches"
    | "batchText"
    | "firstStep"
    | "endStep"
  >,
  policy: SliceCut,
): { workgroups: string; workgroup: string } {
  const workgroups = (shape.anyBatches ? module.parameter : module.size)(
    "workgroups",
    sliceWorkgroups(shape, policy),
  );
  const { split, batchText } = shape;
  const [place, firstStep, endStep] = split === undefined
    ? [blockPlaceText(module, "id", shape, policy), shape.firstStep, shape.endStep]
    : splitText(module, shape, policy, split);
  return {
    workgroups,
    workgroup: [
      ...place,
      batchText,
      `  let first_step = ${firstStep};`,
      `  let end_step = ${endStep};`,
    ].join("\n"),
  };
}

/** The block and the steps of a workgroup. Workgroups that run at once read the same depths. */
function splitText(
  module: ModuleBuilder,
  shape: Pick<SliceLoopShape, "rows" | "columns">,
  policy: SliceCut,
  split: SplitBlocks,
): [place: string[], firstStep: string, endStep: string] {
  const steps = module.size("steps", split.steps);
  const each = module.size("splits", split.splits);
  const own = (text: string, whole: string) =>
    split.first > 0 ? `select(${text}, ${whole}, whole)` : text;
  return [
    [
      ...splitTileText(module, split, "block"),
      `  let part = (block - ${module.size("first_tile", split.first)}) * ${each} + split;`,
      ...blockPlaceText(module, "block", shape, policy),
    ],
    own(`split * ${steps} / ${each}`, "0u"),
    own(`(split + 1u) * ${steps} / ${each}`, steps),
  ];
}

/** Split blocks, each with `results` results (a tile's) for each of its places. */
export interface BlockParts {
  readonly split: SplitBlocks;
  readonly results: number;
}

type BlockSize = Pick<SliceCut, "rows" | "columns">;

/** Vectors that a thread loads at once: of several parts, where they have few results. */
const AT_ONCE = 24;

/** Vectors of one result of a block. */
function blockVectors({ rows, columns }: BlockSize): number {
  return rows * columns / 4;
}

/** Elements of all parts. */
export function partElements({ split, results }: BlockParts, block: BlockSize): number {
  return split.count * split.splits * results * block.rows * block.columns;
}

/** WGSL of where a block's result `i` of a vector lies; `at` counts parts. */
function partPlace(
  at: string,
  i: number,
  results: number,
  place: string,
  block: BlockSize,
): string {
  return `(${at} * ${results}u + ${i}u) * ${blockVectors(block)}u + ${place}`;
}

/**
 * Stores a workgroup's partial results of its block beside the others'.
 *
 * @param again Whether the loop stores its sums in parts, of which each is added to what is there `again`.
 */
export function splitStore(
  parts: TensorAccess,
  { results }: BlockParts,
  block: BlockSize,
  again: boolean,
): SliceStore {
  return {
    declarations: "",
    text(outputs) {
      const across = block.columns / 4;
      return lines(
        `      let in_block = (row - first_row) * ${across}u + (column - first_column) / 4u;`,
        outputs.map((output, i) => {
          const to = partPlace("part", i, results, "in_block", block);
          const sum = `var sum${i} = ${output};`;
          const add = `if (again) { sum${i} += ${parts.load(to)}; }`;
          return again
            ? `      ${sum} ${add} ${parts.store(to, `sum${i}`)}`
            : `      ${parts.store(to, output)}`;
        }),
      );
    },
  };
}

/**
 * Split-K's reduction: sums the parts of each block, in a fixed order, with compensation (which compilers may drop), and stores the
 * results as full blocks are stored. Binds `parts` and what the store binds.
 *
 * @param name All that the text depends on, but for sizes.
 */
export function sumPartsKernel(
  name: string,
  module: ModuleBuilder,
  shape: Pick<SliceLoopShape, "rows" | "columns">,
  { split, results }: BlockParts,
  block: BlockSize,
  parts: TensorAccess,
  store: SliceStore,
): SizedKernel {
  const each = blockVectors(block);
  const count = module.size("vectors", split.count * each);
  const splits = module.size("splits", split.splits);
  const all = range(results);
  const atOnce = Math.max(1, Math.min(4, Math.floor(AT_ONCE / results)));
  const ahead = range(atOnce);
  const body = [
    eachElement(count),
    `  let place = i % ${each}u;`,
    `  let own = i / ${each}u;`,
    `  let block = ${module.size("first_tile", split.first)} + own;`,
    blockPlaceText(module, "block", shape, block),
    "  let group = batch;",
    `  let row = first_row + place / ${block.columns / 4}u;`,
    `  let column = first_column + place % ${block.columns / 4}u * 4u;`,
    all.map((i) => `  var sum${i} = vec4f(); var lost${i} = vec4f();`),
    // Loads of several parts are on their way at once; those beyond the last add nothing.
    `  for (var split = 0u; split < ${splits}; split += ${atOnce}u) {`,
    ahead.map((k) => [
      `    let part${k} = own * ${splits} + min(split + ${k}u, ${splits} - 1u);`,
      all.map((i) =>
        `    let value${k}_${i} = ${parts.load(partPlace(`part${k}`, i, results, "place", block))};`
      ),
    ]),
    ahead.map((k) =>
      all.map((i) => [
        `    let term${k}_${i} = select(vec4f(), value${k}_${i}, split + ${k}u < ${splits}) - lost${i};`,
        `    let next${k}_${i} = sum${i} + term${k}_${i};`,
        `    lost${i} = lost_of(sum${i}, term${k}_${i}, next${k}_${i});`,
        `    sum${i} = next${k}_${i};`,
      ])
    ),
    "  }",
    store.text(all.map((i) => `sum${i}`)),
    "}",
  ];
  const wgsl = [store.declarations, compensationText("f32", 4), body];
  const about = "sums the parts of blocks whose depth workgroups share.";
  return textKernel(module, name, about, wgsl, {
    workgroups: Math.ceil(split.count * each / 256),
    iterations: loopIterations(Math.ceil(split.splits / atOnce)),
  });
}
