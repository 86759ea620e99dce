import { type Axis, digitsText } from "../axes.ts";
import type { OperandLoader } from "../loop/mainloop.ts";
import type { ModuleBuilder } from "../module.ts";
import { type OperandPlace, OUTSIDE } from "./image.ts";

/** An axis whose filter taps are rows of ∇W of their own; its source is the input. */
export interface GradientAxis extends Axis {
  readonly gradientStride: number;
  readonly filterStride: number;
}

/**
 * One kernel's share of a backward-filter problem (WinRS): segments of ∇Y in a grid, each cut into tiles of r
 * columns along the width, of which F(n,r) makes n columns of ∇W.
 */
export interface CorrelationShape {
  readonly batch: number;
  readonly groups: number;
  /** Of a group. */
  readonly outChannels: number;
  readonly inChannels: number;
  readonly strides: CorrelationStrides;
  /** Outermost first; the outermost's rows without input are clipped. */
  readonly outer: readonly GradientAxis[];
  readonly width: GradientAxis;
  readonly tile: CorrelationTile;
  readonly segments: CorrelationSegments;
  /** Images follow each other fastest along the depth; tiles of a row otherwise (nchw). */
  readonly imagesFirst: boolean;
  /** Channels lie together in memory (nhwc), so neighbouring threads bring neighbouring channels. */
  readonly channelsInner: boolean;
}

/** Columns of ∇W and of ∇Y of a tile. */
export interface CorrelationTile {
  readonly n: number;
  readonly r: number;
  /** The same along the last outer axis, of stride and dilation 1, where patches have rows. */
  readonly rows?: { readonly n: number; readonly r: number } | undefined;
}

/** From an image, a channel or an output channel to the next, in elements. */
export interface CorrelationStrides {
  readonly input: { readonly batch: number; readonly channel: number };
  readonly gradient: { readonly batch: number; readonly channel: number };
  readonly filter: { readonly out: number; readonly in: number };
}

/** A grid of segments of ∇Y, and where each one's sums go. */
export interface CorrelationSegments {
  /** Tiles of a row, the first one's column, and the columns of segments that share them. */
  readonly tiles: number;
  readonly firstColumn: number;
  readonly columns: number;
  readonly rows: number;
  /** Rows of ∇Y of each, or tiles of them. */
  readonly heights: Parts;
  /** Bucket of the first segment of row 0, and of how many a row has. */
  readonly firstBucket: number;
  readonly bucketColumns: number;
}

/** A length in parts, the longer ones first: so many are `long`, those behind them `short`; its end cuts the last ones off. */
export interface Parts {
  readonly long: number;
  readonly longOnes: number;
  readonly short: number;
}

/** Parts that differ by 1 at most. */
export function evenParts(size: number, parts: number): Parts {
  const [short, longOnes] = [Math.floor(size / parts), size % parts];
  return { long: longOnes === 0 ? short : short + 1, longOnes, short };
}

/** Outer axes as kernels go over them: of the one whose rows are tiled pieces of the filter, and tiles. */
function outerUnits({ outer, tile: { rows } }: CorrelationShape): readonly GradientAxis[] {
  const last = outer.at(-1);
  if (rows === undefined || last === undefined) return outer;
  return [...outer.slice(0, -1), {
    ...last,
    taps: last.taps / rows.n,
    places: Math.ceil(last.places / rows.r),
  }];
}

/** Whether an outer axis is the one whose rows are tiled. */
export function isTiled({ outer, tile }: CorrelationShape, axis: number): boolean {
  return tile.rows !== undefined && axis === outer.length - 1;
}

const product = (values: readonly number[]) => values.reduce((all, one) => all * one, 1);

/** Independent products: pieces of the filter's width, its rows, groups, segments. */
export function correlationBatches(shape: CorrelationShape): number {
  return Math.ceil(shape.width.taps / shape.tile.n) *
    product(outerUnits(shape).map(({ taps }) => taps)) *
    shape.groups * shape.segments.rows * shape.segments.columns;
}

/** Whether all segments have as many tiles of a row, a number of the text; with sizes in a uniform one text serves all. */
function evenTiles(module: ModuleBuilder, shape: CorrelationShape): boolean {
  return module.mode === "constant" && shape.segments.tiles % shape.segments.columns === 0;
}

/** Makes sizes of a {@linkcode CorrelationShape} WGSL; numbers below 0 wrap around. */
export function correlationSizes(module: ModuleBuilder, prefix = "winrs") {
  return (name: string, value: number) => module.size(`${prefix}_${name}`, value >>> 0);
}

/** Sizes that stay out of the text, so that any number of segments runs the same kernel. */
function parameters(module: ModuleBuilder) {
  return (name: string, value: number) => module.parameter(`winrs_${name}`, value >>> 0);
}

/** WGSL of where part `index` begins, and of how long it is. */
function partText(
  vary: ReturnType<typeof parameters>,
  name: string,
  index: string,
  { long, longOnes, short }: Parts,
): { start: string; length: string } {
  const [longer, shorter] = [vary(`${name}_long`, long), vary(`${name}_short`, short)];
  const ones = vary(`${name}_long_ones`, longOnes);
  return {
    start: `${index} * ${shorter} + min(${index}, ${ones}) * (${longer} - ${shorter})`,
    length: `select(${shorter}, ${longer}, ${index} < ${ones})`,
  };
}

/** Declares piece, filter row, group and segment of a batch, and the depth that its rows, tiles and images make. */
export function correlationBatchText(module: ModuleBuilder, shape: CorrelationShape): string {
  const [size, vary] = [correlationSizes(module), parameters(module)];
  const { width } = shape;
  const outer = outerUnits(shape);
  const rows = product(outer.map(({ places }) => places));
  const [outermost, ...inner] = outer;
  const innerRows = product(inner.map(({ places }) => places));
  const digits = [
    { name: "piece", radix: size("pieces", Math.ceil(width.taps / shape.tile.n)) },
    ...outer.map((axis, d) => ({ name: `tap${d}`, radix: size(`taps${d}`, axis.taps) })).reverse(),
    { name: "group", radix: size("groups", shape.groups) },
    { name: "segment_column", radix: vary("segment_columns", shape.segments.columns) },
    { name: "segment_row", radix: vary("segment_rows", shape.segments.rows) },
  ];
  const widths = evenParts(shape.segments.tiles, shape.segments.columns);
  const column = partText(vary, "column", "segment_column", widths);
  const row = partText(vary, "row", "segment_row", shape.segments.heights);
  // Rows of the gradient that meet the input in this row of the filter: start·stride + tap·dilation − padding >= 0.
  const clip = outermost === undefined || isTiled(shape, 0) ? undefined : [
    `  let clip_at = i32(tap0 * ${size("dilation0", outermost.dilation)}) - i32(${
      size("padding0", outermost.padding)
    });`,
    `  let clip_stride = i32(${size("stride0", outermost.stride)});`,
    `  let clip_start = u32(max(0, (clip_stride - 1 - clip_at) / clip_stride)) * ${
      size("inner_rows", innerRows)
    };`,
    `  let clip_end = u32(max(0, (i32(${
      size("size0", outermost.size)
    }) - clip_at + clip_stride - 1) / clip_stride)) * ${size("inner_rows", innerRows)};`,
    `  let row_start = max(segment_start, clip_start);`,
    `  let row_end = max(row_start, min(segment_end, clip_end));`,
  ];
  return [
    digitsText("batch", "batch_rest", digits),
    `  let bucket = segment_row * ${
      vary("bucket_columns", shape.segments.bucketColumns)
    } + segment_column + ${vary("first_bucket", shape.segments.firstBucket)};`,
    `  let tile_start = ${column.start};`,
    `  let tile_count = ${
      evenTiles(module, shape) ? size("segment_tiles", widths.short) : column.length
    };`,
    `  let segment_start = min(${size("rows", rows)}, ${row.start});`,
    `  let segment_end = min(${size("rows", rows)}, segment_start + ${row.length});`,
    ...(clip ?? ["  let row_start = segment_start;", "  let row_end = segment_end;"]),
    `  let depth_end = (row_end - row_start) * tile_count * ${size("batch", shape.batch)};`,
  ].join("\n");
}

/**
 * Where a step lies, of steps that share a tile and a row: among those of its tile and row, its tile and its row, which are counted
 * where they would else be quotients of its index that its loads wait for.
 */
function stepState(
  { batch }: CorrelationShape,
  depth: number,
): Required<Pick<OperandLoader, "begin" | "advance">> {
  return {
    begin: "  var step_image = 0u;\n  var step_tile = 0u;\n  var step_row = 0u;",
    advance: [
      "    step_image++;",
      `    if (step_image == ${batch / depth}u) {`,
      "      step_image = 0u;",
      "      step_tile++;",
      "      if (step_tile == tile_count) {",
      "        step_tile = 0u;",
      "        step_row++;",
      "      }",
      "    }",
    ].join("\n"),
  };
}

/** Tile, row coordinates and image of a depth index; tile and row of all of a step where it has no index. */
function depthText(
  size: Sizes,
  shape: CorrelationShape,
  p: string,
  slot: number | undefined,
  depth: number,
  counted: boolean,
): string[] {
  const name = (what: string) => `${p}${what}${slot ?? ""}`;
  const index = name("index");
  const batch = slot === undefined ? `${shape.batch / depth}u` : size("batch", shape.batch);
  const [image, tile, row] = counted
    ? ["step_image", "step_tile", "step_row"]
    : shape.imagesFirst
    ? [
      `${index} % ${batch}`,
      `(${index} / ${batch}) % tile_count`,
      `(${index} / ${batch}) / tile_count`,
    ]
    : [
      `(${index} / tile_count) % ${batch}`,
      `${index} % tile_count`,
      `(${index} / tile_count) / ${batch}`,
    ];
  return [
    ...(counted
      ? []
      : [`let ${index} = ${slot === undefined ? "at" : `at * ${depth}u + ${p}depth${slot}`};`]),
    `let ${name("image")} = ${image};`,
    `let ${name("column")} = (tile_start + ${tile}) * ${shape.tile.r}u + ${
      size("first_column", shape.segments.firstColumn)
    };`,
    `let ${name("row")} = row_start + ${row};`,
    digitsText(
      name("row"),
      `${p}row_rest${slot ?? ""}_`,
      outerUnits(shape).map((axis, d) => ({
        name: `${p}o${slot ?? ""}_${d}`,
        radix: size(`places${d}`, axis.places),
      })).reverse(),
      "    ",
    ),
  ];
}

type Sizes = (name: string, value: number) => string;

/** An operand of WinRS: patches of r columns of ∇Y, or of α columns of X. */
export type CorrelationOperand = "gradient" | "input";

/** How many columns or rows there are. */
interface Edge {
  readonly size: string;
  readonly value: number;
}

/** Where the columns of an operand's patches lie, in vectors of so many channels, as text. */
export interface CorrelationColumns {
  /** Whether whole steps share a tile and a row: these are the same for every thread then, and so cheap. */
  readonly together: boolean;
  /** What says where a step lies, where its index does not. */
  readonly state?: Required<Pick<OperandLoader, "begin" | "advance">> | undefined;
  /** From one column to the next. */
  readonly step: string;
  /** Columns that the operand has. */
  readonly edge: Edge;
  /** Rows that it has, and from one to the next, where patches have rows. */
  readonly rows?: Edge & { readonly step: string } | undefined;
  /** WGSL of where a place of the tile lies in its group's channels. */
  base(place: string): string;
  /**
   * Declares `{p}first{slot}`, the first column of each depth slot's patch, outside where it is none, `{p}line{slot}`, its first row,
   * where patches have rows, and `{p}far{slot}`.
   */
  depths(slots: readonly number[]): string[];
}

export function correlationColumns(
  module: ModuleBuilder,
  which: CorrelationOperand,
  shape: CorrelationShape,
  { side, depth }: Pick<OperandPlace, "side" | "depth">,
  vector: 1 | 4 | 8,
): CorrelationColumns {
  const own = correlationSizes(module, vector === 1 ? "winrs" : "winrs_wide");
  const size = own;
  const stride = (name: string, value: number) => own(name, value / vector);
  const p = `${side}_`;
  const { outer, width } = shape;
  const input = which === "input";
  const { batch: images, channel: channelStride } = shape.strides[which];
  const channels = input ? shape.inChannels : shape.outChannels;
  // Vectors are of neighbouring channels.
  const channelSize = vector === 1 ? own(`${which}_channel`, channelStride) : "1u";
  const axisStride = (d: number) => input ? outer[d]!.sourceStride : outer[d]!.gradientStride;
  const together = module.mode === "constant" && shape.imagesFirst && shape.batch > 0 &&
    shape.batch % depth === 0;
  // Of tiles that a number divides evenly, and of vectors, an index takes as long.
  const counted = together && vector === 1 && !evenTiles(module, shape);
  const coordinate = (slot: number | undefined, d: number) => {
    const o = `${p}o${slot ?? ""}_${d}`;
    const { n, r } = shape.tile.rows ?? { n: 1, r: 1 };
    if (isTiled(shape, d)) {
      return input
        ? `(${o} * ${r}u + tap${d} * ${n}u - ${size(`padding${d}`, outer[d]!.padding)})`
        : `(${o} * ${r}u)`;
    }
    return input
      ? `(${o} * ${size(`stride${d}`, outer[d]!.stride)} + tap${d} * ${
        size(`dilation${d}`, outer[d]!.dilation)
      } - ${size(`padding${d}`, outer[d]!.padding)})`
      : o;
  };
  const step = stride(`${which}_width`, input ? width.sourceStride : width.gradientStride);
  const batchStride = stride(`${which}_batch`, images);
  const rowAxis = outer.length - 1;
  const lines = shape.tile.rows && outer[rowAxis]![input ? "size" : "places"];
  const rows = lines === undefined ? undefined : {
    size: size(`${which}_lines`, lines),
    value: lines,
    step: stride(`${which}_step${rowAxis}`, axisStride(rowAxis)),
  };
  const placeText = (slot: number | undefined) => {
    const its = (what: string) => `${p}${what}${slot ?? ""}`;
    const column = input
      ? `${its("column")} * ${size("width_stride", width.stride)} + piece * ${
        size("piece_step", shape.tile.n * width.dilation)
      } - ${size("width_padding", width.padding)}`
      : its("column");
    const inside = [
      counted
        ? `${its("row")} < row_end`
        : `${its("index")}${slot === undefined ? ` * ${depth}u` : ""} < depth_end`,
      ...(input
        ? outer.flatMap((axis, d) =>
          isTiled(shape, d) ? [] : [`${coordinate(slot, d)} < ${size(`size${d}`, axis.size)}`]
        )
        : []),
    ].join(" && ");
    return [
      ...depthText(size, shape, p, slot, depth, counted),
      `let ${its("first")} = select(${OUTSIDE}, ${column}, ${inside});`,
      ...(rows === undefined ? [] : [`let ${its("line")} = ${coordinate(slot, rowAxis)};`]),
      `let ${its("far")} = ${
        [
          `${its("image")} * ${slot === undefined ? `${depth}u * ` : ""}${batchStride}`,
          ...outer.map((_, d) =>
            `${coordinate(slot, d)} * ${stride(`${which}_step${d}`, axisStride(d))}`
          ),
          `(${column}) * ${step}`,
        ].join(" + ")
      };`,
    ];
  };
  const edge = input ? width.size : width.places;
  return {
    together,
    state: counted ? stepState(shape, depth) : undefined,
    step,
    edge: { size: size(`${which}_edge`, edge), value: edge },
    rows,
    base: (place) =>
      `(group * ${stride(`${which}_channels`, channels)} + ${place}) * ${channelSize}`,
    depths: (slots) =>
      together
        ? [
          ...placeText(undefined),
          ...slots.flatMap((slot) => [
            `let ${p}first${slot} = ${p}first;`,
            ...(rows === undefined ? [] : [`let ${p}line${slot} = ${p}line;`]),
            `let ${p}far${slot} = ${p}far + ${p}depth${slot} * ${batchStride};`,
          ]),
        ]
        : slots.flatMap(placeText),
  };
}
