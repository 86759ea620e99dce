import template from "../../shaders/pack_bytes.wgsl" with { type: "text" };
import { digitsText } from "./axes.ts";
import {
  eachElement,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

/** Matrices of int8, of any strides and sizes: byte = group·places·depth + place·placeStride + d·depthStride. */
export interface PackBytesShape {
  readonly groups: number;
  readonly places: number;
  readonly paddedPlaces: number;
  /** In bytes. */
  readonly depth: number;
  /** In words of four bytes, whole panels. */
  readonly paddedWords: number;
  /** Which side is contiguous. */
  readonly along: "place" | "depth";
  /** Words along the depth that a place has in one run: 1, or a multiple of 4. */
  readonly panel: number;
}

/** What a thread copies: four places where a word of the source holds four of one depth, and four words of each of a longer run. */
function threadTile(
  { along, places, panel }: PackBytesShape,
): { readonly wide: 1 | 4; readonly deep: 1 | 4 } {
  return { wide: along === "place" && places % 4 === 0 ? 4 : 1, deep: panel === 1 ? 1 : 4 };
}

/** Bytes along the depth that lie together, at multiples of so many, and are copied as they are. */
function runBytes(shape: PackBytesShape): 1 | 4 | 16 {
  const { along, depth } = shape;
  if (along === "place" || depth % 4 !== 0) return 1;
  return depth % 16 === 0 && threadTile(shape).deep === 4 ? 16 : 4;
}

/** Words of the copy. */
export function packedWords({ groups, paddedPlaces, paddedWords }: PackBytesShape): number {
  return groups * paddedPlaces * paddedWords;
}

/** Threads of a {@linkcode packBytesKernel}. */
export function packBytesThreads(shape: PackBytesShape): number {
  const { wide, deep } = threadTile(shape);
  return packedWords(shape) / (wide * deep);
}

/**
 * Copies int8 to [group][panels][places][panel], four bytes of the depth a word, padded with zeros: of panels of one word what
 * `dot4I8Packed` multiplies, of longer ones what matrix units do. Binds `unpacked` and `packed`, both as words.
 */
export function packBytesKernel(
  shape: PackBytesShape,
  mode: SizeMode,
  source: TensorSplit,
  packed: TensorSplit,
): SizedKernel {
  const module = moduleBuilder(mode);
  const { along, places, paddedPlaces, depth, paddedWords, panel } = shape;
  const { wide, deep } = threadTile(shape);
  const run = runBytes(shape);
  const from = module.tensor("unpacked", "read", run === 16 ? 4 : 1, source, "u32");
  const to = module.tensor("packed", "write", wide * deep === 1 ? 1 : 4, packed, "u32");
  const name = `pack_bytes_${along}${wide}_run${run}${panel === 1 ? "" : "_panels"}${
    splitTrait(source, packed)
  }`;
  const size = (key: "places" | "depth") => module.size(key, shape[key]);
  const runs = module.size("runs", panel / deep);
  const values = {
    name,
    wide,
    deep,
    run,
    begin: eachElement(module.size("count", packBytesThreads(shape))),
    digits: digitsText("i", "rest", [
      { name: "run", radix: runs },
      { name: "first_place", radix: module.size("threads", paddedPlaces / wide) },
      { name: "panel", radix: module.size("panels", paddedWords / panel) },
      { name: "group", radix: "" },
    ]),
    panel: module.size("panel", panel),
    places: size("places"),
    depth: size("depth"),
    byte: along === "place" ? `d * ${size("places")} + place` : `place * ${size("depth")} + d`,
    batchStride: module.size("batch_stride", places * depth),
    load: from.load,
    // Of panels a thread's places lie `runs` apart.
    store: (place: number, value: string) =>
      to.store(deep === 1 ? "i" : `(i / ${runs} * ${wide}u + ${place}u) * ${runs} + run`, value),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}
