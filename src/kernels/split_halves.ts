import template from "../../shaders/split_halves.wgsl" with { type: "text" };
import {
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";
import { type SplitOperand, splitScales } from "./split_scales.ts";

/** An operand in f32 and where its halves go: [batch][depth][places], both padded. */
export interface SplitHalves extends SplitOperand {
  /** Values along the depth of a matrix unit: so many high halves are followed by as many low ones. */
  readonly unitDepth: number;
  /** Padded: whole tiles, and whole matrices of high and low halves. */
  readonly padded: { readonly places: number; readonly depth: number };
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

/**
 * Multiplies an operand by its places' powers of two and splits it into high and low halves, for {@linkcode packedLoader}. Binds
 * `operand`, `scales` and `halves`.
 */
export function splitHalvesKernel(
  shape: SplitHalves,
  mode: SizeMode,
  operand: TensorSplit,
  halves: TensorSplit,
): SizedKernel {
  const module = moduleBuilder(mode);
  const { along, places, depth, padded, unitDepth } = shape;
  const from = module.tensor("operand", "read", 1, operand);
  const scales = splitScales(module);
  const to = module.tensor("halves", "write", 4, halves, "u32", "u32");
  const name = `split_halves${unitDepth}_${along}${splitTrait(operand, halves)}`;
  const one = module.size("one", 1);
  const values = {
    name,
    unitDepth,
    along,
    workgroups: module.size("workgroups", splitHalvesWorkgroups(shape)),
    placeTiles: module.size("place_tiles", Math.ceil(padded.places / EXTENT)),
    depthTiles: module.size("depth_tiles", Math.ceil(padded.depth / 2 / EXTENT)),
    batchStride: module.size("batch_stride", shape.batchStride),
    places: module.size("places", places),
    depth: module.size("depth", depth),
    paddedPlaces: module.size("padded_places", padded.places),
    paddedDepth: module.size("padded_depth", padded.depth),
    placeStride: along === "place" ? one : module.size("depth", depth),
    depthStride: along === "place" ? module.size("places", places) : one,
    first: module.size("first", shape.first),
    load: from.load,
    factor: scales.load,
    store: to.store,
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const sized = sizedKernel(name, mode, wgsl, module, [256, 1, 1], EXTENT * (EXTENT + 1) * 4);
  const { kernel } = sized;
  return { ...sized, kernel: { ...kernel, features: [...kernel.features, "shader-f16"] } };
}
