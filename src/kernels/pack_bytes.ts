import template from "../../shaders/pack_bytes.wgsl" with { type: "text" };
import { digitsText } from "./axes.ts";
import { bankedIndex, sharesBanks } from "./loader.ts";
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

/** Bytes that memory brings at once. */
const LINE = 128;

/** Panels that neighbouring threads copy of a place, before they go on to the next: a whole line, where the depth lies together. */
function panelsBeside({ along, panel }: PackBytesShape): number {
  return along === "place" || panel === 1 ? 1 : Math.max(1, Math.floor(LINE / (4 * panel)));
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
  const { groups, paddedPlaces, paddedWords, panel } = shape;
  const { wide, deep } = threadTile(shape);
  const beside = panelsBeside(shape);
  const panels = Math.ceil(paddedWords / panel / beside) * beside;
  return groups * panels * (panel / deep) * (paddedPlaces / wide);
}

/**
 * Copies int8 to [group][panels][places][panel], four bytes of the depth a word, padded with zeros: of panels of one word what
 * `dot4I8Packed` multiplies, of longer ones what matrix units do, places in the order of {@linkcode bankedIndex}. Binds `unpacked` and `packed`, both as words.
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
  const beside = panelsBeside(shape);
  // Sizes apart, the order of places is what texts differ by.
  const order = sharesBanks(panel / 4) ? panel / 4 : "";
  const name = `pack_bytes_${along}${wide}_run${run}${panel === 1 ? "" : `_panels${order}`}${
    splitTrait(source, packed)
  }`;
  const size = (key: "places" | "depth") => module.size(key, shape[key]);
  const runs = module.size("runs", panel / deep);
  const threads = module.size("threads", paddedPlaces / wide);
  const panels = module.size("panels", paddedWords / panel);
  const values = {
    name,
    wide,
    deep,
    run,
    begin: eachElement(module.size("count", packBytesThreads(shape))),
    digits: digitsText("i", "rest", [
      { name: "run", radix: runs },
      { name: "near_panel", radix: module.size("beside", beside) },
      { name: "first_place", radix: threads },
      {
        name: "far_panel",
        radix: module.size("far_panels", Math.ceil(paddedWords / panel / beside)),
      },
      { name: "group", radix: "" },
    ]),
    beside: module.size("beside", beside),
    panels,
    panel: module.size("panel", panel),
    places: size("places"),
    depth: size("depth"),
    byte: (d: string) =>
      along === "place"
        ? `${d} * ${size("places")} + from_place`
        : `from_place * ${size("depth")} + ${d}`,
    batchStride: module.size("batch_stride", places * depth),
    load: from.load,
    store: (place: number, value: string) => {
      const first = `(group * ${panels} + panel) * ${threads} + first_place`;
      const at = bankedIndex(`(${first}) * ${wide}u + ${place}u`, panel / 4);
      return to.store(deep === 1 ? first : `(${at}) * ${runs} + run`, value);
    },
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}
