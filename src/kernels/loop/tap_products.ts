/** Products on matrix units of taps that share what they load: sliding windows, and places that matrices share cyclically. */
import { range } from "../lists.ts";
import { tapReach, type TapRing, tapsInRow } from "../loader.ts";
import type { LoopCarried } from "./mainloop.ts";
import type { CyclicPlaces, MatrixOperandTile } from "./matrix_tile.ts";

/** WGSL that adds the product of matrices `a` and `b` to a sum of a subgroup, by its row and column of matrices. */
type Multiply = (row: number, column: number, a: string, b: string) => string;

/** A subgroup's matrices along one side of a tile: places of each, and how many. */
interface SubgroupSide {
  readonly tile: MatrixOperandTile;
  readonly each: number;
  readonly count: number;
}

/** The products of a step of a sliding window, which uses what earlier steps loaded. */
interface RingProducts {
  /** Declares the matrices that are carried over. */
  readonly begin: string[];
  /** Carries the tile's matrices over to the next step, for one matrix's depth. */
  next(at: number): string[];
  /** Multiplies them with the given taps, all by default, and carries them over. */
  multiply(at: number, taps?: readonly number[]): string[];
}

/**
 * A step loads the matrices of its own tile, for its last tap. The other taps use those of earlier steps, which stay in registers: with
 * three taps a third of the loads.
 *
 * @param deep Matrices along the depth of a step.
 */
export function ringProducts(
  ring: TapRing,
  rows: number,
  { tile, each, count }: SubgroupSide,
  deep: number,
  multiply: Multiply,
): RingProducts {
  const { taps, dilation } = ring;
  const all = (length: number) => range(length);
  const blocks = all(count / taps);
  const reach = tapReach(ring);
  const name = (block: number, at: number, back: number) =>
    back === 0 ? `b${block}` : `b${block}_${at}_back${back}`;
  const load = (block: number, at: number) =>
    `      let ${name(block, at, 0)} = ${tile.load(block * taps * each, at)};`;
  const keep = (block: number, at: number) =>
    all(reach).map((i) => reach - i).map((back) =>
      `      ${name(block, at, back)} = ${name(block, at, back - 1)};`
    );
  return {
    begin: all(deep).flatMap((at) =>
      blocks.flatMap((block) =>
        all(reach).map((i) => `  var ${name(block, at, i + 1)}: ${tile.type};`)
      )
    ),
    next: (at) => blocks.flatMap((block) => [load(block, at), ...keep(block, at)]),
    multiply: (at, taken = all(taps)) =>
      blocks.flatMap((block) => [
        load(block, at),
        ...taken.flatMap((tap) => {
          const b = name(block, at, (taps - 1 - tap) * dilation);
          return all(rows).map((row) => multiply(row, block * taps + tap, `a${row}`, b));
        }),
        ...keep(block, at),
      ]),
  };
}

/**
 * Products of the steps at a row's ends, where not all taps lie inside; `text` gives those of the taps that do. Some step between has all.
 */
export function rowEnds(
  ring: TapRing,
  text: (taps: readonly number[]) => string,
): LoopCarried["rowEnds"] {
  if (ring.row === undefined) return { before: [], after: [] };
  const { steps } = ring.row;
  const places = range(steps).map((step) => tapsInRow(ring, step));
  const whole = (taps: readonly number[]) => taps.length === ring.taps;
  return {
    before: places.slice(0, places.findIndex(whole)).map(text),
    after: places.slice(places.findLastIndex(whole) + 1).map(text),
  };
}

/**
 * Products of a row of taps, one matrix deep: a subgroup's matrices share places cyclically, so that a tap reuses all of the previous
 * tap's matrices but the first. Left matrices are loaded one at a time, because right ones stay in registers.
 */
export function cyclicProducts(
  left: SubgroupSide,
  right: SubgroupSide,
  { row: { taps, dilation }, deep }: CyclicPlaces,
  at: number,
  multiply: Multiply,
): string[] {
  const loaded = new Set<number>();
  return range(taps).map((tap) => {
    const met = range(right.count).map((column) => column + tap * dilation);
    const fresh = met.filter((matrix) => !loaded.has(matrix));
    fresh.forEach((matrix) => loaded.add(matrix));
    return [
      ...fresh.map((matrix) =>
        `      let b${matrix} = ${right.tile.load(matrix * right.each, at)};`
      ),
      ...range(left.count).map((row) => {
        const a = `a${tap}_${row}`;
        return [
          `      let ${a} = ${left.tile.load(row * left.each, tap * deep + at)};`,
          ...met.map((matrix, column) => multiply(row, column, a, `b${matrix}`)),
        ];
      }).flat(),
    ];
  }).flat();
}
