import { typeName } from "../elements/scalar.ts";
import { type Axis, axisDigits, digitsText, gcd } from "./axes.ts";
import { range } from "./lists.ts";
import type { ModuleBuilder, TensorAccess } from "./module.ts";
import type { OutputStore, OutputVector } from "./output.ts";

/** A class of backward-data's places along an axis: those that the same taps meet. */
export interface StrideClass {
  /** Its places are `firstPlace + i·stride`. */
  readonly firstPlace: number;
  /** Its taps are `firstTap + j·step`, `taps` of them; places that no tap meets have none. */
  readonly firstTap: number;
  readonly taps: number;
  /** Where place i and tap j meet in the source: `origin + i − j·dilation`, with {@linkcode classSteps}' dilation. */
  readonly origin: number;
}

type StridedAxis = Pick<Axis, "places" | "taps" | "stride" | "padding" | "dilation">;

/** From one tap of a class to its next, and how far that moves in the source. */
export function classSteps(
  { stride, dilation }: Pick<StridedAxis, "stride" | "dilation">,
): { step: number; dilation: number } {
  const common = gcd(stride, dilation);
  return { step: stride / common, dilation: dilation / common };
}

/**
 * The class of an index below the stride. The first classes, as many as `step`, begin with the taps in their order, so that
 * those of most taps are first; others have none.
 */
export function strideClass(axis: StridedAxis, index: number): StrideClass {
  const { stride, padding, dilation } = axis;
  const { step } = classSteps(axis);
  const firstTap = index % step;
  const met = firstTap * dilation;
  const firstPlace = (met + Math.floor(index / step) + padding * (stride - 1)) % stride;
  const taps = index < step ? Math.max(0, Math.ceil((axis.taps - firstTap) / step)) : 0;
  return {
    firstPlace,
    firstTap,
    taps,
    origin: Math.trunc((firstPlace + padding - met) / stride),
  };
}

/** Places of a class: some have one less, and those of class places beyond the last are not stored. */
export function classPlaces({ places, stride }: Pick<StridedAxis, "places" | "stride">): number {
  return Math.ceil(places / stride);
}

/** Most taps of a class of an axis. */
export function mostTaps(axis: StridedAxis): number {
  return strideClass(axis, 0).taps;
}

/** Taps that the classes of all axes have on the mean, over the most. */
export function tapShare(axes: readonly StridedAxis[]): number {
  // Each tap is in one class.
  return axes.reduce((share, axis) => share * axis.taps / (axis.stride * mostTaps(axis)), 1);
}

/** What all classes of an axis of stride 1 or dilation 1 have in common: one window of the source that holds all of their taps. */
interface ClassWindow {
  /** Places of the grid: class m has `first + m + i·stride`, some of which may lie outside. */
  readonly grid: number;
  /** Not above 0. */
  readonly first: number;
  /** Places of the window: of place i the one at t is `origin + i − t·dilation`. */
  readonly taps: number;
  readonly origin: number;
  /** There class m meets tap m + t·stride − lead, if that is one. */
  readonly lead: number;
}

/** The window of an axis; undefined where taps of different classes lie apart, which strides with dilation make. */
export function classWindow(axis: StridedAxis): ClassWindow | undefined {
  const { places, taps, stride, padding, dilation } = axis;
  if (stride > 1 && dilation > 1) return undefined;
  const least = Math.ceil(taps / stride);
  // From the first place on, unless the window is longer for that; then from where the padding's strides begin.
  const origin = Math.ceil(padding / stride);
  const lead = origin * stride - padding;
  if (Math.ceil((taps + lead) / stride) === least) {
    return { grid: classPlaces(axis), first: 0, taps: least, origin, lead };
  }
  const before = Math.floor(padding / stride);
  return {
    grid: Math.floor((places - 1 + padding) / stride) - before + 1,
    first: before * stride - padding,
    taps: least,
    origin: before,
    lead: 0,
  };
}

/**
 * Declares what a workgroup's class is, whose rows begin at `class_row`: for each axis `class_first`, `class_tap`,
 * `class_taps` and `class_origin` as {@linkcode StrideClass} has them; and `class_taps`, those of all axes.
 *
 * @param rows Padded rows of a class.
 */
export function classText(
  module: ModuleBuilder,
  axes: readonly StridedAxis[],
  rows: number,
): string {
  const size = (name: string, value: number) => module.size(`class_${name}`, value);
  const strides = axes.map(({ stride }, d) => size(`stride${d}`, stride));
  return [
    `  let class_index = first_row / ${size("rows", rows)};`,
    `  let class_row = class_index * ${size("rows", rows)};`,
    digitsText(
      "class_index",
      "class_rest",
      axisDigits(axes.map((_, d) => `class_index${d}`), strides),
    ),
    ...axes.flatMap((axis, d) => {
      const step = size(`step${d}`, classSteps(axis).step);
      const padding = size(`padding${d}`, axis.padding);
      const dilation = size(`dilation${d}`, axis.dilation);
      const taps = size(`taps${d}`, axis.taps);
      return [
        `  let class_tap${d} = class_index${d} % ${step};`,
        `  let class_met${d} = class_tap${d} * ${dilation};`,
        `  let class_first${d} = (class_met${d} + class_index${d} / ${step} + ${padding} * ` +
        `(${strides[d]} - 1u)) % ${strides[d]};`,
        `  let class_origin${d} = u32(i32(class_first${d} + ${padding} - class_met${d}) / ` +
        `i32(${strides[d]}));`,
        `  let class_taps${d} = ${
          evenTaps(axis) && module.mode === "constant"
            ? `${mostTaps(axis)}u`
            : `select(0u, (${taps} - class_tap${d} + ${step} - 1u) / ${step}, ` +
              `class_index${d} < ${step} && class_tap${d} < ${taps})`
        };`,
      ];
    }),
    `  let class_taps = ${axes.map((_, d) => `class_taps${d}`).join(" * ")};`,
  ].join("\n");
}

/** Whether all classes have the same number of taps. */
function evenTaps(axis: StridedAxis): boolean {
  return mostTaps(axis) * axis.stride === axis.taps;
}

/** Where the results of classes of strides go: they lie between each other. */
export interface ClassResults {
  readonly channels: number;
  readonly channelStride: number;
  readonly batch: number;
  readonly batchStride: number;
  /** Columns count images fastest (chwn) instead of places. */
  readonly batchInner: boolean;
  /** Which count fastest of the rows, channels or classes. */
  readonly inner: "channels" | "classes";
  readonly axes: readonly {
    /** Places of a class, those that are not there included. */
    readonly grid: number;
    /** All places. */
    readonly places: number;
    readonly stride: number;
    /** Whether a tile has rows of all of its classes; else a workgroup's are of one, as `classText()` declares it. */
    readonly rows: boolean;
    /** The place of the first class at place 0 of the grid, which may lie before the result. */
    readonly first: number;
    /** From one place to the next, in elements. */
    readonly placeStride: number;
  }[];
}

/** Which axes have grid places whose results are not there, as `01`. */
export function classEdges({ axes }: Pick<ClassResults, "axes">): string {
  return axes.map(({ grid, places, stride, first }) =>
    first < 0 || first + grid * stride > places ? "1" : "0"
  ).join("");
}

/** Which axes have their classes in rows, and which tiles for each: `rt`. */
export function classSides({ axes }: Pick<ClassResults, "axes">): string {
  return axes.map(({ rows }) => rows ? "r" : "t").join("");
}

/** Channels and classes that are rows: those of a group, or of each class that has tiles. */
export function classRows({ channels, axes }: Pick<ClassResults, "channels" | "axes">): number {
  return axes.reduce((product, { rows, stride }) => rows ? product * stride : product, channels);
}

/** Classes that have tiles of their own, all axes together. */
export function tileClasses({ axes }: Pick<ClassResults, "axes">): number {
  return axes.reduce((product, { rows, stride }) => rows ? product : product * stride, 1);
}

/** The side along which four results leave in one store. */
function classVector(results: ClassResults, base: readonly number[]): OutputVector {
  const { inner, channels, channelStride, batch, batchStride, batchInner, axes } = results;
  const whole = (...values: number[]) => values.every((value) => value % 4 === 0);
  if (!whole(...base)) return "none";
  if (batchInner) return batchStride === 1 && whole(batch) ? "columns" : "none";
  if (!whole(batchStride, ...outerStrides(results))) return "none";
  const { rows, stride, first, placeStride } = axes.at(-1)!;
  const channelsFirst = inner === "channels";
  if (channelsFirst && channelStride === 1 && whole(channels, placeStride)) return "rows";
  // Neighbouring classes are neighbouring places, if none of them is missing.
  if (!rows || classEdges(results).at(-1) === "1") return "none";
  const together = channelsFirst
    ? channelStride === 1 && placeStride === channels && whole(stride * channels, first * channels)
    : placeStride === 1 && whole(stride, first, channelStride);
  return together ? "rows" : "none";
}

/** How results of classes of strides leave: four at a time along a side, or as two classes of two columns; or one by one. */
export type ClassStore = OutputVector | "pairs";

/**
 * How the results of a product leave whose threads have four rows and more.
 *
 * @param base What the offsets of groups and splits are multiples of.
 */
export function classStore(results: ClassResults, base: readonly number[]): ClassStore {
  const vector = classVector(results, base);
  const { batchInner, batchStride, channelStride, inner, axes } = results;
  const { rows, stride, first, grid, placeStride } = axes.at(-1)!;
  const whole = [batchStride, channelStride, first, ...base, ...outerStrides(results)]
    .every((value) => value % 4 === 0);
  const pairs = vector === "none" && inner === "classes" && !batchInner && rows && whole &&
    stride === 2 && placeStride === 1 && grid % 2 === 0 && classEdges(results).at(-1) === "0";
  return pairs ? "pairs" : vector;
}

/** Strides of the places of all axes but the last. */
function outerStrides({ axes }: ClassResults): number[] {
  return axes.slice(0, -1).map(({ placeStride }) => placeStride);
}

/** Text that finds where a result of classes of strides lies, in parts for its row and its column. */
interface ClassPlaceText {
  /** Declares what a column has, after the declaration of `out_base`, the offset of the group and split. */
  column(name: string, column: string): string[];
  /** Declares what a row has; `row_in` and its name: whether it is there. */
  row(name: string, row: string): string[];
  /** Whether a result of a row that is there is there too. */
  inside(row: string, column: string): string;
  /** Its offset in elements. */
  offset(row: string, column: string): string;
}

/** The text of places for a product of so many columns. */
export function classPlaceText(
  module: ModuleBuilder,
  results: ClassResults,
  columnCount: number,
): ClassPlaceText {
  const { axes, batchInner } = results;
  const size = (name: string, value: number) => module.size(`out_${name}`, value);
  const tiles = axes.some(({ rows }) => !rows);
  const channels = size("channels", results.channels);
  const channelStride = size("channel_stride", results.channelStride);
  const batch = size("batch", results.batch);
  const batchStride = size("batch_stride", results.batchStride);
  const spots = size("spots", axes.reduce((product, { grid }) => product * grid, 1));
  const columns = size("columns", columnCount);
  const grids = axes.map(({ grid }, d) => size(`grid${d}`, grid));
  const strides = axes.map(({ stride }, d) => size(`stride${d}`, stride));
  const placeStrides = axes.map(({ placeStride }, d) => size(`place_stride${d}`, placeStride));
  // Places before the result wrap around.
  const firsts = axes.map(({ first }, d) => size(`first${d}`, first >>> 0));
  const edges = [...classEdges(results)].map((edge, d) =>
    edge === "1" ? size(`places${d}`, axes[d]!.places) : undefined
  );
  const all = range(axes.length);
  const sum = (terms: readonly string[]) => terms.join(" + ");
  const bounds = (rows: boolean, place: (d: number) => string) =>
    all.flatMap((d) =>
      edges[d] === undefined || axes[d]!.rows !== rows ? [] : [`${place(d)} < ${edges[d]}`]
    );
  return {
    column(name, column) {
      const [image, spot] = batchInner
        ? [`column${name} % ${batch}`, `column${name} / ${batch}`]
        : [`column${name} / ${spots}`, `column${name} % ${spots}`];
      const at = (d: number) => `start${name}_${d}`;
      const inside = [`column${name} < ${columns}`, ...bounds(false, at)];
      return [
        `  let column${name} = ${column};`,
        digitsText(
          `(${spot})`,
          `rest${name}_`,
          axisDigits(all.map((d) => `spot${name}_${d}`), grids),
        ),
        ...all.map((d) =>
          `  let ${at(d)} = spot${name}_${d} * ${strides[d]}${
            axes[d]!.rows ? "" : ` + class_first${d}`
          };`
        ),
        `  let offset${name} = out_base + (${image}) * ${batchStride} + ${
          sum(all.map((d) => `${at(d)} * ${placeStrides[d]}`))
        };`,
        `  let in${name} = ${inside.join(" && ")};`,
      ];
    },
    row(name, row) {
      const inRows = all.filter((d) => axes[d]!.rows);
      const radices = inRows.map((d) => strides[d]!);
      const classes = size("classes", classRows({ ...results, channels: 1 }));
      const [channel, index] = results.inner === "channels"
        ? [`row${name} % ${channels}`, `row${name} / ${channels}`]
        : [`row${name} / ${classes}`, `row${name} % ${classes}`];
      const first = (d: number) => `first${name}_${d}`;
      return [
        `  let row${name} = ${row}${tiles ? " - class_row" : ""};`,
        digitsText(
          `(${index})`,
          `row_rest${name}_`,
          axisDigits(inRows.map((d) => `class${name}_${d}`), radices),
        ),
        ...inRows.map((d) => `  let ${first(d)} = class${name}_${d} + ${firsts[d]};`),
        `  let row_offset${name} = ${
          sum([
            `(${channel}) * ${channelStride}`,
            ...inRows.map((d) => `${first(d)} * ${placeStrides[d]}`),
          ])
        };`,
        `  let row_in${name} = row${name} < ${size("rows", classRows(results))};`,
      ];
    },
    inside: (row, column) =>
      [
        `in${column}`,
        ...bounds(true, (d) => `start${column}_${d} + first${row}_${d}`),
      ].join(" && "),
    offset: (row, column) => `offset${column} + row_offset${row}`,
  };
}

/**
 * Stores the thread tile to the places of its classes.
 *
 * @param columnCount Columns of the product.
 * @param base WGSL of the offset of the group and split.
 */
export function classOutput(
  module: ModuleBuilder,
  out: TensorAccess,
  results: ClassResults,
  columnCount: number,
  base: string,
  store: ClassStore,
): OutputStore {
  const places = classPlaceText(module, results, columnCount);
  return {
    declarations: "",
    side: store === "rows" ? "rows" : "columns",
    iterations: 0,
    text({ fragmentRows, fragmentColumns, sum = "f32", row, column }) {
      const lines = [`  let out_base = ${base};`];
      // Columns and rows of a store, and how many stores of them a fragment has along each side.
      const [across, down] = {
        columns: [4, 1],
        rows: [1, 4],
        pairs: [2, 2],
        none: [1, 1],
      }[store] as [number, number];
      const each = (end: number, step: number, act: (i: number) => void) => {
        for (let i = 0; i < end; i += step) act(i);
      };
      each(fragmentColumns, 1, (j) =>
        each(
          4,
          across,
          (x) => lines.push(...places.column(`${j}_${x}`, `(${column(j)} + ${x}u)`)),
        ));
      each(fragmentRows, 1, (i) =>
        each(4, down, (y) => {
          const name = `${i}_${y}`;
          lines.push(...places.row(name, `(${row(i)} + ${y}u)`), `  if (row_in${name}) {`);
          each(fragmentColumns, 1, (j) =>
            each(4, across, (x) => {
              const at = `${j}_${x}`;
              const offset = places.offset(name, at);
              const text = out.store(
                store === "none" ? offset : `(${offset}) / 4u`,
                value(4 * i + y, j, x),
              );
              lines.push(`    if (${places.inside(name, at)}) { ${text} }`);
            }));
          lines.push("  }");
        }));
      return lines.join("\n");

      function value(row: number, j: number, x: number): string {
        if (store === "columns") return `c${row}_${j}`;
        // Classes are neighbours, then places.
        const four = range(across * down).map((k) =>
          `c${row + k % down}_${j}.${"xyzw"[x + Math.floor(k / down)]}`
        );
        return store === "none" ? four[0]! : `${typeName(sum, 4)}(${four.join(", ")})`;
      }
    },
  };
}
