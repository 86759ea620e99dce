import template from "../../shaders/main_loop.wgsl" with { type: "text" };
import type { OutputStore } from "./output.ts";
import { type LoadSchedule, scheduleLoads, type TileLoader, vectorSide } from "./loader.ts";
import {
  loopIterations,
  type ModuleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
} from "./module.ts";
import { fullVariant, type MainLoopVariant, variantTrait } from "./main_loop_variant.ts";
import { fragments, microKernel, withoutMicroKernel } from "./micro_kernel.ts";
import { policyThreads, policyTile, type TilePolicy } from "./policy.ts";
import type { Accumulation } from "../elements/elements.ts";
import { zeroOf } from "../elements/scalar.ts";
import { tileBytes, type WorkgroupTile, workgroupTile } from "./workgroup_tile.ts";

/** A batched product C = A·B cut by a policy: what the main loop iterates over. */
export interface MainLoopShape {
  readonly rows: number;
  readonly columns: number;
  /** Products that a result sums, all splits together; operands are zero from there to the end of a step. */
  readonly depth: number;
  /** Independent products: the groups of a convolution. */
  readonly batches: number;
  /** Workgroups that share the depth of one tile (split-K). */
  readonly splits: number;
  /** The tiles that this kernel computes, of all batches' in order; all where absent. Named `tile` in its text. */
  readonly range?: TileRange;
}

/** Tiles one after the other: down the rows, then along the columns, then to the next batch. */
export interface TileRange {
  readonly first: number;
  readonly count: number;
}

/** What a kernel may have beside its loaders and output. */
export interface MainLoopOptions {
  /** Optimisations that are not as tuned. */
  readonly variant?: MainLoopVariant;
  /** f32 where absent. */
  readonly accumulation?: Accumulation;
}

/** What the main loop cuts by where `policy` is asked for. */
export function variantPolicy(policy: TilePolicy, variant?: MainLoopVariant): TilePolicy {
  return fullVariant(variant).microKernel ? policy : withoutMicroKernel(policy);
}

/** Workgroups of the loop. */
export function mainLoopWorkgroups(
  shape: Omit<MainLoopShape, "depth">,
  policy: TilePolicy,
): number {
  const tiles = shape.range?.count ??
    Math.ceil(shape.rows / policy.rows) * Math.ceil(shape.columns / policy.columns) *
      shape.batches;
  return tiles * shape.splits;
}

/** Bytes of workgroup memory of the main loop with these loaders. */
export function mainLoopBytes(
  policy: TilePolicy,
  a: Pick<TileLoader, "along" | "value">,
  b: Pick<TileLoader, "along" | "value">,
  { doubleBuffer }: Pick<MainLoopVariant, "doubleBuffer"> = {},
): number {
  return tileBytes(policy.rows, policy.depth, a, doubleBuffer) +
    tileBytes(policy.columns, policy.depth, b, doubleBuffer);
}

/** Share of the products that must be for nothing for the last step to be a text of its own; else the loop is better alone. */
const WORTH_PEELING = 0.03;

/** Products of the last step, where it is a text of its own; the text must know the depth. */
function peeledDepth(
  { depth, splits }: MainLoopShape,
  policy: TilePolicy,
  mode: SizeMode,
  variant?: MainLoopVariant,
): number | undefined {
  const { unroll, peel } = fullVariant(variant);
  if (mode === "uniform" || !unroll || !peel || splits > 1 || depth === 0) return undefined;
  const steps = Math.ceil(depth / policy.depth);
  const last = depth - (steps - 1) * policy.depth;
  const skipped = policy.depth - last;
  return skipped >= WORTH_PEELING * steps * policy.depth ? last : undefined;
}

/** Multiplications of the loop, those with padding included. */
export function mainLoopMultiplications(
  shape: MainLoopShape,
  policy: TilePolicy,
  mode: SizeMode,
  variant?: MainLoopVariant,
): number {
  const results = mainLoopWorkgroups({ ...shape, splits: 1 }, policy) * policy.rows *
    policy.columns;
  return peeledDepth(shape, policy, mode, variant) === undefined
    ? results * Math.ceil(shape.depth / policy.depth) * policy.depth
    : results * shape.depth;
}

/**
 * The hierarchical product of CUTLASS: workgroup tiles in workgroup memory, thread tiles in registers,
 * the next tile on its way while this one is multiplied. Everything a convolution algorithm adds is in
 * the two loaders and the output store.
 *
 * @param traits Canonical name up to the tile, e.g. `implicit_gemm_fwd_f32`.
 * @param policy As {@linkcode variantPolicy} has it.
 */
export function mainLoopKernel(
  traits: string,
  suffix: string,
  mode: SizeMode,
  module: ModuleBuilder,
  shape: MainLoopShape,
  policy: TilePolicy,
  a: TileLoader,
  b: TileLoader,
  output: OutputStore,
  options: MainLoopOptions = {},
): SizedKernel {
  const variant = fullVariant(options.variant);
  const threads = policyThreads(policy);
  const threadsX = policy.columns / policy.threadColumns;
  const threadsY = policy.rows / policy.threadRows;
  const aSchedule = scheduleLoads(a, policy.rows, policy.depth, threads);
  const bSchedule = scheduleLoads(b, policy.columns, policy.depth, threads);
  const name = `${traits}_${policyTile(policy)}_${suffix}${variantTrait(options.variant)}`;
  const rowTiles = Math.ceil(shape.rows / policy.rows);
  const columnTiles = Math.ceil(shape.columns / policy.columns);
  const aTile = workgroupTile("a", policy.rows, policy.depth, a, variant);
  const bTile = workgroupTile("b", policy.columns, policy.depth, b, variant);
  const steps = Math.ceil(shape.depth / policy.depth);
  const micro = microKernel(policy, aTile, bTile, options.accumulation ?? "f32", {
    ...variant,
    last: peeledDepth(shape, policy, mode, variant),
  });
  const tiles = { a: aTile, b: bTile };
  const both = (text: (loader: TileLoader, schedule: LoadSchedule, operand: "a" | "b") => string) =>
    `${text(a, aSchedule, "a")}\n${text(b, bSchedule, "b")}`;
  const values = {
    name,
    policy,
    threads,
    threadsX,
    threadsY,
    warpsX: threadsX / policy.warp[1],
    aFragments: fragments(policy.threadRows),
    bFragments: fragments(policy.threadColumns),
    variant,
    tiles: `${aTile.declaration}\n${bTile.declaration}`,
    ...micro,
    workgroups: module.size("workgroups", mainLoopWorkgroups(shape, policy)),
    range: shape.range && {
      first: module.size("first_tile", shape.range.first),
      count: module.size("tile_count", shape.range.count),
    },
    rowTiles: module.size("row_tiles", rowTiles),
    columnTiles: module.size("column_tiles", columnTiles),
    splits: shape.range ? "" : module.size("splits", shape.splits),
    allSteps: steps,
    steps: module.size("steps", steps),
    stepsPerSplit: module.size("steps_per_split", Math.ceil(steps / shape.splits)),
    places: both((loader, schedule, operand) => placeText(loader, schedule, operand)),
    begin: both((loader) => loader.begin),
    registers: both((loader, schedule, operand) =>
      schedule.loads.map((_, i) =>
        `  var ${operand}_load${i} = ${zeroOf(loader.value ?? "f32", loader.vector)};`
      ).join("\n")
    ),
    advance: both((loader) => loader.advance),
    fetch: both((loader, schedule, operand) => fetchText(loader, schedule, operand)),
    store: both((loader, schedule, operand) =>
      storeText(loader, schedule, operand, tiles[operand])
    ),
    epilogue: output.text({
      fragmentRows: fragments(policy.threadRows),
      fragmentColumns: fragments(policy.threadColumns),
      fragmentHeight: policy.threadRows === 1 ? 1 : 4,
      sum: micro.sum,
      row: (i) => policy.threadRows === 1 ? `first_row + ay${i}` : `first_row + ay${i} * 4u`,
      column: (j) => `first_column + bx${j} * 4u`,
    }),
  };
  const wgsl = render(template, {
    ...values,
    declarations: `${module.declarations()}\n${output.declarations}`,
  });
  return sizedKernel(
    name,
    mode,
    wgsl,
    module,
    [threads, 1, 1],
    mainLoopBytes(policy, a, b, variant),
    loopIterations(Math.ceil(steps / shape.splits), stepIterations(policy, options.variant)) +
      output.iterations * policy.threadRows * policy.threadColumns,
  );
}

/** Iterations of loops inside one step: none, where the tile's depth is unrolled. */
export function stepIterations({ depth }: TilePolicy, variant?: MainLoopVariant): number {
  return fullVariant(variant).unroll ? 0 : loopIterations(depth);
}

function placeText(loader: TileLoader, schedule: LoadSchedule, operand: "a" | "b"): string {
  const first = operand === "a" ? "first_row" : "first_column";
  return [
    ...schedule.places.flatMap((place, slot) => [
      `  let ${operand}_place${slot} = ${place};`,
      loader.place(slot, `(${first} + ${operand}_place${slot})`),
    ]),
    ...schedule.depths.map((depth, slot) => `  let ${operand}_depth${slot} = ${depth};`),
  ].join("\n");
}

function fetchText(loader: TileLoader, schedule: LoadSchedule, operand: "a" | "b"): string {
  return [
    loader.step,
    ...schedule.depths.map((_, slot) => loader.depth(slot, `${operand}_depth${slot}`)),
    ...schedule.places.map((_, slot) => loader.placeStep(slot)),
    ...schedule.loads.map(({ placeSlot, depthSlot }, i) =>
      loader.load(placeSlot, depthSlot, `${operand}_load${i}`)
    ),
  ].filter((line) => line !== "").join("\n");
}

function storeText(
  loader: TileLoader,
  schedule: LoadSchedule,
  operand: "a" | "b",
  tile: WorkgroupTile,
): string {
  return schedule.loads.flatMap(({ placeSlot, depthSlot, guard }, i) => {
    const place = `${operand}_place${placeSlot}`;
    const depth = `${operand}_depth${depthSlot}`;
    const loaded = `${operand}_load${i}`;
    const value = loader.mask?.(placeSlot, loaded) ?? loaded;
    const element = (row: string) => `${tile.at(row, `${place} / 4u`)}[${place} % 4u]`;
    const lines = vectorSide(loader) === "place" && loader.vector === 4
      ? [`    ${tile.at(depth, `${place} / 4u`)} = ${value};`]
      : loader.vector === 1
      ? [`    ${element(depth)} = ${value};`]
      : [..."xyzw"].map((component, k) =>
        `    ${element(`${depth} + ${k}u`)} = ${value}.${component};`
      );
    return guard === undefined ? lines : [`    if (${guard}) {`, ...lines, "    }"];
  }).join("\n");
}
