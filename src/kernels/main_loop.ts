import template from "../../shaders/main_loop.wgsl" with { type: "text" };
import type { OutputStore } from "./output.ts";
import { type LoadSchedule, scheduleLoads, type TileLoader } from "./loader.ts";
import {
  type ModuleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
} from "./module.ts";
import { type MainLoopVariant, variantTrait } from "./main_loop_variant.ts";
import { policyThreads, policyTile, type TilePolicy } from "./policy.ts";

/** A batched product C = A·B cut by a policy: what the main loop iterates over. */
export interface MainLoopShape {
  readonly rows: number;
  readonly columns: number;
  /** Steps of `policy.depth` products, all splits together. */
  readonly steps: number;
  /** Independent products: the groups of a convolution. */
  readonly batches: number;
  /** Workgroups that share the depth of one tile (split-K). */
  readonly splits: number;
}

/** What a kernel may have beside its loaders and output. */
export interface MainLoopOptions {
  /** Optimisations that are not as tuned. */
  readonly variant?: MainLoopVariant;
}

/** Workgroups of the loop. */
export function mainLoopWorkgroups(shape: MainLoopShape, policy: TilePolicy): number {
  return Math.ceil(shape.rows / policy.rows) * Math.ceil(shape.columns / policy.columns) *
    shape.batches * shape.splits;
}

/** Vectors of a tile row. A tile that is stored across (along depth) is padded against bank conflicts. */
function rowVectors(extent: number, loader: Pick<TileLoader, "along">): number {
  return extent / 4 + (loader.along === "depth" ? 1 : 0);
}

/** Bytes of workgroup memory of the main loop with these loaders. */
export function mainLoopBytes(
  policy: TilePolicy,
  a: Pick<TileLoader, "along">,
  b: Pick<TileLoader, "along">,
): number {
  return 16 * policy.depth * (rowVectors(policy.rows, a) + rowVectors(policy.columns, b));
}

/**
 * The hierarchical product of CUTLASS: workgroup tiles in workgroup memory, thread tiles in registers,
 * the next tile on its way while this one is multiplied. Everything a convolution algorithm adds is in
 * the two loaders and the output store.
 *
 * @param traits Canonical name up to the tile, e.g. `implicit_gemm_fwd_f32`.
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
  const threads = policyThreads(policy);
  const threadsX = policy.columns / policy.threadColumns;
  const threadsY = policy.rows / policy.threadRows;
  const aSchedule = scheduleLoads(a, policy.rows, policy.depth, threads);
  const bSchedule = scheduleLoads(b, policy.columns, policy.depth, threads);
  const name = `${traits}_${policyTile(policy)}_${suffix}${variantTrait(options.variant)}`;
  const rowTiles = Math.ceil(shape.rows / policy.rows);
  const columnTiles = Math.ceil(shape.columns / policy.columns);
  const both = (text: (loader: TileLoader, schedule: LoadSchedule, operand: "a" | "b") => string) =>
    `${text(a, aSchedule, "a")}\n${text(b, bSchedule, "b")}`;
  const values = {
    name,
    policy,
    threads,
    threadsX,
    threadsY,
    warpsX: threadsX / policy.warp[1],
    aFragments: policy.threadRows / 4,
    bFragments: policy.threadColumns / 4,
    aRow: rowVectors(policy.rows, a),
    bRow: rowVectors(policy.columns, b),
    workgroups: module.size("workgroups", mainLoopWorkgroups(shape, policy)),
    rowTiles: module.size("row_tiles", rowTiles),
    columnTiles: module.size("column_tiles", columnTiles),
    splits: module.size("splits", shape.splits),
    steps: module.size("steps", shape.steps),
    stepsPerSplit: module.size("steps_per_split", Math.ceil(shape.steps / shape.splits)),
    places: both((loader, schedule, operand) => placeText(loader, schedule, operand)),
    begin: both((loader) => loader.begin),
    registers: both((loader, schedule, operand) =>
      schedule.loads.map((_, i) =>
        `  var ${operand}_load${i} = ${loader.vector === 4 ? "vec4f()" : "0.0f"};`
      ).join("\n")
    ),
    advance: both((loader) => loader.advance),
    fetch: both((loader, schedule, operand) => fetchText(loader, schedule, operand)),
    store: both((loader, schedule, operand) => storeText(loader, schedule, operand)),
    epilogue: output.text({
      fragmentRows: policy.threadRows / 4,
      fragmentColumns: policy.threadColumns / 4,
      row: (i) => `first_row + ay${i} * 4u`,
      column: (j) => `first_column + bx${j} * 4u`,
    }),
  };
  const wgsl = render(template, {
    ...values,
    declarations: `${module.declarations()}\n${output.declarations}`,
  });
  return sizedKernel(name, mode, wgsl, module, [threads, 1, 1], mainLoopBytes(policy, a, b));
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

function storeText(loader: TileLoader, schedule: LoadSchedule, operand: "a" | "b"): string {
  return schedule.loads.flatMap(({ placeSlot, depthSlot }, i) => {
    const place = `${operand}_place${placeSlot}`;
    const depth = `${operand}_depth${depthSlot}`;
    const value = `${operand}_load${i}`;
    if (loader.along === "place" && loader.vector === 4) {
      return [`    ${operand}_tile[${depth}][${place} / 4u] = ${value};`];
    }
    const element = `[${place} / 4u][${place} % 4u]`;
    if (loader.vector === 1) return [`    ${operand}_tile[${depth}]${element} = ${value};`];
    return [..."xyzw"].map((component, k) =>
      `    ${operand}_tile[${depth} + ${k}u]${element} = ${value}.${component};`
    );
  }).join("\n");
}
