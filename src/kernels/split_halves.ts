/** Passes that split operands in f32 into two halves each: their largest values, then the halves. */
import template from "../../shaders/split_halves.wgsl" with { type: "text" };
import maximaTemplate from "../../shaders/split_maxima.wgsl" with { type: "text" };
import { type HighRounding, SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import type { ModuleBuilder } from "./module.ts";
import { loopIterations, type SizedKernel, templateKernel } from "./sized_kernel.ts";
import { HIGH_ROUNDING, SPLIT_FACTOR } from "./split_marks.ts";

/** A side of a tensor. */
export interface Extent {
  readonly count: number;
  readonly stride: number;
}

/** A tensor whose largest values are wanted, one of each combination of `keys`, outermost first, among all of `rest`. */
export interface SplitMaxima {
  readonly keys: readonly Extent[];
  readonly rest: readonly Extent[];
  readonly firstKey: number;
  /** Words that say how fine the values of each key are, where that is wanted: see {@linkcode FINE_BASE}. */
  readonly firstFine?: number | undefined;
}

/** How fine a value is: this less its exponent, as f32 has it biased, and less the zeros behind its last bit that is set; 0 of zero. */
const FINE_BASE = 300;

/** Loads of a thread. */
const LOADS = 16;
/** Keys that lie beside each other and have a workgroup in common. */
const NEAR = 32;

/** How a kernel goes over a tensor, in vectors of four where all that it steps over is whole ones. */
function maximaWalk({ keys, rest }: SplitMaxima) {
  const merged = mergedExtents(rest);
  const innermost = merged.at(-1)!;
  const last = keys.at(-1)!;
  const near = last.stride < innermost.stride;
  const along = near ? last : innermost;
  const others = [...keys, ...merged].filter((side) => side !== along && side.count > 1);
  const whole = along.stride === 1 && along.count % 4 === 0 &&
    others.every(({ stride }) => stride % 4 === 0);
  const vector = whole ? 4 : 1;
  const inVectors = (side: Extent) =>
    side === along
      ? { ...side, count: side.count / vector }
      : { ...side, stride: side.count > 1 ? side.stride / vector : 0 };
  const count = (sides: readonly Extent[]) => sides.reduce((all, one) => all * one.count, 1);
  const slots = near ? NEAR : 1;
  const lanes = 256 * (near ? vector : 1) / slots;
  const portion = lanes * LOADS;
  const sides = merged.map(inVectors);
  const blocks = Math.ceil(last.count / slots);
  const portions = Math.ceil(count(sides) / portion);
  return {
    ...{ vector, near, slots, lanes, portion, sides, blocks, portions } as const,
    keys: keys.map(inVectors),
    values: count(sides),
    workgroups: count(keys.slice(0, -1)) * blocks * portions,
  };
}

/** Sides in the order in which they lie, the innermost last, those that follow each other as one. */
function mergedExtents(sides: readonly Extent[]): readonly Extent[] {
  const sorted = sides.filter(({ count }) => count > 1).toSorted((a, b) => b.stride - a.stride);
  return sorted.reduce<Extent[]>((merged, side) => {
    const outer = merged.at(-1);
    if (outer === undefined || outer.stride !== side.stride * side.count) return [...merged, side];
    return [...merged.slice(0, -1), { count: outer.count * side.count, stride: side.stride }];
  }, sorted.length === 0 ? [{ count: 1, stride: 1 }] : []);
}

/** Finds the largest value of each key of a tensor. Binds `tensor` and `marks`, which are cleared. */
export function splitMaximaKernel(
  module: ModuleBuilder,
  shape: SplitMaxima,
): SizedKernel {
  const { firstKey, firstFine, keys: [...named] } = shape;
  const { vector, near, slots, lanes, portion, sides, keys, ...walk } = maximaWalk(shape);
  const from = module.bind("tensor", "read", vector);
  const marks = module.atomics("marks");
  const place = sides.map(({ stride, count }, d) => {
    const within = sides.slice(d + 1).reduce((all, side) => all * side.count, 1);
    const index = `e / ${module.size(`rest_within${d}`, within)}`;
    const digit = d === 0 ? index : `(${index}) % ${module.size(`rest_count${d}`, count)}`;
    return `(${digit}) * ${module.size(`rest_stride${d}`, stride)}`;
  });
  const outer = keys.length > 1 ? keys[0]! : { count: 1, stride: 0 };
  const last = keys.at(-1)!;
  const count = module.size("keys", named.at(-1)!.count);
  const name = `split_maxima_${near ? "near" : "runs"}_${sides.length}d${
    vector === 4 ? "_x4" : ""
  }${firstFine === undefined ? "" : "_fine"}${module.splitTrait()}`;
  const of = (value: string) => [..."xyzw"].map((one) => `${value}.${one}`);
  const found = (all: string, own: string) =>
    vector === 1
      ? [`atomicMax(&${all}[near], ${own});`]
      : near
      ? of(own).map((value, k) => `atomicMax(&${all}[4u * near + ${k}u], ${value});`)
      : [
        `atomicMax(&${all}[0], max(max(${of(own).slice(0, 2).join(", ")}), max(${
          of(own).slice(2).join(", ")
        })));`,
      ];
  const most = (first: string, word: number, all: string) =>
    marks.max(
      `${module.size(first, word)} + outer * ${count} + key`,
      `atomicLoad(&${all}[t])`,
    );
  const values = {
    slots,
    lanes,
    portion,
    bits: vector === 4 ? "vec4<u32>" : "u32",
    place: place.join(" + "),
    workgroups: module.size("workgroups", walk.workgroups),
    portions: module.size("portions", walk.portions),
    rest: module.size("rest", walk.values),
    blocks: module.size("blocks", walk.blocks),
    near: 256 / lanes,
    keys: count,
    base: `outer * ${module.size("outer_stride", outer.stride)} + min(block % ${
      module.size("blocks", walk.blocks)
    } * ${256 / lanes}u + near, ${module.size("key_vectors", last.count)} - 1u) * ${
      module.size("key_stride", last.stride)
    }`,
    load: from.load,
    found: [
      ...found("most", "top"),
      ...(firstFine === undefined ? [] : found("finest", "fine")),
    ],
    most: most("first_key", firstKey, "most"),
    finest: firstFine === undefined ? "" : most("first_fine", firstFine, "finest"),
    fineBase: FINE_BASE,
  };
  return templateKernel(module, name, maximaTemplate, values, {
    workgroups: walk.workgroups,
    bytes: (firstFine === undefined ? 4 : 8) * slots,
    iterations: loopIterations(LOADS / 4),
  });
}

const { top: TOP, smallBits, largeBits, wholeBits } = SPLIT_ROUNDING;

/** An operand in f32 and where its halves go: [batch][depth][places], both padded, or [batch][places][depth], of which the depth is. */
export interface SplitHalves {
  readonly batches: number;
  /** Rows of A or columns of B. */
  readonly places: number;
  readonly depth: number;
  /** From one to the next, in elements. */
  readonly strides: { readonly batch: number; readonly place: number; readonly depth: number };
  /** Words of the largest value that a place is scaled by: the first, from a batch to the next, and from a place. */
  readonly largest: { readonly first: number; readonly batch: number; readonly place: number };
  /**
   * Words, in the order of those of largest values, that say how fine values are (`SplitMaxima.firstFine`): of places that are finer
   * than whole numbers of `wholeBits` values that a high half holds have low ones too. None do where absent.
   */
  readonly firstFine?: number | undefined;
  /**
   * Words that count what is small of a place, then, so many words on, what is large: the first, and from a batch to the next. Large ones
   * are not counted where `kind` is absent, since products may not meet them.
   */
  readonly counts: { readonly first: number; readonly batch: number; readonly kind?: number };
  /** Whether the depth lies innermost. */
  readonly depthInner?: boolean;
  /** To be cleared; 0 for none. */
  readonly flags: number;
  /** Values along the depth of a matrix unit: so many high halves are followed by as many low ones. */
  readonly unitDepth: number;
  /** Padded: whole tiles, and whole matrices of high and low halves. */
  readonly padded: { readonly places: number; readonly depth: number };
  readonly rounding: HighRounding;
}

/** What a mainloop loads of operands in halves. */
export const HALVES = { storage: "f16", tile: "f16" } as const;

/** Values along the depth of an operand in halves: whole matrices of high ones and of low ones. */
export function halvesDepth(depth: number, unitDepth: number): number {
  return 2 * Math.ceil(depth / unitDepth) * unitDepth;
}

/** Places and depth of a workgroup's part. */
const EXTENT = 64;

/** Depth of a batch in a workgroup's part: less than its extent where several batches that are scaled and counted alike share it. */
function depthEach({ padded, largest, counts, depthInner }: SplitHalves): number {
  const alike = !depthInner && largest.batch === 0 && counts.batch === 0;
  return alike
    ? Math.min(EXTENT, 2 ** Math.ceil(Math.log2(Math.max(8, padded.depth / 2))))
    : EXTENT;
}

/** Bits of a power of two in f32. */
function powerBits(exponent: number): number {
  return (127 + exponent) * 2 ** 23;
}

/**
 * Multiplies an operand by its places' powers of two and splits it into high and low halves, for {@linkcode packedLoader}. Binds
 * `operand`, `marks`, which have the largest value of each place, `halves`, and `flags` where there are some to be cleared.
 */
export function splitHalvesKernel(
  module: ModuleBuilder,
  shape: SplitHalves,
): SizedKernel {
  const { places, depth, strides, padded, unitDepth, rounding, flags, depthInner = false } = shape;
  const along = strides.place < strides.depth ? "place" : "depth";
  const [near, far, run] = along === "place"
    ? [strides.place, strides.depth, places]
    : [strides.depth, strides.place, depth];
  const whole = near === 1 && [run, far, strides.batch].every((one) => one % 4 === 0);
  const vector = whole ? 4 : 1;
  const from = module.bind("operand", "read", vector);
  const marks = module.atomics("marks");
  const to = module.bind("halves", "write", 4, "u32", "u32");
  const clear = flags === 0 ? "" : module.atomics("flags").store("flag", "0u");
  const each = depthEach(shape);
  const name = `split_halves${unitDepth}_${along}_x${vector}${
    depthInner ? "_inner" : each < EXTENT ? `_deep${each}` : ""
  }${shape.counts.kind === undefined ? "_small" : ""}_${rounding}${
    shape.firstFine === undefined ? "" : "_fine"
  }${flags === 0 ? "" : "_clear"}${module.splitTrait()}`;
  const placeTiles = Math.ceil(padded.places / EXTENT);
  const depthTiles = Math.ceil(padded.depth / 2 / EXTENT);
  const workgroups = Math.ceil(shape.batches / (EXTENT / each)) * placeTiles * depthTiles;
  const values = {
    unitDepth,
    along,
    vector,
    rounding: HIGH_ROUNDING[rounding],
    // Of the largest value as it is scaled.
    smallBelow: powerBits(TOP - smallBits),
    largeFrom: powerBits(TOP - largeBits),
    fine: shape.firstFine !== undefined,
    firstFine: shape.firstFine === undefined ? "" : module.size("first_fine", shape.firstFine),
    // Bits from the first of the largest value to the last of any.
    finer: FINE_BASE - 24 + wholeBits,
    workgroups: module.size("workgroups", workgroups),
    flags: flags === 0 ? "" : module.size("flags", flags),
    clear,
    placeTiles: module.size("place_tiles", placeTiles),
    depthTiles: module.size("depth_tiles", depthTiles),
    batchStride: module.size("batch_stride", strides.batch),
    places: module.size("places", places),
    depth: module.size("depth", depth),
    paddedPlaces: module.size("padded_places", padded.places),
    paddedDepth: module.size("padded_depth", padded.depth),
    depthInner,
    each,
    batches: module.size("batches", shape.batches),
    placeStride: module.size("place_stride", strides.place),
    depthStride: module.size("depth_stride", strides.depth),
    firstLargest: module.size("first_largest", shape.largest.first),
    largestOfBatch: module.size("largest_of_batch", shape.largest.batch),
    largestOfPlace: module.size("largest_of_place", shape.largest.place),
    firstCount: module.size("first_count", shape.counts.first),
    countsOfBatch: module.size("counts_of_batch", shape.counts.batch),
    countKind: shape.counts.kind === undefined ? "" : module.size("count_kind", shape.counts.kind),
    load: from.load,
    largest: marks.load,
    add: marks.add,
    or: marks.or,
    store: to.store,
    functions: SPLIT_FACTOR,
  };
  return templateKernel(module, name, template, values, {
    workgroups,
    bytes: (EXTENT * (EXTENT + 1) + 3 * EXTENT) * 4,
    iterations: 16 + loopIterations(Math.ceil(flags / (256 * Math.max(1, workgroups)))),
    features: ["shader-f16"],
  });
}
