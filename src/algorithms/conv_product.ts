import { type Cut, partialResultElements } from "./cut.ts";
import { convEpilogue, pass, reducePass, reduceTilesPass } from "./passes.ts";
import type { Pass } from "./plan.ts";
import type { PlanRequest } from "./request.ts";
import {
  type BufferList,
  partialsProblem,
  type ProblemBuffers,
  reduceShape,
  resultElements,
} from "./tensors.ts";
import { type Accumulation, depthOfValue, sumOf } from "../elements/elements.ts";
import type { Scalar } from "../elements/scalar.ts";
import { type EpilogueFactory, epilogueTrait, NO_STEPS } from "../kernels/epilogue.ts";
import type { TileLoader } from "../kernels/loader.ts";
import { ringColumn } from "../kernels/loaders/correlation_ring.ts";
import { innerProduct } from "../kernels/loop/thread_products.ts";
import {
  productKernel,
  productMultiplications,
  productWorkgroups,
} from "../kernels/product_kernel.ts";
import { fullVariant, type KernelVariant } from "../kernels/variant.ts";
import type { UnitChain } from "../kernels/matrix_units.ts";
import type { ModuleBuilder } from "../kernels/module.ts";
import {
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
import { classEdges, classOutput, type ClassStore, classStore } from "../kernels/stride_classes.ts";
import type { UnevenRows } from "../kernels/tile_scheduler.ts";

/** Where a product's results go. */
type ResultTarget = ResultPlaces & {
  readonly buffer: number;
  readonly element: Scalar;
};

/** Offsets of a pass's results. */
interface PassPlaces {
  /** From one split to the next; with it the epilogue is left to the reduction. */
  readonly split?: number;
  /** Where this pass begins, which differs between passes of one kernel, and what divides that for all of them. */
  readonly begin?: { readonly at: number; readonly multiple: number };
}

/** Stream-K: partial results of the split tiles. */
interface StreamedPartials {
  readonly tiles: TilePartials;
  readonly buffer: number;
  readonly element: Scalar;
}

/** One kernel of a cut product. */
export interface ProductPart {
  readonly rows: number;
  readonly columns: number;
  readonly batches: number;
  readonly splits: number;
  readonly policy: TilePolicy;
  readonly variant: KernelVariant | undefined;
  readonly accumulate: Accumulation;
  /** Stream-K: how partial results of the last tiles lie, and the buffer; the target's are those of whole ones. */
  readonly streamed?: StreamedPartials;
  readonly target: ResultTarget & PassPlaces;
  readonly epilogue: EpilogueFactory;
  /** Buffers that the epilogue reads. */
  readonly ends: ProblemBuffers["ends"];
}

/** One product of a convolution on the mainloop. */
interface ConvProduct extends ProductPart {
  /** Canonical name up to the tile. */
  readonly name: string;
  /** After the tile. */
  readonly trait: string;
  /** With the loaders' tensors bound. */
  readonly module: ModuleBuilder;
  /** How far matrix units add up, where it runs on them. */
  readonly chain?: UnitChain | undefined;
  readonly depth: number;
  readonly uneven?: UnevenRows | undefined;
  readonly a: TileLoader;
  readonly b: TileLoader;
  /** Buffers of the loaders' tensors, by name. */
  readonly places: Readonly<Record<string, number>>;
}

/** Depth of one tap: padded to whole k-tiles unless that wastes more than a fifth. */
export function tapDepth(channels: number, tileDepth: number): number {
  const padded = Math.ceil(channels / tileDepth) * tileDepth;
  return padded <= 1.2 * channels ? padded : channels;
}

/** How a product's results are stored: single ones, or vectors of four along rows or columns. */
export function targetStore(
  target: ResultPlaces & PassPlaces,
  rows: number,
): ClassStore {
  const base = [target.group, target.split ?? 0, target.begin?.multiple ?? 0];
  return target.classes !== undefined ? classStore(target.classes, base) : outputVector(
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
}

/** The side along which four results are one store. */
function targetVector(...target: Parameters<typeof targetStore>): OutputVector {
  const store = targetStore(...target);
  return store === "pairs" ? "none" : store;
}

/** Whether sums of matrix units may be added up where the results of a product lie. */
export function addsUp(...[target, rows]: Parameters<typeof targetStore>): boolean {
  return target.classes === undefined && targetStore(target, rows) !== "none";
}

export function productPass(product: ConvProduct, buffers: BufferList): Pass {
  const { module, target, policy, splits, rows, columns, depth, batches, streamed } = product;
  const { variant, uneven } = product;
  const store = targetStore(target, rows);
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
    vector: targetVector(target, rows),
  });
  const output = target.classes !== undefined
    ? classOutput(module, out, target.classes, columns, base(), store)
    : mappedOutput(out, linear(target), epilogue);
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
  const kernel = productKernel(module, {
    traits: product.name,
    suffix: `${product.trait}_o${order}${stored}${
      streamed !== undefined ? "_streamk" : target.split === undefined ? "" : "_split"
    }${target.begin === undefined ? "" : "_chunk"}${epilogueTrait(epilogue)}${
      buffers.splitTrait(...Object.values(product.places), target.buffer)
    }`,
    shape,
    policy,
    loaders: [product.a, product.b],
    output,
    workgroupBytes: buffers.limits.maxComputeWorkgroupStorageSize,
    partials,
    variant,
    sums: { inner: innerProduct(product.accumulate), chain: product.chain },
    threads: { order: "serpentine" },
  });
  const multiplications = depthOfValue({ storage: product.a.access.value }) *
    productMultiplications(shape, policy, buffers.mode, variant);
  const places = {
    ...product.places,
    ...product.ends,
    result: target.buffer,
    partials: streamed?.buffer,
  };
  return pass(kernel, buffers, places, multiplications);
}

/** The pass that packs a filter or matrix for a product; none where there is nothing to pack. */
function packFilterPass(
  shape: PackShape,
  buffers: BufferList,
  at: { readonly unpacked: number; readonly packed: number },
  element: Scalar,
): Pass[] {
  if (packedElements(shape) === 0) return [];
  return [pass(packStridedKernel(buffers.module(at), shape, element), buffers, at)];
}

/** The buffer of a packed filter, and the pass that packs it. */
export function packedFilter(
  shape: PackShape,
  { buffers, tensor, elements: { storage } }: ProblemBuffers,
  name = "packed filter",
): { packed: number; passes: Pass[] } {
  const packed = buffers.workspace(name, packedElements(shape), storage);
  const at = { unpacked: tensor.filter, packed };
  return { packed, passes: packFilterPass(shape, buffers, at, storage) };
}

/** A product whose results are the operation's, and how it was cut. */
interface CutShape {
  readonly cut: Cut;
  readonly rows: number;
  readonly columns: number;
  /** Where the results go in the end. */
  readonly target: ResultTarget;
  /** As `TilePartials` has it. */
  readonly classText?: TilePartials["classText"];
}

/** Whether a convolution's product may be stream-K. */
export function streamsOf({ problem }: PlanRequest): boolean {
  return resultElements(problem) > 0;
}

/** Tiles of the whole product. */
export function cutTiles(
  { rows, columns, cut: { policy } }: Pick<CutShape, "rows" | "columns" | "cut">,
  batches: number,
): number {
  return productWorkgroups({ rows, columns, batches, splits: 1 }, policy);
}

/**
 * The passes of a cut product: the mainloop, and the pass that sums partial results, whose buffer it adds. Where the kernel of
 * stream-K would have more bindings than the device, the depth is not cut.
 *
 * @param make The pass of the mainloop, with loaders of its own.
 */
export function cutPasses(
  request: PlanRequest,
  shape: CutShape,
  { elements: types, buffers, ends }: Omit<ProblemBuffers, "tensor">,
  make: (part: ProductPart) => Pass,
): { product: Pass; sums: Pass[]; cut: Cut } {
  const { problem: { groups }, schedule } = request;
  const { cut, rows, columns, target } = shape;
  const { policy, splits, head } = cut;
  const sum = sumOf(types);
  const elements = resultElements(partialsProblem(request));
  const epilogue = convEpilogue(request);
  const { accumulate } = types;
  const all = {
    rows,
    columns,
    batches: groups,
    policy,
    variant: schedule,
    accumulate,
    ends,
  };
  const whole = () => make({ ...all, splits: 1, target, epilogue });
  if (splits === 1) return { product: whole(), sums: [], cut };
  if (head !== undefined) {
    const product = whole();
    if (product.bindings.length >= request.limits.maxStorageBuffersPerShaderStage) {
      return { product, sums: [], cut: { policy, splits: 1, cost: cut.cost, unbound: true } };
    }
  }
  const parts = partialResultElements(cut, { rows, columns, batches: groups, elements });
  const buffer = buffers.workspace("partial results", parts, sum);
  const places = { partials: buffer, result: target.buffer, ...ends };
  if (head === undefined) {
    const reduce = reduceShape(request, splits);
    const sums = reducePass(reduce, epilogue, buffers, places, types.result);
    const to = { ...target, buffer, element: sum, split: elements };
    return {
      product: make({ ...all, splits, target: to, epilogue: NO_STEPS }),
      sums: [sums],
      cut,
    };
  }
  const tiles: TilePartials = {
    policy,
    range: { first: head, count: cutTiles(shape, groups) - head },
    splits,
    rows,
    columns,
    strides: target,
    classText: shape.classText,
    vector: targetVector(target, rows),
    raster: fullVariant(schedule).raster,
  };
  const row = (module: ModuleBuilder, row: string) =>
    `group * ${module.size("rows", rows)} + ${row}`;
  const sums = reduceTilesPass(tiles, epilogue, buffers, places, types.result, row);
  const streamed = { tiles, buffer, element: sum };
  return { product: make({ ...all, splits, streamed, target, epilogue }), sums: [sums], cut };
}
