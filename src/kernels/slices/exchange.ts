import { lines, range } from "../lists.ts";
import { BARRIER, block, type Statement, text } from "../ir/tree.ts";
import { eachSum, type SumName } from "../loop/thread_products.ts";
import { threadPlace } from "../loop/threads.ts";
import {
  sliceGrid,
  type SlicePolicy,
  sliceRowVectors,
  sliceThreads,
  sumLines,
  sumsPerRound,
} from "./policy.ts";
import { type PatchTransform, transformText } from "./patch.ts";
import { type SliceOperands, sliceThreadGrid, sliceTile } from "./tile.ts";

/** What the sums of a sliced product depend on. */
export interface SliceSums extends SliceOperands {
  /** Flush interval in steps: the store then adds where `again` is true; 0 or absent for no flush. */
  readonly partial?: number;
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
  const { statements, outputs } = transformText(
    output,
    "y",
    (i, j) => `m${i * columns + j}`,
    "vec4f",
  );
  return lines(
    range(slices).map((slice) => `      let m${slice} = ${sum(slice)};`),
    statements,
    store.text(outputs),
  );
}

/** The epilogue of threads with all slices: each transforms and stores its own sums. */
export function ownSums(
  shape: SliceSums,
  policy: SlicePolicy,
  output: PatchTransform,
  store: SliceStore,
  sumIndex: SumName,
): Statement[] {
  const grid = sliceThreadGrid(policy, shape);
  return eachSum(policy, (row, j) => {
    const sum = (slice: number) => `c${sumIndex(slice * policy.threadRows + row, j)}`;
    return block([
      text("      let of_y = ty;"),
      text(`      let of_row = ${row}u;`),
      text(rowText(policy)),
      text(`      let column = first_column + (tx + ${j * grid.columns}u) * 4u;`),
      text(resultsText(shape.slices, output, store, sum)),
    ]);
  });
}

/** Workgroup memory of its own for f32 sums, where the tile cannot hold them. */
export function sumsDeclaration({ slices, scalar }: SliceSums, policy: SlicePolicy): string[] {
  if (policy.allSlices || scalar === "f32") return [];
  return [
    `var<workgroup> sums: array<array<array<vec4f, ${sliceRowVectors(policy, [])}>, ` +
    `${sumLines(policy, scalar)}>, ${slices}>;`,
  ];
}

/** The epilogue of threads with one slice: round by round, sums are exchanged through workgroup memory, transformed and stored. */
export function exchangedSums(
  shape: SliceSums,
  policy: SlicePolicy,
  output: PatchTransform,
  store: SliceStore,
  sumIndex: SumName,
): Statement[] {
  const sums = eachSum(policy, (row, j) => `c${sumIndex(row, j)}`);
  const { rounds, positions, load } = sumExchange(shape, policy, sums);
  const results = resultsText(shape.slices, output, store, load);
  return exchangeRounds(rounds, positions, sliceThreads(policy) * shape.slices, results);
}

/** Each round: sums are stored, then loaded, transformed and stored by so many threads. */
export function exchangeRounds(
  rounds: readonly ExchangeRound[],
  positions: number,
  threads: number,
  results: string,
): Statement[] {
  const turns = range(Math.ceil(positions / threads)).map((turn) => turn * threads);
  return rounds.map(({ stores, place }, index) =>
    block([
      text(stores),
      BARRIER,
      ...turns.map((first) =>
        block(
          [text(`      let position = t + ${first}u;`), text(place), text(results)],
          first + threads <= positions ? "" : `if (t < ${positions - first}u)`,
        )
      ),
      ...(index + 1 < rounds.length ? [BARRIER] : []),
    ])
  );
}

/**
 * How sums of a thread, vectors of four columns by these names, rows first, pass: as threads follow each other, so that neighbours store
 * and load neighbouring vectors, without gaps.
 */
export function sumExchange(
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
    rounds: range(sums.length / round).map((i) => roundFrom(i * round)),
    positions: perSlice * round,
    load: (slice) => at(slice, "line", "vector"),
  };
}

/** Declares `row` of the result, of a thread's row `of_row` and the row of threads `of_y`. */
function rowText(policy: SlicePolicy): string {
  return `      let row = first_row + (of_y + (of_row / 4u) * ${
    sliceGrid(policy).rows
  }u) * 4u + of_row % 4u;`;
}
