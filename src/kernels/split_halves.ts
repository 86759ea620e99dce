import template from "../../shaders/split_halves.wgsl" with { type: "text" };
import { type HighRounding, SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";
import { HIGH_ROUNDING, SPLIT_FACTOR } from "./split_marks.ts";

const { top: TOP, smallBits, largeBits } = SPLIT_ROUNDING;

/** An operand in f32 and where its halves go: [batch][depth][places], both padded. */
export interface SplitHalves {
  readonly batches: number;
  /** Rows of A or columns of B. */
  readonly places: number;
  readonly depth: number;
  readonly along: "place" | "depth";
  readonly batchStride: number;
  /** Where its marks are: before its first place, and words of a kind (`placeMarks()`). */
  readonly marks: { readonly first: number; readonly places: number };
  /** To be cleared; 0 for none. */
  readonly flags: number;
  /** Values along the depth of a matrix unit: so many high halves are followed by as many low ones. */
  readonly unitDepth: number;
  /** Padded: whole tiles, and whole matrices of high and low halves. */
  readonly padded: { readonly places: number; readonly depth: number };
  readonly rounding: HighRounding;
}

/** What a main loop loads of operands in halves. */
export const HALVES = { storage: "f16", tile: "f16" } as const;

/** Values along the depth of an operand in halves: whole matrices of high ones and of low ones. */
export function halvesDepth(depth: number, unitDepth: number): number {
  return 2 * Math.ceil(depth / unitDepth) * unitDepth;
}

/** Places and depth of a workgroup's part. */
const EXTENT = 64;

/** Workgroups of a {@linkcode splitHalvesKernel}. */
export function splitHalvesWorkgroups({ batches, padded }: SplitHalves): number {
  return batches * Math.ceil(padded.places / EXTENT) * Math.ceil(padded.depth / 2 / EXTENT);
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
  shape: SplitHalves,
  mode: SizeMode,
  operand: TensorSplit,
  halves: TensorSplit,
): SizedKernel {
  const module = moduleBuilder(mode);
  const { along, places, depth, padded, unitDepth, rounding, flags, batchStride } = shape;
  const vector = [along === "place" ? places : depth, batchStride].every((one) => one % 4 === 0)
    ? 4
    : 1;
  const from = module.tensor("operand", "read", vector, operand);
  const marks = module.atomics("marks");
  const to = module.tensor("halves", "write", 4, halves, "u32", "u32");
  const clear = flags === 0 ? "" : module.atomics("flags").store("flag", "0u");
  const name = `split_halves${unitDepth}_${along}_x${vector}_${rounding}${
    flags === 0 ? "" : "_clear"
  }${splitTrait(operand, halves)}`;
  const one = module.size("one", 1);
  const workgroups = splitHalvesWorkgroups(shape);
  const values = {
    name,
    unitDepth,
    along,
    vector,
    rounding: HIGH_ROUNDING[rounding],
    // Of the largest value as it is scaled.
    smallBelow: powerBits(TOP - smallBits),
    largeFrom: powerBits(TOP - largeBits),
    workgroups: module.size("workgroups", workgroups),
    flags: flags === 0 ? "" : module.size("flags", flags),
    clear,
    placeTiles: module.size("place_tiles", Math.ceil(padded.places / EXTENT)),
    depthTiles: module.size("depth_tiles", Math.ceil(padded.depth / 2 / EXTENT)),
    batchStride: module.size("batch_stride", batchStride),
    places: module.size("places", places),
    depth: module.size("depth", depth),
    paddedPlaces: module.size("padded_places", padded.places),
    paddedDepth: module.size("padded_depth", padded.depth),
    placeStride: along === "place" ? one : module.size("depth", depth),
    depthStride: along === "place" ? module.size("places", places) : one,
    first: module.size("first", shape.marks.first),
    marked: module.size("marked", shape.marks.places),
    load: from.load,
    largest: marks.load,
    add: marks.add,
    or: marks.or,
    store: to.store,
  };
  const declarations = `${module.declarations()}\n${SPLIT_FACTOR}`;
  const wgsl = render(template, { ...values, declarations });
  const bytes = (EXTENT * (EXTENT + 1) + 3 * EXTENT) * 4;
  const iterations = 16 + loopIterations(Math.ceil(flags / (256 * Math.max(1, workgroups))));
  const sized = sizedKernel(name, mode, wgsl, module, [256, 1, 1], bytes, iterations);
  const { kernel } = sized;
  return { ...sized, kernel: { ...kernel, features: [...kernel.features, "shader-f16"] } };
}
