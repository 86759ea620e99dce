import { type Accumulation, depthOfValue } from "../elements/elements.ts";
import type { Scalar } from "../elements/scalar.ts";
import { classEdges, classOutput, type ClassStore, classStore } from "../kernels/class_output.ts";
import { type EpilogueFactory, epilogueTrait } from "../kernels/epilogue.ts";
import type { TileLoader } from "../kernels/loader.ts";
import { ringColumn } from "../kernels/loaders/rings.ts";
import { mainLoopKernel, mainLoopMultiplications } from "../kernels/main_loop.ts";
import { fullVariant, type MainLoopVariant } from "../kernels/main_loop_variant.ts";
import type { UnitChain } from "../kernels/matrix_units.ts";
import { type ModuleBuilder, type SizeMode, splitTrait } from "../kernels/module.ts";
import {
  lowOutputVector,
  mappedOutput,
  type OutputMap,
  type OutputVector,
  outputVector,
} from "../kernels/output.ts";
import { packedElements, type PackShape, packStridedKernel } from "../kernels/pack.ts";
import type { TilePolicy } from "../kernels/policy.ts";
import {
  type LinearPlaces,
  type ResultPlaces,
  type TilePartials,
  tilePartialsOutput,
} from "../kernels/reduce.ts";
import type { UnevenRows } from "../kernels/tile_scheduler.ts";
import { pass } from "./passes.ts";
import type { DeviceLimits, Pass } from "./plan.ts";
import type { BufferList } from "./tensors.ts";

/** Where a product's results go. */
export type ResultTarget = ResultPlaces & {
  readonly buffer: number;
  /** What it holds. */
  readonly element: Scalar;
};

/** Where the results of one pass go. */
export type ProductTarget = ResultTarget & PassPlaces;

/** What of a pass's results is not at the beginning. */
interface PassPlaces {
  /** From one split to the next; with it the epilogue is left to the reduction. */
  readonly split?: number;
  /** Where this pass begins, which differs between passes of one kernel, and what divides that for all of them. */
  readonly begin?: { readonly at: number; readonly multiple: number };
}

/** Partial results of the tiles that are split where others are whole. */
export interface StreamedPartials {
  readonly tiles: TilePartials;
  readonly buffer: number;
  readonly element: Scalar;
}

/** One product of a convolution on the main loop. */
export interface ConvProduct {
  /** Canonical name up to the tile. */
  readonly name: string;
  /** After the tile. */
  readonly trait: string;
  readonly mode: SizeMode;
  /** With the loaders' tensors bound. */
  readonly module: ModuleBuilder;
  readonly policy: TilePolicy;
  readonly variant?: MainLoopVariant | undefined;
  readonly accumulate: Accumulation;
  /** How far matrix units add up, where it runs on them. */
  readonly chain?: UnitChain | undefined;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly batches: number;
  readonly splits: number;
  /** Stream-K: how partial results of the last tiles lie, and the buffer; the target's are those of whole ones. */
  readonly streamed?: StreamedPartials | undefined;
  readonly uneven?: UnevenRows | undefined;
  readonly a: TileLoader;
  readonly b: TileLoader;
  /** Buffers of the bound tensors, by name; `result` is the target's. */
  readonly places: Readonly<Record<string, number | undefined>>;
  /** Buffers that the loaders read, for the kernel's name. */
  readonly operands: readonly number[];
  readonly target: ProductTarget;
  readonly epilogue: EpilogueFactory;
}

/** Depth of one tap: padded to whole steps unless that wastes more than a fifth. */
export function tapDepth(channels: number, tileDepth: number): number {
  const padded = Math.ceil(channels / tileDepth) * tileDepth;
  return padded <= 1.2 * channels ? padded : channels;
}

/** How the results of a product leave. */
export function targetStore(
  target: ResultPlaces & PassPlaces,
  rows: number,
  variant: MainLoopVariant | undefined,
): ClassStore {
  const base = [target.group, target.split ?? 0, target.begin?.multiple ?? 0];
  const widest = target.classes !== undefined ? classStore(target.classes, base) : outputVector(
    {
      row: target.row,
      outer: target.outer,
      inner: target.inner,
      ...(target.interleave === undefined ? {} : { interleave: target.interleave }),
      base,
    },
    rows,
    target.period,
  );
  if (fullVariant(variant).microKernel) return widest;
  return widest === "pairs" ? "none" : lowOutputVector(widest);
}

/** The side along which four results of a product leave in one store. */
export function targetVector(...target: Parameters<typeof targetStore>): OutputVector {
  const store = targetStore(...target);
  return store === "pairs" ? "none" : store;
}

/** Whether sums of matrix units may be added up where the results of a product lie. */
export function addsUp(...[target, rows, variant]: Parameters<typeof targetStore>): boolean {
  return target.classes === undefined && targetStore(target, rows, variant) !== "none";
}

/** The pass of a product: its kernel, its multiplications. */
export function productPass(
  product: ConvProduct,
  buffers: BufferList,
  limits: DeviceLimits,
): Pass {
  const { module, target, policy, splits, rows, columns, depth, batches, streamed } = product;
  const { variant } = product;
  const store = targetStore(target, rows, variant);
  const width = store === "none" ? 1 : 4;
  const size = (name: string, value: number) => module.size(`out_${name}`, value);
  const out = module.tensor("result", "write", width, buffers.split(target.buffer), target.element);
  const epilogue = product.epilogue(
    module,
    width,
    (row) => `group * ${size("rows", rows)} + ${row}`,
  );
  const base = () =>
    [
      `group * ${size("group", target.group)}`,
      ...(target.split === undefined ? [] : [`split * ${size("split", target.split)}`]),
      ...(target.begin === undefined ? [] : [module.parameter("out_begin", target.begin.at)]),
    ].join(" + ");
  const linear = ({ ring, ...target }: LinearPlaces & { readonly group: number }): OutputMap => ({
    rows: size("rows", rows),
    columns: size("columns", ring?.columns ?? columns),
    ...(ring && {
      column: (column) => ringColumn(module, ring, column, size("columns", ring.columns)),
    }),
    rowStride: size("row_stride", target.row),
    period: size("period", target.period),
    outerStride: size("outer_stride", target.outer),
    innerStride: size("inner_stride", target.inner),
    ...(target.interleave === undefined
      ? {}
      : { interleave: size("interleave", target.interleave) }),
    ...(target.results === undefined ? {} : { results: size("results", target.results) }),
    base: base(),
    vector: targetVector(target, rows, variant),
  });
  const output = target.classes !== undefined
    ? classOutput(module, out, target.classes, columns, base(), store)
    : mappedOutput(out, linear(target), epilogue);
  const { uneven } = product;
  const shape = {
    ...{ rows, columns, depth, batches, splits },
    ...(streamed && { split: streamed.tiles.range }),
    ...(uneven && { uneven }),
  };
  const partials = streamed &&
    tilePartialsOutput(module, streamed.tiles, buffers.split(streamed.buffer), streamed.element);
  const order = target.classes !== undefined
    ? `e${classEdges(target.classes)}_`
    : target.interleave === undefined
    ? ""
    : "i";
  const stored = { none: "1", rows: "r4", columns: "c4", pairs: "p4" }[store];
  const kernel = mainLoopKernel(
    product.name,
    `${product.trait}_o${order}${stored}${
      streamed !== undefined ? "_streamk" : target.split === undefined ? "" : "_split"
    }${target.begin === undefined ? "" : "_chunk"}${epilogueTrait(epilogue)}${
      splitTrait(...[...product.operands, target.buffer].map((buffer) => buffers.split(buffer)))
    }`,
    module,
    shape,
    policy,
    product.a,
    product.b,
    output,
    {
      accumulation: product.accumulate,
      order: "serpentine",
      chain: product.chain,
      room: limits.maxComputeWorkgroupStorageSize,
      ...(variant === undefined ? {} : { variant }),
      ...(partials && { partials }),
    },
  );
  const multiplications = depthOfValue({ storage: product.a.value ?? "f32" }) *
    mainLoopMultiplications(shape, policy, product.mode, variant);
  const places = { ...product.places, result: target.buffer, partials: streamed?.buffer };
  return pass(kernel, buffers, places, limits, multiplications);
}

/** The pass that packs a filter or matrix for a product; none where there is nothing to pack. */
export function packFilterPass(
  shape: PackShape,
  mode: SizeMode,
  buffers: BufferList,
  at: { readonly unpacked: number; readonly packed: number },
  limits: DeviceLimits,
  element: Scalar,
): Pass[] {
  if (packedElements(shape) === 0) return [];
  const kernel = packStridedKernel(
    shape,
    mode,
    buffers.split(at.unpacked),
    buffers.split(at.packed),
    element,
  );
  return [pass(kernel, buffers, at, limits)];
}
