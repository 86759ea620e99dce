import type { OutputLayout } from "../main_loop_variant.ts";
import { sliceGrid, type SlicePolicy, sliceRowVectors } from "./policy.ts";

/** The layouts that openCNN compares: sums lie in lines of the result's rows, and not as threads follow each other. */
export type LineLayout = Exclude<OutputLayout, "threads">;

/**
 * Where a slice's sums lie in one round of such a layout. A line is a row of the result in vectors of four columns (`reference`),
 * or a pair of rows in halves of vectors: the first two columns of each, then the last two. Runs of `run` vectors of both rows take
 * turns there, which are what neighbouring threads hold.
 */
export interface SumLines {
  /** Rows of each storing thread in a round. */
  readonly rows: number;
  /** Lines in a round, and how many of each of a thread's rows: one for each pair of rows of threads. */
  readonly lines: number;
  readonly pairs: number;
  /** Threads that lie side by side. */
  readonly run: number;
  /** Elements of a line: `vec4f` of the reference, else `vec2f`; those from a line to the next. */
  readonly width: number;
  readonly stride: number;
  /** Elements by which both halves of a line are turned against those of the line before, in place of padding. */
  readonly turn: number;
  /** Elements of a round. */
  readonly elements: number;
}

/** Elements of 16 and of 8 bytes in the 32 banks of workgroup memory. */
const BANKS = { reference: 8, pairs: 16 } as const;

/**
 * The lines of a policy's sums; undefined if it has none: its rows of threads are odd, or (`reference`, which lies in the tile) a
 * row of each thread takes more than the tile. Pairs have memory of their own, since WGSL's workgroup memory has one type: as many
 * rows as take no more than half of the tile's bytes, one at least.
 *
 * Padding is what keeps stores of neighbouring threads in different banks: lines that they store to at once, each a `run`, follow
 * each other in the banks. With the papers' threads, two side by side on 32 columns, that is their padding of the reference, 8
 * numbers for each 32. Turning does the same where half a line fills the banks: from 32 columns on.
 */
export function sumLinesOf(policy: SlicePolicy, layout: LineLayout): SumLines | undefined {
  const grid = sliceGrid(policy);
  if (grid.rows % 2 !== 0) return undefined;
  const vectors = policy.columns / 4;
  const run = grid.columns % 8 === 0 ? 8 : grid.columns;
  const pairs = grid.rows / 2;
  const [width, step, banks] = layout === "reference"
    ? [vectors, run, BANKS.reference] as const
    : [4 * vectors, 2 * run, BANKS.pairs] as const;
  const padding = ((step - width) % banks + banks) % banks;
  const compact = layout === "sts64-compact";
  const stride = width + (compact ? 0 : padding);
  const elements = (rows: number) => (rows * pairs - 1) * stride + width;
  // The tile in vectors, or its half in halves of them.
  const room = policy.depth * sliceRowVectors(policy, []);
  let rows = policy.threadRows;
  while (rows > 1 && (policy.threadRows % rows !== 0 || elements(rows) > room)) rows--;
  if (layout === "reference" && elements(rows) > room) return undefined;
  return {
    rows,
    lines: rows * pairs,
    pairs,
    run,
    width,
    stride,
    turn: compact ? padding : 0,
    elements: elements(rows),
  };
}

/** Bytes of workgroup memory that a slice's sums have of their own in a layout. */
export function sumLinesBytes(policy: SlicePolicy, layout: OutputLayout): number {
  if (layout === "threads" || layout === "reference") return 0;
  return 8 * (sumLinesOf(policy, layout)?.elements ?? 0);
}
