import exchangeTemplate from "../../../shaders/exchange.wgsl" with { type: "text" };
import { type Scalar, typeName } from "../../elements/scalar.ts";
import { eachSum, innerProduct, type SumName } from "../loop/inner_product.ts";
import { type StepLoader, stepLoopText } from "../loop/step_loop.ts";
import { threadProducts } from "../loop/thread_products.ts";
import { fragmentPlaces, type ThreadGrid, threadPlace } from "../loop/threads.ts";
import type { WorkgroupTile } from "../loop/workgroup_tile.ts";
import {
  loopIterations,
  type ModuleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
} from "../module.ts";
import { type PatchTransform, transformText } from "./patch.ts";
import {
  type AcrossSides,
  isSwizzled,
  sliceBytes,
  type SlicePolicy,
  slicePolicyName,
  sliceRowVectors,
  sliceThreads,
  sumLines,
  sumsPerRound,
  SWIZZLE,
} from "./policy.ts";

/** A sliced product as the loop iterates over it. */
export interface SliceLoopShape {
  readonly slices: number;
  /** Operands whose loaders store along the depth. */
  readonly across: AcrossSides;
  /** What transformed operands are in workgroup memory; sums are f32. */
  readonly scalar: Scalar;
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
  a: StepLoader,
  b: StepLoader,
  output: PatchTransform,
  store: SliceStore,
  flush: number,
): SizedKernel {
  const perSlice = sliceThreads(policy);
  const threads = perSlice * shape.slices;
  const partial = shape.partial ?? 0;
  const name = `${traits}_${slicePolicyName(policy)}${flush === 0 ? "" : `_flush${flush}`}${
    partial === 0 ? "" : "_partial"
  }_${suffix}`;
  const grid = sliceGrid(policy);
  const fragments = policy.threadColumns / 4;
  const sumIndex: SumName = (row, fragment) => `${row * fragments + fragment}`;
  // A uniform, so that sums of any length share a kernel.
  const partialSteps = partial === 0 ? "" : module.parameter("partial_steps", partial);
  const exchange = exchangeText(shape, policy, grid, output, store, sumIndex);
  const workgroups = (shape.anyBatches ? module.parameter : module.size)(
    "workgroups",
    sliceWorkgroups(shape, policy),
  );
  const rowTiles = module.size("row_tiles", Math.ceil(shape.rows / policy.rows));
  const columnTiles = module.size("column_tiles", Math.ceil(shape.columns / policy.columns));
  const swizzled = isSwizzled(policy, shape.across) ? shape.across : [];
  const tile = sliceTile(shape, policy);
  const tileOf = (side: "a" | "b") => swizzled.includes(side) ? swizzledTile(tile) : tile;
  const wgsl = stepLoopText({
    name,
    summary: `${shape.slices} slices of ${policy.rows} x ${policy.columns} results a workgroup, ` +
      `${policy.threadRows} x ${policy.threadColumns} a thread, ${policy.depth} deep steps.`,
    declarations: [store.declarations, ...sumsDeclaration(shape, policy)],
    threads,
    workgroups,
    workgroup: [
      `  let row_tile = id % ${rowTiles};`,
      `  let column_tile = (id / ${rowTiles}) % ${columnTiles};`,
      `  let batch = id / (${rowTiles} * ${columnTiles});`,
      `  let first_row = row_tile * ${policy.rows}u;`,
      `  let first_column = column_tile * ${policy.columns}u;`,
      shape.batchText,
      `  let first_step = ${shape.firstStep};`,
      `  let end_step = ${shape.endStep};`,
    ].join("\n"),
    places: [
      `  let slice = t / ${perSlice}u;`,
      `  let u = t % ${perSlice}u;`,
      threadPlace(grid, "u", "t"),
      fragmentPlaces(grid, policy.threadRows / 4, fragments, `${policy.rows / 4}u`),
      ...(swizzled.includes("a")
        ? [swizzledPlaces("ay", "ty", grid.rows, policy.threadRows / 4, 0)]
        : []),
      ...(swizzled.includes("b")
        ? [swizzledPlaces("bx", "tx", grid.columns, fragments, policy.rows / 4)]
        : []),
    ].join("\n"),
    schedule: { buffers: policy.buffers === 2 ? "ahead" : "one", prefetch: true },
    steps: shape.steps,
    loaders: [a, b],
    products: threadProducts({
      tiles: [tileOf("a"), tileOf("b")],
      depth: policy.depth,
      unroll: true,
      inner: innerProduct("f32"),
      threadTile: policy,
      accumulate: partial === 0
        ? { into: "registers", every: flush }
        : { into: "store", every: partialSteps },
      sumIndex,
    }),
    output: exchange,
  }, module);
  return sizedKernel(
    name,
    mode,
    wgsl,
    module,
    [threads, 1, 1],
    tile.bytes,
    partial === 0
      ? loopIterations(shape.steps)
      : loopIterations(Math.ceil(shape.steps / partial), 1) + shape.steps,
  );
}

/** How the threads of a slice lie on its results: by warps where there are whole ones of four rows. */
function sliceGrid(policy: SlicePolicy): ThreadGrid {
  const rows = policy.rows / policy.threadRows;
  const columns = policy.columns / policy.threadColumns;
  const wide = Math.min(8, columns);
  return { rows, columns, warp: rows * columns >= 32 && rows >= 4 ? [32 / wide, wide] : undefined };
}

/** Rows of A, then columns of B, of every slice. When the products are done it carries the sums to the output transform. */
function sliceTile({ slices, across, scalar }: SliceLoopShape, policy: SlicePolicy): WorkgroupTile {
  const vectors = sliceRowVectors(policy, across);
  const full = policy.buffers === 2 ? "full" : "0";
  return {
    scalar,
    declaration:
      `var<workgroup> tile: array<array<array<array<${typeName(scalar, 4)}, ${vectors}>, ` +
      `${policy.depth}>, ${slices}>, ${policy.buffers}>;`,
    bytes: sliceBytes(policy, slices, across, scalar),
    at: (depth, vector) => `tile[${full}][slice][${depth}][${vector}]`,
  };
}

/** The tile where vectors of a row are exchanged: a depth's places are {@linkcode swizzledPlaces}. */
function swizzledTile(tile: WorkgroupTile): WorkgroupTile {
  return {
    ...tile,
    at: (depth, vector) => tile.at(depth, `${vector}_${Number(depth) % SWIZZLE}`),
  };
}

/**
 * Declares `{name}{i}_{m}`, where a thread's fragment i lies in rows m, m + 8 ...: its vector within the operand, xor m. Threads
 * that are a power of two share what of it depends on them.
 */
function swizzledPlaces(
  name: string,
  thread: string,
  threads: number,
  fragments: number,
  first: number,
): string {
  const low = Math.min(SWIZZLE, 2 ** Math.floor(Math.log2(threads)));
  const whole = low === threads || low === SWIZZLE && threads % SWIZZLE === 0;
  const rows = Array.from({ length: SWIZZLE }, (_, m) => m);
  const text = (i: number, m: number) =>
    whole
      ? `${thread}_${m % low} + ${first + ((i * threads) ^ (m - m % low))}u`
      : `((${thread} + ${i * threads}u) ^ ${m}u) + ${first}u`;
  return [
    ...(whole ? rows.slice(0, low).map((m) => `  let ${thread}_${m} = ${thread} ^ ${m}u;`) : []),
    ...Array.from(
      { length: fragments },
      (_, i) => rows.map((m) => `  let ${name}${i}_${m} = ${text(i, m)};`),
    ).flat(),
  ].join("\n");
}

/** Where sums of f32 go on their way to the output transform, where the tile cannot hold them. */
function sumsDeclaration({ slices, scalar }: SliceLoopShape, policy: SlicePolicy): string[] {
  if (scalar === "f32") return [];
  return [
    `var<workgroup> sums: array<array<array<vec4f, ${sliceRowVectors(policy, [])}>, ` +
    `${sumLines(policy, scalar)}>, ${slices}>;`,
  ];
}

/** Sums of all slices through the tile's memory, or their own, round by round, to threads that transform and store results. */
function exchangeText(
  shape: SliceLoopShape,
  policy: SlicePolicy,
  grid: ThreadGrid,
  output: PatchTransform,
  store: SliceStore,
  sumIndex: SumName,
): string {
  const perSlice = sliceThreads(policy);
  const sums = eachSum(policy, (row, j) => `c${sumIndex(row, j)}`);
  const round = sumsPerRound(policy, shape.scalar);
  const columns = output.columns[0]!.length;
  const text = transformText(output, "y", (i, j) => `m${i * columns + j}`, "vec4f");
  // Where sums are stored in parts, the other tile holds the step that comes next.
  const free = shape.scalar === "f32" && (shape.partial ?? 0) > 0 && policy.buffers === 2;
  const memory = shape.scalar === "f32" ? `tile[${free ? "free" : "0"}]` : "sums";
  const slices = Array.from({ length: shape.slices }, (_, slice) => slice);
  return (free ? "  let free = (next_step - first_step + 1u) % 2u;\n" : "") +
    render(exchangeTemplate, {
      sums,
      round,
      perSlice,
      threads: perSlice * shape.slices,
      threadsX: grid.columns,
      threadsY: grid.rows,
      fragments: policy.threadColumns / 4,
      width: sliceRowVectors(policy, []),
      memory,
      positions: perSlice * round,
      places: threadPlace(grid, "member", "of_", ["of_lane", "of_warp"]),
      products: slices.map((s) => `      let m${s} = ${memory}[${s}][line][vector];`)
        .concat(text.statements).join("\n"),
      stored: store.text(text.outputs),
    });
}
