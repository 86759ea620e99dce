import { range } from "./lists.ts";
import { axisDigits, digitsText } from "./axes.ts";
import type { ModuleBuilder, TensorAccess } from "./module.ts";
import type { OutputStore, OutputVector } from "./output.ts";
import { typeName } from "../elements/scalar.ts";

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
export interface ClassPlaceText {
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
    text({ fragmentRows, fragmentColumns, fragmentHeight = 4, sum = "f32", row, column }) {
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
        each(fragmentHeight, down, (y) => {
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
