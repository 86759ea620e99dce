import { lines, range } from "../lists.ts";
import template from "../../../shaders/exchange.wgsl" with { type: "text" };
import { eachSum, type SumName } from "../loop/thread_products.ts";
import { threadPlace } from "../loop/threads.ts";
import type { OutputLayout } from "../variant.ts";
import { render } from "../module.ts";
import {
  type LineLayout,
  sliceGrid,
  type SlicePolicy,
  sliceRowVectors,
  sliceThreads,
  type SumLines,
  sumLines,
  sumLinesOf,
  sumsPerRound,
} from "./policy.ts";
import { type PatchTransform, transformText } from "./patch.ts";
import { type SliceOperands, sliceThreadGrid, sliceTile } from "./tile.ts";

/** What the sums of a sliced product depend on. */
export interface SliceSums extends SliceOperands {
  /** Flush interval in steps: the store then adds where `again` is true; 0 or absent for no flush. */
  readonly partial?: number;
  /** How sums lie in workgroup memory before the output transform, of f32 that is not stored in parts; as tuned where absent. */
  readonly outputLayout?: OutputLayout;
}

/** Stores the transformed results of four columns of a row. */
export interface SliceStore {
  readonly declarations: string;
  /**
   * Statements; `row` and `column` (of the first of four) are in scope as u32, and where sums are stored in parts
   * `again`: whether a part is there already.
   */
  text(outputs: readonly string[]): string;
}

/** A round of the exchange of sums through workgroup memory. */
export interface ExchangeRound {
  /** Statements that store a thread's sums. */
  readonly stores: string;
  /** Declares `row` and `column`, where `position` lies in the result, and what `load` takes. */
  readonly place: string;
}

/** The exchange of sums, as text: from threads that multiply one slice to threads that transform all slices. */
export interface Exchange {
  /** Declares what stores of all rounds take. */
  readonly begin: string;
  readonly rounds: readonly ExchangeRound[];
  /** Vectors of a slice in a round. */
  readonly positions: number;
  /** The sum of a slice at `position`. */
  load(slice: number): string;
}

/** Transforms a vector of each slice's sums and stores the results. */
export function resultsText(
  slices: number,
  output: PatchTransform,
  store: SliceStore,
  sum: (slice: number) => string,
): string {
  const columns = output.columns[0]!.length;
  const text = transformText(output, "y", (i, j) => `m${i * columns + j}`, "vec4f");
  return lines(
    range(slices).map((slice) => `      let m${slice} = ${sum(slice)};`),
    text.statements,
    store.text(text.outputs),
  );
}

/** The epilogue of threads with all slices: each transforms and stores its own sums. */
export function ownSumsText(
  shape: SliceSums,
  policy: SlicePolicy,
  output: PatchTransform,
  store: SliceStore,
  sumIndex: SumName,
): string {
  const grid = sliceThreadGrid(policy, shape);
  return lines(eachSum(policy, (row, j) =>
    lines(
      "  {",
      "      let of_y = ty;",
      `      let of_row = ${row}u;`,
      rowText(policy),
      `      let column = first_column + (tx + ${j * grid.columns}u) * 4u;`,
      resultsText(
        shape.slices,
        output,
        store,
        (slice) => `c${sumIndex(slice * policy.threadRows + row, j)}`,
      ),
      "  }",
    )));
}

/** Workgroup memory of its own for f32 sums, where the tile cannot hold them or has another layout. */
export function sumsDeclaration(
  { slices, scalar, outputLayout = "threads" }: SliceSums,
  policy: SlicePolicy,
): string[] {
  if (policy.allSlices) return [];
  if (outputLayout !== "threads" && outputLayout !== "reference") {
    const { elements } = linesOf(policy, outputLayout);
    return [`var<workgroup> sums: array<array<vec2f, ${elements}>, ${slices}>;`];
  }
  if (scalar === "f32") return [];
  return [
    `var<workgroup> sums: array<array<array<vec4f, ${sliceRowVectors(policy, [])}>, ` +
    `${sumLines(policy, scalar)}>, ${slices}>;`,
  ];
}

/** The epilogue of threads with one slice: round by round, sums are exchanged through workgroup memory, transformed and stored. */
export function exchangeText(
  shape: SliceSums,
  policy: SlicePolicy,
  output: PatchTransform,
  store: SliceStore,
  sumIndex: SumName,
): string {
  const sums = eachSum(policy, (row, j) => `c${sumIndex(row, j)}`);
  const { begin, rounds, positions, load } = sumExchange(shape, policy, sums);
  return begin + render(template, {
    rounds,
    positions,
    threads: sliceThreads(policy) * shape.slices,
    results: resultsText(shape.slices, output, store, load),
  });
}

/** How sums of a thread, vectors of four columns by these names, rows first, pass in the layout that is asked for. */
export function sumExchange(
  shape: SliceSums,
  policy: SlicePolicy,
  sums: readonly string[],
): Exchange {
  const { outputLayout = "threads" } = shape;
  return outputLayout === "threads"
    ? byThreads(shape, policy, sums)
    : byLines(shape, policy, outputLayout, sums);
}

/** Vectors of sums as threads follow each other: neighbours store and load neighbouring vectors, without gaps. */
function byThreads(
  shape: SliceSums,
  policy: SlicePolicy,
  sums: readonly string[],
): Exchange {
  const perSlice = sliceThreads(policy);
  const grid = sliceThreadGrid(policy, shape);
  const round = sumsPerRound(policy, shape.scalar);
  const width = sliceRowVectors(policy, []);
  const fragments = policy.threadColumns / 4;
  const tile = sliceTile(policy, shape);
  /** Where the vector of a slice lies in a line. */
  const at = (slice: string | number, line: string, vector: string) =>
    shape.scalar === "f32"
      ? `${tile.slice(slice)}${tile.row(line)}${tile.vector(vector)}`
      : `sums[${slice}][${line}][${vector}]`;
  const roundFrom = (first: number): ExchangeRound => ({
    stores: lines(
      sums.slice(first, first + round).map((sum, v) => [
        "    {",
        `      let at = ${v * perSlice}u + u;`,
        `      ${at("slice", `at / ${width}u`, `at % ${width}u`)} = ${sum};`,
        "    }",
      ]),
    ),
    place: lines(
      `      let member = position % ${perSlice}u;`,
      `      let sum = ${first}u + position / ${perSlice}u;`,
      threadPlace(grid, "member", "of_", ["of_lane", "of_warp"]),
      `      let of_row = sum / ${fragments}u;`,
      rowText(policy),
      `      let column = first_column + (of_x + (sum % ${fragments}u) * ${grid.columns}u) * 4u;`,
      `      let line = position / ${width}u;`,
      `      let vector = position % ${width}u;`,
    ),
  });
  return {
    begin: "",
    rounds: range(sums.length / round).map((i) => roundFrom(i * round)),
    positions: perSlice * round,
    load: (slice) => at(slice, "line", "vector"),
  };
}

/** Sums as rows of the result, or pairs of them, lie in lines ({@linkcode SumLines}). */
function byLines(
  shape: SliceSums,
  policy: SlicePolicy,
  layout: LineLayout,
  sums: readonly string[],
): Exchange {
  const own = linesOf(policy, layout);
  const firsts = range(policy.threadRows / own.rows).map((i) => i * own.rows);
  return layout === "reference"
    ? byRows(shape, policy, own, sums, firsts)
    : byPairs(policy, own, sums, firsts);
}

/**
 * The reference: rows of the result in vectors, of every other row of threads in a round. The threads of the others, half of each
 * warp, rest.
 */
function byRows(
  shape: SliceSums,
  policy: SlicePolicy,
  { rows, lines: count, pairs, width: lineWidth, stride }: SumLines,
  sums: readonly string[],
  firsts: readonly number[],
): Exchange {
  const { columns } = sliceGrid(policy);
  const width = sliceRowVectors(policy, []);
  const tile = sliceTile(policy, shape);
  const element = `${tile.row(`at / ${width}u`)}${tile.vector(`at % ${width}u`)}`;
  const round = (first: number, half: number): ExchangeRound => ({
    stores: lines(
      `    if (ty % 2u == ${half}u) {`,
      eachOf(policy, rows, (row, j) => [
        "      {",
        `        let at = (${row * pairs}u + ty / 2u) * ${stride}u + tx + ${j * columns}u;`,
        `        ${tile.slice("slice")}${element} = ${sumAt(policy, sums, first + row, j)};`,
        "      }",
      ]),
      "    }",
    ),
    place: lines(
      `      let place = position % ${lineWidth}u;`,
      `      let line = position / ${lineWidth}u;`,
      `      let at = line * ${stride}u + place;`,
      `      let of_y = (line % ${pairs}u) * 2u + ${half}u;`,
      `      let of_row = ${first}u + line / ${pairs}u;`,
      rowText(policy),
      "      let column = first_column + place * 4u;",
    ),
  });
  return {
    begin: "",
    rounds: [0, 1].flatMap((half) => firsts.map((first) => round(first, half))),
    positions: count * lineWidth,
    load: (slice) => `${tile.slice(slice)}${element}`,
  };
}

/** STS64: pairs of rows in halves of vectors, which all threads store to. */
function byPairs(
  policy: SlicePolicy,
  { rows, lines: count, pairs, run, width, stride, turn }: SumLines,
  sums: readonly string[],
  firsts: readonly number[],
): Exchange {
  const { columns } = sliceGrid(policy);
  const half = width / 2;
  const at = (line: string, place: string) =>
    turn === 0
      ? `${line} * ${stride}u + ${place}`
      : `${line} * ${stride}u + (${place} + ${line} * ${turn}u) % ${half}u`;
  const round = (first: number): ExchangeRound => ({
    stores: lines(eachOf(policy, rows, (row, j) => [
      "    {",
      `      let line = ${row * pairs}u + ty / 2u;`,
      `      let at = ${at("line", `(pair_place + ${2 * j * columns}u)`)};`,
      `      sums[slice][at] = ${sumAt(policy, sums, first + row, j)}.xy;`,
      `      sums[slice][at + ${half}u] = ${sumAt(policy, sums, first + row, j)}.zw;`,
      "    }",
    ])),
    place: lines(
      `      let place = position % ${half}u;`,
      `      let line = position / ${half}u;`,
      `      let at = ${at("line", "place")};`,
      `      let of_y = (line % ${pairs}u) * 2u + (place / ${run}u) % 2u;`,
      `      let of_row = ${first}u + line / ${pairs}u;`,
      rowText(policy),
      `      let column = first_column + ((place / ${2 * run}u) * ${run}u + place % ${run}u) * 4u;`,
    ),
  });
  return {
    begin: `  let pair_place = (tx / ${run}u * 2u + ty % 2u) * ${run}u + tx % ${run}u;\n`,
    rounds: firsts.map(round),
    positions: count * half,
    load: (slice) => `vec4f(sums[${slice}][at], sums[${slice}][at + ${half}u])`,
  };
}

/** Declares `row` of the result, of a thread's row `of_row` and the row of threads `of_y`. */
function rowText(policy: SlicePolicy): string {
  return `      let row = first_row + (of_y + (of_row / 4u) * ${
    sliceGrid(policy).rows
  }u) * 4u + of_row % 4u;`;
}

/** Lines for each vector of the first `rows` of a thread. */
function eachOf(
  { threadColumns }: SlicePolicy,
  rows: number,
  text: (row: number, fragment: number) => string[],
): string[] {
  return eachSum({ threadRows: rows, threadColumns }, (row, j) => text(row, j).join("\n"));
}

/** A thread's sum of a row and a vector of its columns, rows first. */
function sumAt(
  { threadColumns }: SlicePolicy,
  sums: readonly string[],
  row: number,
  fragment: number,
): string {
  return sums[row * threadColumns / 4 + fragment]!;
}

/** The lines of a policy that has them: planning refuses the others. */
function linesOf(policy: SlicePolicy, layout: LineLayout): SumLines {
  const own = sumLinesOf(policy, layout);
  if (own === undefined) throw new Error(`The policy has no sums in the layout ${layout}`);
  return own;
}
