/** Passes that pack operands of products. */
import { range } from "./lists.ts";
import bytesTemplate from "../../shaders/pack_bytes.wgsl" with { type: "text" };
import stagedTemplate from "../../shaders/pack_staged.wgsl" with { type: "text" };
import directTemplate from "../../shaders/pack_strided.wgsl" with { type: "text" };
import { heldScalar, type Scalar, scalarBytes, typeName, zeroOf } from "../elements/scalar.ts";
import { axisDigits, digitsText } from "./axes.ts";
import { bankedIndex, sharesBanks } from "./loader.ts";
import type { ModuleBuilder } from "./module.ts";
import { eachElement, type SizedKernel, templateKernel, textKernel } from "./sized_kernel.ts";

/** From a group, row, channel or tap to the next, in elements. */
export interface PackStrides {
  readonly group: number;
  readonly row: number;
  readonly channel: number;
  readonly tap: number;
}

/** A filter or matrix as a stack of matrices of rows and channels, one for each group and tap. */
export interface PackShape {
  readonly groups: number;
  readonly rows: number;
  readonly paddedRows: number;
  readonly channels: number;
  readonly paddedChannels: number;
  readonly taps: number;
  /** taps·paddedChannels, rounded up to the tile's depth. */
  readonly depth: number;
  readonly strides: PackStrides;
  /**
   * Window order: taps of all axes but the last count fastest, `outerTaps` of them, `innerTaps` of the last.
   * Row-major where absent.
   */
  readonly window?: { readonly outerTaps: number; readonly innerTaps: number };
  /**
   * Rows of taps: depth is (taps of all axes but the last, blocks of `channels`, `taps` of the last axis, channels of a block); the
   * last axis's taps count down where `reversed`.
   */
  readonly tapRows?: {
    readonly taps: number;
    readonly channels: number;
    readonly reversed: boolean;
  };
  /**
   * Rows are `channels` of a filter and classes of strides, of which the named ones count fastest: tap j of class m is tap
   * m + j·stride − lead of the filter along an axis, zero where that is none.
   */
  readonly classes?: {
    readonly inner: "channels" | "classes";
    readonly channels: number;
    /** `taps` of the filter, `most` of a class. */
    readonly axes: readonly {
      readonly stride: number;
      readonly lead: number;
      readonly taps: number;
      readonly most: number;
    }[];
  };
}

/** Elements of the packed operand. */
export function packedElements(shape: PackShape): number {
  return shape.groups * shape.paddedRows * shape.depth;
}

/** Which of an operand's own depth lies closest together, where that is closer than its rows; else undefined. */
function depthFirst(shape: PackShape): "tap" | "channel" | undefined {
  const { taps, channels, strides, classes } = shape;
  if (classes !== undefined) return undefined;
  const tapFirst = taps > 1 && (channels === 1 || strides.tap < strides.channel);
  if ((tapFirst ? strides.tap : strides.channel) >= strides.row) return undefined;
  return tapFirst ? "tap" : "channel";
}

/** Whether an operand whose channels follow each other is read and written by whole vectors of four. */
function byVectors(shape: PackShape): boolean {
  const { groups, taps, strides } = shape;
  return depthFirst(shape) === "channel" && strides.channel === 1 && [
    shape.channels,
    shape.paddedChannels,
    shape.paddedRows,
    strides.row,
    groups > 1 ? strides.group : 0,
    taps > 1 ? strides.tap : 0,
    shape.tapRows?.channels ?? 0,
  ].every((elements) => elements % 4 === 0);
}

/** Bytes that memory brings at once. */
const LINE = 128;

/** Rows and depth of the tile that an operand passes through on its way; undefined where none does. */
function stagedTile(
  shape: PackShape,
  element: Scalar,
): { readonly tileRows: number; readonly tileDepth: number } | undefined {
  if (depthFirst(shape) === undefined) return undefined;
  return byVectors(shape)
    ? { tileRows: 64, tileDepth: LINE / scalarBytes(heldScalar(element)) }
    : { tileRows: 32, tileDepth: 32 };
}

/**
 * Copies an operand of any strides to [group][depth][rows], padded, for {@linkcode packedLoader}: through workgroup
 * memory where its depth lies together, so that both sides move in whole lines. Binds `unpacked` and `packed`.
 */
export function packStridedKernel(
  module: ModuleBuilder,
  shape: PackShape,
  element: Scalar,
): SizedKernel {
  const first = depthFirst(shape);
  const tile = stagedTile(shape, element);
  const vector = byVectors(shape) ? 4 : 1;
  // What goes through unchanged needs no conversion.
  const from = module.bind("unpacked", "read", vector, element, element);
  const to = module.bind("packed", "write", vector, element, element);
  const { window, tapRows, strides } = shape;
  const name = `pack_strided_${element}${vector === 4 ? "x4" : ""}${
    first === undefined ? "" : `_${first}`
  }${window ? "_window" : ""}${tapRows ? `_rows${tapRows.reversed ? "_reversed" : ""}` : ""}${
    shape.classes ? `_${shape.classes.inner}${shape.classes.axes.length}d` : ""
  }${module.splitTrait()}`;
  const size = (key: Exclude<keyof PackShape, "strides" | "window" | "tapRows" | "classes">) =>
    module.size(key, shape[key]);
  const outerTaps = window && module.size("outer_taps", window.outerTaps);
  const innerTaps = window && module.size("inner_taps", window.innerTaps);
  const rows = tapRows && tapRowText(module, shape, tapRows);
  const sizes = {
    rows: size("rows"),
    paddedRows: size("paddedRows"),
    channels: size("channels"),
    paddedChannels: size("paddedChannels"),
    taps: size("taps"),
    depth: size("depth"),
    groupStride: module.size("groupStride", strides.group),
    rowStride: module.size("rowStride", strides.row),
    channelStride: module.size("channelStride", strides.channel),
    tapStride: module.size("tapStride", strides.tap),
    zero: zeroOf(from.value, vector),
    load: from.load,
    // A tap of the source by its place in the depth, and the other way around.
    fromTap: window ? `tap % ${outerTaps} * ${innerTaps} + tap / ${outerTaps}` : "tap",
    toTap: window ? `from_tap % ${innerTaps} * ${outerTaps} + from_tap / ${innerTaps}` : "from_tap",
    // Channel and tap by their place in the depth, and the other way around.
    toChannel: rows?.toChannel ?? ((depth: string) => `${depth} % ${size("paddedChannels")}`),
    toTapPlace: rows?.toTap ?? ((depth: string) => `${depth} / ${size("paddedChannels")}`),
    toDepth: rows?.toDepth ??
      ((channel: string, tap: string) => `${tap} * ${size("paddedChannels")} + ${channel}`),
  };
  const count = packedElements(shape);
  const classes = shape.classes && classTaps(module, shape.classes);
  if (tile === undefined) {
    const values = {
      fromRow: "row",
      classes: undefined,
      ...classes,
      begin: eachElement(module.size("count", count)),
      store: (value: string) => to.store("i", value),
    };
    return templateKernel(module, name, directTemplate, { ...sizes, ...values }, {
      workgroups: Math.ceil(count / 256),
    });
  }
  const rowTiles = Math.ceil(shape.paddedRows / tile.tileRows);
  const depthTiles = Math.ceil(shape.depth / tile.tileDepth);
  const workgroups = shape.groups * rowTiles * depthTiles;
  const values = {
    type: from.value,
    vector: typeName(from.value, vector),
    width: vector,
    tapFirst: first === "tap",
    ...tile,
    workgroups: module.size("workgroups", workgroups),
    depthTiles: module.size("depth_tiles", depthTiles),
    rowTiles: module.size("row_tiles", rowTiles),
    store: (value: string) => {
      const place = `(group * ${sizes.depth} + depth) * ${sizes.paddedRows} + row`;
      return to.store(vector === 4 ? `(${place}) / 4u` : place, value);
    },
  };
  return templateKernel(module, name, stagedTemplate, { ...sizes, ...values }, {
    workgroups,
    bytes: tile.tileDepth * (tile.tileRows + 1) * scalarBytes(from.value),
  });
}

/** Where channels and taps lie in a depth of rows of taps. */
function tapRowText(
  module: ModuleBuilder,
  { paddedChannels }: PackShape,
  { taps, channels, reversed }: NonNullable<PackShape["tapRows"]>,
) {
  const size = (name: string, value: number) => module.size(`row_${name}`, value);
  const [inner, block] = [size("taps", taps), size("channels", channels)];
  const blocks = size("blocks", paddedChannels / channels);
  const turned = (tap: string) => reversed ? `(${inner} - 1u - ${tap})` : tap;
  return {
    toChannel: (depth: string) =>
      `${depth} / (${inner} * ${block}) % ${blocks} * ${block} + ${depth} % ${block}`,
    toTap: (depth: string) =>
      `${depth} / (${inner} * ${block} * ${blocks}) * ${inner} + ${
        turned(`${depth} / ${block} % ${inner}`)
      }`,
    toDepth: (channel: string, tap: string) =>
      `((${tap} / ${inner} * ${blocks} + ${channel} / ${block}) * ${inner} + ${
        turned(`${tap} % ${inner}`)
      }) * ${block} + ${channel} % ${block}`,
  };
}

/** Finds the channel of a row and its tap in the filter. */
function classTaps(
  module: ModuleBuilder,
  { inner, channels, axes }: NonNullable<PackShape["classes"]>,
) {
  const size = (name: string, value: number) => module.size(`class_${name}`, value);
  const count = size("count", axes.reduce((product, { stride }) => product * stride, 1));
  const rowChannels = size("channels", channels);
  const [channel, index] = inner === "channels"
    ? [`row % ${rowChannels}`, `row / ${rowChannels}`]
    : [`row / ${count}`, `row % ${count}`];
  const strides = axes.map(({ stride }, d) => size(`stride${d}`, stride));
  const most = axes.map(({ most }, d) => size(`most${d}`, most));
  const taps = axes.map(({ taps }, d) => size(`taps${d}`, taps));
  const leads = axes.map(({ lead }, d) => size(`lead${d}`, lead));
  const all = range(axes.length);
  return {
    fromRow: `(${channel})`,
    fromTap: all.reduce(
      (text, d) => d === 0 ? "from0" : `(${text} * ${taps[d]} + from${d})`,
      "",
    ),
    classes: [
      digitsText(`(${index})`, "class_rest", axisDigits(all.map((d) => `class${d}`), strides)),
      digitsText("tap", "tap_rest", axisDigits(all.map((d) => `tap${d}`), most)),
      ...all.map((d) => `  let from${d} = class${d} + tap${d} * ${strides[d]} - ${leads[d]};`),
      `  let meets = ${all.map((d) => `from${d} < ${taps[d]}`).join(" && ")};`,
    ].join("\n"),
  };
}

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

/**
 * Copies int8 to [group][panels][places][panel], four bytes of the depth a word, padded with zeros: of panels of one word what
 * `dot4I8Packed` multiplies, of longer ones what matrix units do, places in the order of {@linkcode bankedIndex}. Binds `unpacked` and `packed`, both as words.
 */
export function packBytesKernel(
  module: ModuleBuilder,
  shape: PackBytesShape,
): SizedKernel {
  const { along, places, paddedPlaces, depth, paddedWords, panel } = shape;
  const { wide, deep } = threadTile(shape);
  const run = runBytes(shape);
  const from = module.bind("unpacked", "read", run === 16 ? 4 : 1, "u32");
  const to = module.bind("packed", "write", wide * deep === 1 ? 1 : 4, "u32");
  const beside = panelsBeside(shape);
  const farPanels = Math.ceil(paddedWords / panel / beside);
  const count = shape.groups * farPanels * beside * (panel / deep) * (paddedPlaces / wide);
  // Sizes apart, the order of places is what texts differ by.
  const order = sharesBanks(panel / 4) ? panel / 4 : "";
  const name = `pack_bytes_${along}${wide}_run${run}${
    panel === 1 ? "" : `_panels${order}`
  }${module.splitTrait()}`;
  const size = (key: "places" | "depth") => module.size(key, shape[key]);
  const runs = module.size("runs", panel / deep);
  const threads = module.size("threads", paddedPlaces / wide);
  const panels = module.size("panels", paddedWords / panel);
  const values = {
    wide,
    deep,
    run,
    begin: eachElement(module.size("count", count)),
    digits: digitsText("i", "rest", [
      { name: "run", radix: runs },
      { name: "near_panel", radix: module.size("beside", beside) },
      { name: "first_place", radix: threads },
      { name: "far_panel", radix: module.size("far_panels", farPanels) },
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
  return templateKernel(module, name, bytesTemplate, values, {
    workgroups: Math.ceil(count / 256),
  });
}

/** Lines of two runs each, which lie in two tensors. */
export interface JoinedRuns {
  readonly lines: number;
  /** Elements of a line that are the first tensor's, and that follow of the other one's. */
  readonly first: number;
  readonly rest: number;
}

/** Writes lines of two tensors' runs. Binds `first`, `rest` and `joined`. */
export function joinRunsKernel(
  module: ModuleBuilder,
  { lines, first, rest }: JoinedRuns,
  element: Scalar,
): SizedKernel {
  const [one, other] = [
    module.bind("first", "read", 1, element),
    module.bind("rest", "read", 1, element),
  ];
  const to = module.bind("joined", "write", 1, element);
  const [before, after] = [module.size("before", first), module.size("after", rest)];
  const count = lines * (first + rest);
  const wgsl = [
    eachElement(module.size("count", count)),
    `  let line = i / (${before} + ${after});`,
    `  let place = i % (${before} + ${after});`,
    `  if (place < ${before}) {`,
    `    ${to.store("i", one.load(`line * ${before} + place`))}`,
    "  } else {",
    `    ${to.store("i", other.load(`line * ${after} + place - ${before}`))}`,
    "  }",
    "}",
  ];
  const about = "lines of two tensors' runs, one after the other.";
  const name = `join_runs_${element}${module.splitTrait()}`;
  return textKernel(module, name, about, wgsl, { workgroups: Math.ceil(count / 256) });
}
