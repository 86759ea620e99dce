import template from "../../../shaders/slice_filter.wgsl" with { type: "text" };
import { masked, type Scalar, type Stored, zeroOf } from "../../elements/scalar.ts";
import { digitsText } from "../axes.ts";
import { lines, range } from "../lists.ts";
import type { OperandLoader } from "../loop/mainloop.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { type SizedKernel, templateKernel } from "../sized_kernel.ts";
import type { OperandPlace } from "./image.ts";
import { type PatchTransform, transformResults, transformText } from "./patch.ts";
import { copyThreads } from "./tile.ts";
import {
  darkText,
  markPlaces,
  sizeBits,
  SPLIT_FACTOR,
  splitHalvesText,
  type SplitMarks,
} from "../split_marks.ts";

/** A filter axis: `taps` cut into `chunks` of r elements; an outer axis has r = 1 and a chunk a tap. */
export interface FilterAxis {
  readonly taps: number;
  readonly r: number;
  readonly chunks: number;
  /** Of the filter, in elements. */
  readonly stride: number;
}

/** The filter as a stack of matrices place x channel, one a tap; places and channels padded with zeros. */
export interface FilterTransformShape {
  readonly groups: number;
  readonly places: number;
  readonly paddedPlaces: number;
  readonly channels: number;
  readonly paddedChannels: number;
  /** From one to the next, in elements. */
  readonly strides: { readonly group: number; readonly place: number; readonly channel: number };
  readonly outer: readonly FilterAxis[];
  /** One or two axes that the transform works on. */
  readonly tiled: readonly FilterAxis[];
  /** Backward-data reads the filter from its end. */
  readonly rotated: boolean;
  /** What counts slowest in the result: groups, each with all its slices, or slices, each of all groups. */
  readonly outermost: "group" | "slice";
  /** Of halves. */
  readonly split?: FilterSplit | undefined;
}

/** How a transformed filter is stored as two halves each: of so many channels the high ones are followed by the low ones. */
export interface FilterSplit {
  readonly marks: SplitMarks;
  readonly unitDepth: number;
}

const SIDE = 16;
/** Slices that pass through workgroup memory at once, between two barriers. */
const TOGETHER = 6;

/** Taps, as the depth of the product counts them. */
function filterTaps({ outer, tiled }: FilterTransformShape): number {
  return [...outer, ...tiled].reduce((all, { chunks }) => all * chunks, 1);
}

/** Depth of the transformed filter. */
export function filterDepth(shape: FilterTransformShape): number {
  return filterTaps(shape) * shape.paddedChannels;
}

/**
 * Transforms a filter to [group][slice][tap, channel][place], or [slice][group] of the same. Squares of 16 places x 16
 * channels go through workgroup memory, so that reads and writes both follow memory.
 */
export function filterTransformKernel(
  module: ModuleBuilder,
  tile: string,
  shape: FilterTransformShape,
  transform: PatchTransform,
  element: Scalar,
  stored: Stored = "f32",
): SizedKernel {
  const { split } = shape;
  const filter = module.bind("filter", "read", 1, element);
  const transformed = module.bind("transformed", "write", 1, split ? "u32" : stored);
  const marks = split && module.atomics("marks");
  const size = (name: string, value: number) => module.size(`filter_${name}`, value);
  const axes = [...shape.outer, ...shape.tiled];
  const names = axes.map((_, d) => `chunk${d}`);
  const slices = transformResults(transform);
  const together = Math.min(TOGETHER, slices);
  // Coordinate of element e of a piece along an axis; past the filter's end it is no tap.
  const coordinate = (d: number, element: number) => `chunk${d} * ${axes[d]!.r}u + ${element}u`;
  const offset = (d: number, element: number) => {
    const at = coordinate(d, element);
    const taps = size(`taps${d}`, axes[d]!.taps);
    return `(${shape.rotated ? `${taps} - 1u - (${at})` : at}) * ${
      size(`stride${d}`, axes[d]!.stride)
    }`;
  };
  const outerCount = shape.outer.length;
  const [rows, columns] = [transform.rows[0]!.length, transform.columns[0]!.length];
  const columnAxis = axes.length - 1;
  const tapText = (i: number, j: number) => {
    const parts = shape.tiled.length > 1
      ? [{ d: outerCount, e: i }, { d: columnAxis, e: j }]
      : [{ d: columnAxis, e: j }];
    const value = filter.load(
      ["base", ...parts.map(({ d, e }) => offset(d, e))].join(" + "),
    );
    // Chunks of one tap end with the filter.
    const inside = parts.filter(({ d }) => axes[d]!.r > 1)
      .map(({ d, e }) => `${coordinate(d, e)} < ${size(`taps${d}`, axes[d]!.taps)}`);
    return masked(value, zeroOf("f32", 1), ["inside", ...inside]);
  };
  // Of halves values are looked at as they are, then multiplied.
  const loaded = (i: number, j: number) => `${split ? "raw" : "w"}${i}_${j}`;
  const loads = range(rows).map((i) =>
    range(columns).map((j) => `  let ${loaded(i, j)} = ${tapText(i, j)};`)
  ).flat();
  const at = split && markPlaces(module, "filter_split", split.marks, "place");
  const matrix = filterDepth(shape) * shape.paddedPlaces;
  const [groupStep, sliceStep] = shape.outermost === "group"
    ? [slices * matrix, matrix]
    : [matrix, shape.groups * matrix];
  const { statements, outputs } = transformText(transform, "g", (i, j) => `w${i}_${j}`, "f32");
  const channelsFirst = shape.strides.channel <= shape.strides.place;
  const name = `slice_filter_${element === "f32" ? "" : `${element}_`}${tile}${
    shape.rotated ? "_rotated" : ""
  }${
    split ? `_halves${split.unitDepth}` : ""
  }_${outerCount}o${shape.tiled.length}t${module.splitTrait()}${channelsFirst ? "_c" : "_p"}`;
  const placeTiles = Math.ceil(shape.paddedPlaces / SIDE);
  const channelTiles = Math.ceil(shape.paddedChannels / SIDE);
  const workgroups = shape.groups * filterTaps(shape) * placeTiles * channelTiles;
  const values = {
    count: size("workgroups", workgroups),
    placeTiles: size("place_tiles", placeTiles),
    channelTiles: size("channel_tiles", channelTiles),
    taps: size("tap_count", filterTaps(shape)),
    digits: digitsText(
      "tap",
      "tap_rest",
      axes.map((axis, d) => ({ name: names[d]!, radix: size(`chunks${d}`, axis.chunks) }))
        .reverse(),
    ),
    channelsFirst,
    places: size("places", shape.places),
    channels: size("channels", shape.channels),
    paddedPlaces: size("padded_places", shape.paddedPlaces),
    paddedChannels: size("padded_channels", shape.paddedChannels),
    base: [
      `group * ${size("group_stride", shape.strides.group)}`,
      `place * ${size("place_stride", shape.strides.place)}`,
      `channel * ${size("channel_stride", shape.strides.channel)}`,
      ...shape.outer.map((_, d) => offset(d, 0)),
    ].join(" + "),
    loads: marks && at
      ? [
        `  let bits = ${marks.load(at.key)};`,
        "  let factor = split_factor(bits);",
        "  var largest = 0u;",
        ...loads,
        ...range(rows * columns).map((at) => {
          const [i, j] = [Math.floor(at / columns), at % columns];
          return `  largest = max(largest, ${sizeBits(loaded(i, j))}); let w${i}_${j} = ${
            loaded(i, j)
          } * factor;`;
        }),
        `  let dark = ${darkText("largest", "bits")};`,
        `  if (inside && dark > 0u) { ${marks.add(at.row, "dark")} }`,
      ]
      : loads,
    statements,
    outputs,
    split: split !== undefined,
    functions: split ? SPLIT_FACTOR + splitHalvesText("nearest") : "",
    together,
    stores: outputs.map((_, slice) => {
      const square = `squares[${slice % together}]`;
      if (split) {
        const { unitDepth } = split;
        const row = `to_channel / ${unitDepth}u * ${2 * unitDepth}u + to_channel % ${unitDepth}u` +
          ` + select(0u, ${unitDepth}u, low)`;
        const half = `group * ${size("half_groups", 2 * groupStep)} + ${slice}u * ${
          size("half_slices", 2 * sliceStep)
        } + (tap * ${size("half_channels", 2 * shape.paddedChannels)} + ${row}) * ${
          size("padded_places", shape.paddedPlaces)
        } + to_place`;
        const halves = [0, 1].map((k) =>
          `halves_of(${square}[2u * (t % 8u) + ${k}u][t / 8u % 16u])`
        );
        return transformed.store(`(${half}) / 2u`, `halves_pair(${halves.join(", ")}, low)`);
      }
      const at = `group * ${size("group_step", groupStep)} + ${slice}u * ${
        size("slice_step", sliceStep)
      } + (tap * ${size("padded_channels", shape.paddedChannels)} + to_channel) * ${
        size("padded_places", shape.paddedPlaces)
      } + to_place`;
      return transformed.store(at, `${square}[t % 16u][t / 16u]`);
    }),
  };
  return templateKernel(module, name, template, values, {
    workgroups,
    bytes: 4 * together * SIDE * (SIDE + 1),
    features: split ? ["shader-f16"] : [],
  });
}

/** The transformed filter as its pass leaves it: [group][slice][depth][places], padded to whole tiles. */
export interface SlicedFilterShape {
  readonly slices: number;
  readonly places: number;
  readonly depth: number;
}

/**
 * Copies the slices of a transformed filter into the tile: aligned vectors, no masks. The threads that multiply a slice copy it
 * too, or a share of those that multiply all, the tile's `together` rows at once, or a row in several rounds: what a thread copies differs by numbers.
 */
export function filterLoader(
  module: ModuleBuilder,
  filter: TensorAccess,
  { slices, places, depth }: SlicedFilterShape,
  at: OperandPlace,
): OperandLoader {
  const p = `${at.side}_`;
  const { together } = at.tile;
  const vectors = at.extent / 4;
  const threads = copyThreads(at.threads, slices);
  const idle = at.threads > threads * slices;
  const across = Math.ceil(vectors / threads);
  const rowVectors = module.size("filter_row_vectors", places / 4);
  const total = module.size("filter_depth", depth);
  const first = at.side === "a" ? "first_row" : "first_column";
  const items = range(at.depth / together * across).map((i) => ({
    load: `${p}load${i}`,
    row: Math.floor(i / across) * together,
    vector: i % across * threads,
  }));
  // The last round of a row may be for some threads alone, and so may rows that do not fill the threads.
  const used = together * vectors;
  const guarded = ({ vector }: { vector: number }, text: string) => {
    const taking = [
      ...(vector + threads <= used ? [] : [`${p}own < ${used - vector}u`]),
      ...(idle ? [`${p}slice < ${slices}u`] : []),
    ];
    return taking.length === 0 ? text : `    if (${taking.join(" && ")}) {\n${text}\n    }`;
  };
  const [own, row] = together === 1 ? [`${p}own`, "0u"] : [`${p}own % ${vectors}u`, `${p}row`];
  return {
    places: lines(
      `  let ${p}own = t % ${threads}u;`,
      `  let ${p}slice = t / ${threads}u;`,
      `  let ${p}row = ${p}own / ${vectors}u;`,
      `  let ${p}base = ((group * ${slices}u + ${p}slice) * ${total} + ${row}) * ${rowVectors} + ` +
        `${first} / 4u + ${own};`,
    ),
    registers: items.map(({ load }) => `  var ${load} = vec4f();`).join("\n"),
    fetch: lines(
      `    let ${p}at = ${p}base + at * ${at.depth}u * ${rowVectors};`,
      items.map((item) => {
        const value = filter.load(`${p}at + ${item.row}u * ${rowVectors} + ${item.vector}u`);
        return guarded(item, `    ${item.load} = ${value};`);
      }),
    ),
    store: items.map((item) => {
      const vector = at.tile.vector(`${at.tile.first[at.side] + item.vector}u + ${own}`);
      const row = at.tile.rowOf(item.row, `${p}row`);
      return guarded(item, `    ${at.tile.slice(`${p}slice`)}${row}${vector} = ${item.load};`);
    }).join("\n"),
  };
}
