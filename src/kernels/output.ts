import type { TensorAccess } from "./module.ts";

/** Where the thread tile lies, as WGSL expressions of the first row and column of each 4x4 fragment. */
export interface FragmentPlaces {
  readonly fragmentRows: number;
  readonly fragmentColumns: number;
  row(i: number): string;
  column(j: number): string;
}

/** What becomes of the accumulators `c{row}_{fragment column}`: the statements that store them. */
export interface OutputStore {
  /** Functions the statements call. */
  readonly declarations: string;
  text(places: FragmentPlaces): string;
}

/**
 * Offsets of a result in its tensor: row·rowStride + ⌊column / period⌋·outerStride + (column mod
 * period)·innerStride, in elements. `vector` says which side is contiguous and divides by four, so that
 * four results leave in one store.
 */
export interface OutputMap {
  readonly rows: string;
  readonly columns: string;
  readonly rowStride: string;
  readonly period: string;
  readonly outerStride: string;
  readonly innerStride: string;
  /** Offset of the batch and split of this workgroup. */
  readonly base: string;
  readonly vector: "rows" | "columns" | "none";
}

/** The side along which four results can be stored at once, given the strides in elements. */
export function outputVector(
  strides: { row: number; outer: number; inner: number; base: readonly number[] },
  rows: number,
  period: number,
): OutputMap["vector"] {
  const divides = (...values: number[]) => values.every((value) => value % 4 === 0);
  if (strides.inner === 1 && divides(strides.row, strides.outer, period, ...strides.base)) {
    return "columns";
  }
  if (strides.row === 1 && divides(strides.inner, strides.outer, rows, ...strides.base)) {
    return "rows";
  }
  return "none";
}

/** What is done to a finished sum before it is stored. */
export interface Finish {
  /** WGSL expression of the bias of a row, or undefined. */
  bias?: (row: string) => string;
  /** Whether `activate` and `activate4` are declared. */
  activation: boolean;
}

/** Stores the thread tile through an {@linkcode OutputMap}. */
export function mappedOutput(
  out: TensorAccess,
  map: OutputMap,
  finish: Finish,
): Pick<OutputStore, "text"> {
  const call = (width: 1 | 4, value: string) =>
    finish.activation ? `activate${width === 4 ? 4 : ""}(${value})` : value;
  const columnOffset = (column: string) =>
    `(${column} / ${map.period}) * ${map.outerStride} + (${column} % ${map.period}) * ${map.innerStride}`;
  return {
    text({ fragmentRows, fragmentColumns, row, column }) {
      const lines: string[] = [`  let out_base = ${map.base};`];
      const say = (line: string) => lines.push(`  ${line}`);
      for (let j = 0; j < fragmentColumns; j++) {
        say(`let column${j} = ${column(j)};`);
        const every = map.vector === "columns" ? 1 : 4;
        for (let x = 0; x < every; x++) {
          say(`let offset${j}_${x} = out_base + ${columnOffset(`(column${j} + ${x}u)`)};`);
        }
      }
      for (let i = 0; i < fragmentRows; i++) {
        say(`let row${i} = ${row(i)};`);
        if (map.vector === "rows") storeRows(i);
        else for (let y = 0; y < 4; y++) storeRow(i, y);
      }
      return lines.join("\n");

      /** Four rows of one column at a time. */
      function storeRows(i: number) {
        say(`if (row${i} < ${map.rows}) {`);
        const bias = finish.bias;
        if (bias) {
          const values = [0, 1, 2, 3].map((y) => bias(`(row${i} + ${y}u)`));
          say(`  let bias = vec4f(${values.join(", ")});`);
        }
        for (let j = 0; j < fragmentColumns; j++) {
          [..."xyzw"].forEach((component, x) => {
            const sums = [0, 1, 2, 3].map((y) => `c${4 * i + y}_${j}.${component}`);
            const value = `vec4f(${sums.join(", ")})${bias ? " + bias" : ""}`;
            const index = `(offset${j}_${x} + row${i} * ${map.rowStride}) / 4u`;
            say(
              `  if (column${j} + ${x}u < ${map.columns}) { ${out.store(index, call(4, value))} }`,
            );
          });
        }
        say("}");
      }

      function storeRow(i: number, y: number) {
        say(`if (row${i} + ${y}u < ${map.rows}) {`);
        if (finish.bias) say(`  let bias = ${finish.bias(`(row${i} + ${y}u)`)};`);
        say(`  let row_offset = (row${i} + ${y}u) * ${map.rowStride};`);
        for (let j = 0; j < fragmentColumns; j++) {
          const sum = `c${4 * i + y}_${j}`;
          if (map.vector === "columns") {
            const value = finish.bias ? `${sum} + vec4f(bias)` : sum;
            const store = out.store(`(offset${j}_0 + row_offset) / 4u`, call(4, value));
            say(`  if (column${j} < ${map.columns}) { ${store} }`);
            continue;
          }
          [..."xyzw"].forEach((component, x) => {
            const value = `${sum}.${component}${finish.bias ? " + bias" : ""}`;
            const store = out.store(`offset${j}_${x} + row_offset`, call(1, value));
            say(`  if (column${j} + ${x}u < ${map.columns}) { ${store} }`);
          });
        }
        say("}");
      }
    },
  };
}
