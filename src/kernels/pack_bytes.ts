import template from "../../shaders/pack_bytes.wgsl" with { type: "text" };
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
  /** In words of four bytes. */
  readonly paddedWords: number;
  /** Which side is contiguous. */
  readonly along: "place" | "depth";
}

/** Places of a thread: four where a word of the source holds four of one depth. */
function placesPerThread({ along, places }: PackBytesShape): 1 | 4 {
  return along === "place" && places % 4 === 0 ? 4 : 1;
}

/** Threads of a {@linkcode packBytesKernel}. */
export function packBytesThreads(shape: PackBytesShape): number {
  return shape.groups * shape.paddedPlaces * shape.paddedWords / placesPerThread(shape);
}

/**
 * Copies int8 to [group][depth / 4][places], four bytes of the depth a word, padded with zeros: what
 * `dot4I8Packed` multiplies. Binds `unpacked` and `packed`, both as words.
 */
export function packBytesKernel(
  shape: PackBytesShape,
  mode: SizeMode,
  source: TensorSplit,
  packed: TensorSplit,
): SizedKernel {
  const module = moduleBuilder(mode);
  const width = placesPerThread(shape);
  const from = module.tensor("unpacked", "read", 1, source, "u32");
  const to = module.tensor("packed", "write", width, packed, "u32");
  const name = `pack_bytes_${shape.along}${width}${splitTrait(source, packed)}`;
  const size = (key: "places" | "depth" | "paddedWords") => module.size(key, shape[key]);
  const leading = shape.along === "place" ? size("places") : size("depth");
  const values = {
    name,
    width,
    begin: eachElement(module.size("count", packBytesThreads(shape))),
    places: size("places"),
    depth: size("depth"),
    threads: module.size("threads", shape.paddedPlaces / width),
    paddedWords: size("paddedWords"),
    byte: shape.along === "place" ? `d * ${leading} + place` : `place * ${leading} + d`,
    batchStride: module.size("batch_stride", shape.places * shape.depth),
    load: from.load("byte / 4u"),
    store: to.store("i", "word"),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}
