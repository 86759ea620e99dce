import {
  applyEpilogue,
  epilogueIterations,
  type EpiloguePlace,
  type EpilogueStep,
} from "./epilogue.ts";
import type { TensorAccess } from "./module.ts";
import { type Scalar, typeName } from "../elements/scalar.ts";

/** Where the thread tile lies, as WGSL expressions of the first row and column of each 4x4 fragment. */
export interface FragmentPlaces {
  readonly fragmentRows: number;
  readonly fragmentColumns: number;
  /** The accumulators' type; f32 where absent. */
  readonly sum?: Scalar;
  row(i: number): string;
  column(j: number): string;
  /** Columns from one of a fragment to the next; 1 where absent. */
  readonly columnStep?: number;
}

/** An epilogue: the statements that store the accumulators `c{row}_{fragment column}`. */
export interface OutputStore {
  /** Functions the statements call. */
  readonly declarations: string;
  /** The side along which four results are stored at once. */
  readonly side: "rows" | "columns";
  /** Loop iterations for each value. */
  readonly iterations: number;
  /**
   * @param totals Of sums that come in parts: how the names of the variables begin that {@linkcode totals} declares. They are added,
   *   and the epilogue follows the last part.
   */
  text(places: FragmentPlaces, totals?: string): string;
  /**
   * Declares variables for what was stored of the parts before, and loads them where WGSL's `again` is true; else they are zero. A
   * text of its own, since loads that stand before a barrier are under way behind it. Absent where sums come whole.
   */
  totals?(places: FragmentPlaces, name: string): string;
}

/** What is said of the results of a thread. */
interface ResultVisit {
  /** Begins a block whose results lie within the result where the condition is true. */
  within(condition: string): string;
  /** Of one, in a block of its own. */
  result(value: string, place: EpiloguePlace, conditions: readonly string[]): string;
}

/** Goes over the results of a thread in a fixed order: the statements that find where each one lies, with what is said of it. */
type ResultWalk = (places: FragmentPlaces, visit: ResultVisit) => string;

/** Stores every result that a walk comes by, after the epilogue's steps. */
function walkedOutput(
  walk: ResultWalk,
  out: TensorAccess,
  steps: readonly EpilogueStep[],
): Pick<OutputStore, "text" | "totals"> {
  return {
    text(places, totals) {
      let count = 0;
      return walk(places, {
        within: (condition) => `if (${condition}) {`,
        result(value, place) {
          if (totals === undefined) {
            return out.store(place.offset, applyEpilogue(steps, value, place));
          }
          const sum = `${value} + ${totals}${count++}`;
          if (steps.length === 0) return out.store(place.offset, sum);
          return [
            `var sum = ${sum};`,
            `if (next_step >= end_step) { sum = ${applyEpilogue(steps, "sum", place)}; }`,
            out.store(place.offset, "sum"),
          ].join(" ");
        },
      });
    },
    totals(places, name) {
      const variables: string[] = [];
      // Without branches: a compiler keeps the zeros of the first part in registers through the loop over steps, which has none to spare.
      // What is not there is loaded from the first element, which another thread may be storing, and left aside.
      const loads = walk(places, {
        within: () => "{",
        result(_, { width, offset }, conditions) {
          const type = typeName(out.value, width);
          const variable = `${name}${variables.length}`;
          variables.push(`  var ${variable}: ${type};`);
          const loaded = out.load(`select(0u, ${offset}, there)`);
          return `let there = ${["again", ...conditions].join(" && ")}; ` +
            `${variable} = select(${type}(), ${loaded}, there);`;
        },
      });
      return [...variables, "  {", loads, "  }"].join("\n");
    },
  };
}

/** The side along which four results are one store. */
export type OutputVector = "rows" | "columns" | "none";

/**
 * Offsets of a result in its tensor: row·rowStride + ⌊column / period⌋·outerStride + (column mod
 * period)·innerStride, in elements. With `interleave`, four columns at a time share their place in a period:
 * … + ⌊(column mod period) / 4⌋·innerStride + (column mod 4)·interleave.
 */
export interface OutputMap {
  readonly rows: string;
  readonly columns: string;
  readonly rowStride: string;
  readonly period: string;
  readonly outerStride: string;
  readonly innerStride: string;
  readonly interleave?: string;
  /** Places of a period that are results, the first ones, where not all are. */
  readonly results?: string;
  /** Maps a column of the product to one of the result, called for the first of four; the same where absent. */
  column?(column: string): string;
  /** Offset of the batch and split of this workgroup. */
  readonly base: string;
  readonly vector: OutputVector;
}

/** The side along which four results can be stored at once, given the strides in elements. */
export function outputVector(
  strides: {
    row: number;
    outer: number;
    inner: number;
    interleave?: number;
    base: readonly number[];
  },
  rows: number,
  period: number,
): OutputVector {
  const divides = (...values: number[]) => values.every((value) => value % 4 === 0);
  if (strides.interleave !== undefined) {
    const { row, outer, inner, interleave, base } = strides;
    if (interleave === 1 && divides(row, outer, inner, ...base)) return "columns";
    return row === 1 && divides(outer, inner, interleave, rows, ...base) ? "rows" : "none";
  }
  if (strides.inner === 1 && divides(strides.row, strides.outer, period, ...strides.base)) {
    return "columns";
  }
  if (strides.row === 1 && divides(strides.inner, strides.outer, rows, ...strides.base)) {
    return "rows";
  }
  return "none";
}

/** Stores the thread tile through an {@linkcode OutputMap}, each value after the epilogue's steps. */
export function mappedOutput(
  out: TensorAccess,
  map: OutputMap,
  steps: readonly EpilogueStep[],
): OutputStore {
  const columnOffset = (column: string) =>
    `(${column} / ${map.period}) * ${map.outerStride} + (${column} % ${map.period}) * ${map.innerStride}`;
  return {
    declarations: steps.map(({ declarations }) => declarations).join("\n"),
    side: map.vector === "rows" ? "rows" : "columns",
    iterations: epilogueIterations(steps),
    ...walkedOutput(walk, out, steps),
  };

  function walk(
    { fragmentRows, fragmentColumns, sum = "f32", ...places }: FragmentPlaces,
    visit: ResultVisit,
  ): string {
    const { row, column, columnStep = 1 } = places;
    if (columnStep > 1 && (map.vector === "columns" || map.interleave !== undefined)) {
      throw new Error("Cannot store four columns at once: they lie apart");
    }
    const lines: string[] = [`  let out_base = ${map.base};`];
    const say = (line: string) => lines.push(`  ${line}`);
    const conditions: string[] = [];
    const begin = (condition: string, inner = "") => {
      conditions.push(condition);
      say(inner + visit.within(condition));
    };
    const end = (inner = "") => {
      conditions.pop();
      say(`${inner}}`);
    };
    for (let j = 0; j < fragmentColumns; j++) {
      say(`let column${j} = ${map.column?.(`(${column(j)})`) ?? column(j)};`);
      const every = map.vector === "columns" ? 1 : 4;
      if (map.interleave !== undefined) {
        say(
          `let offset${j}_0 = out_base + (column${j} / ${map.period}) * ${map.outerStride} + ` +
            `((column${j} % ${map.period}) / 4u) * ${map.innerStride};`,
        );
        for (let x = 1; x < every; x++) {
          say(`let offset${j}_${x} = offset${j}_0 + ${x}u * ${map.interleave};`);
        }
        continue;
      }
      for (let x = 0; x < every; x++) {
        say(
          `let offset${j}_${x} = out_base + ${columnOffset(`(column${j} + ${x * columnStep}u)`)};`,
        );
      }
    }
    for (let i = 0; i < fragmentRows; i++) {
      say(`let row${i} = ${row(i)};`);
      if (map.vector === "rows") storeRows(i);
      else for (let y = 0; y < 4; y++) storeRow(i, y);
    }
    return lines.join("\n");

    function store(
      value: string,
      width: 1 | 4,
      place: { row: string; column: string },
      at: string,
      bounded = true,
    ) {
      const kept = map.results === undefined
        ? ""
        : ` && ${place.column} % ${map.period} < ${map.results}`;
      if (bounded) begin(`${place.column} < ${map.columns}${kept}`, "  ");
      else say("  {");
      say(`    let at = ${width === 4 ? `(${at}) / 4u` : at};`);
      const side = map.vector === "rows" ? "rows" : "columns";
      say(`    ${visit.result(value, { width, side, ...place, offset: "at" }, conditions)}`);
      if (bounded) end("  ");
      else say("  }");
    }

    /** Four rows of one column at a time. */
    function storeRows(i: number) {
      begin(`row${i} < ${map.rows}`);
      for (let j = 0; j < fragmentColumns; j++) {
        [..."xyzw"].forEach((component, x) => {
          const sums = [0, 1, 2, 3].map((y) => `c${4 * i + y}_${j}.${component}`);
          const place = { row: `row${i}`, column: `(column${j} + ${x * columnStep}u)` };
          store(
            `${typeName(sum, 4)}(${sums.join(", ")})`,
            4,
            place,
            `offset${j}_${x} + row${i} * ${map.rowStride}`,
          );
        });
      }
      end();
    }

    function storeRow(i: number, y: number) {
      const here = `(row${i} + ${y}u)`;
      begin(`${here} < ${map.rows}`);
      say(`  let row_offset = ${here} * ${map.rowStride};`);
      for (let j = 0; j < fragmentColumns; j++) {
        const value = `c${4 * i + y}_${j}`;
        if (map.vector === "columns") {
          store(value, 4, { row: here, column: `column${j}` }, `offset${j}_0 + row_offset`);
          continue;
        }
        // Interleaved columns are whole fours: one bound for them.
        const together = map.interleave !== undefined;
        if (together) begin(`column${j} < ${map.columns}`, "  ");
        [..."xyzw"].forEach((component, x) => {
          const place = { row: here, column: `(column${j} + ${x * columnStep}u)` };
          store(`${value}.${component}`, 1, place, `offset${j}_${x} + row_offset`, !together);
        });
        if (together) end("  ");
      }
      end();
    }
  }
}
