import { type ResultTiles, tileNumbers } from "../problem/plan_arithmetic.ts";

/** How the outputs of a result are grouped: a fault shows in a channel, an image, or a tile of the kernel's product. */
export interface Grouping extends ResultTiles {
  /** Axis of the canonical shape that rows of the product run along: K, or C of an input gradient. */
  readonly rowAxis: 0 | 1;
  /** What an entry of the row axis, and of the other of the first two axes, is called. */
  readonly names: readonly [row: string, other: string];
  /** Whether neighbouring columns of the product are of neighbouring entries of the other axis (chwn, krsc). */
  readonly otherInner: boolean;
}

/** Rows and columns of a block of the product: 1024 outputs that one workgroup made. */
const BLOCK = 32;

/** Squares of errors over their scales, added up by group. */
interface GroupErrors {
  /** Adds the output at canonical coordinates `at`, whose flat index is `index`. */
  add(at: readonly number[], index: number, ratio: number): void;
  /** Groups of at least `least` outputs. */
  list(least: number): ErrorGroup[];
}

/** The errors of a group. */
export interface ErrorGroup {
  /** "channel 5", "image 2", "the tile of channels 32 to 63 ..." */
  readonly name: string;
  /** Whether it is an entry of the row axis: a channel, or a row of a product. */
  readonly isRow: boolean;
  /** Outputs. */
  readonly count: number;
  /** Of them, those whose errors are independent: outputs of a Winograd tile share theirs. */
  readonly independent: number;
  /** RMS of error over scale. */
  readonly rms: number;
  /** The largest error over its scale. */
  readonly largest: number;
  /** Canonical flat index of that output. */
  readonly largestIndex: number;
  /** Whether an output is of it. */
  has(at: readonly number[]): boolean;
}

interface Kind {
  readonly count: number;
  of(at: readonly number[]): number;
  name(group: number): string;
}

/** Makes an empty table for results of a canonical shape. */
export function groupErrors(shape: readonly number[], grouping: Grouping): GroupErrors {
  const kinds = kindsOf(shape, grouping);
  const results = grouping.tile.reduce((all, one) => all * one, 1);
  const tables = kinds.map(({ count }) => ({
    squares: new Float64Array(count),
    counts: new Float64Array(count),
    largest: new Float64Array(count),
    indices: new Float64Array(count),
  }));
  return {
    add(at, index, ratio) {
      for (let i = 0; i < kinds.length; i++) {
        const group = kinds[i]!.of(at);
        const table = tables[i]!;
        table.squares[group]! += ratio * ratio;
        table.counts[group]!++;
        if (ratio > table.largest[group]!) {
          table.largest[group] = ratio;
          table.indices[group] = index;
        }
      }
    },
    list(least) {
      return kinds.flatMap((kind, i) => {
        const { squares, counts, largest, indices } = tables[i]!;
        const groups: ErrorGroup[] = [];
        counts.forEach((count, group) => {
          if (count < least) return;
          groups.push({
            get name() {
              return kind.name(group);
            },
            isRow: i === 0,
            largest: largest[group]!,
            largestIndex: indices[group]!,
            count,
            independent: Math.max(1, count / results),
            rms: Math.sqrt(squares[group]! / count),
            has: (at) => kind.of(at) === group,
          });
        });
        return groups;
      });
    },
  };
}

function kindsOf(shape: readonly number[], grouping: Grouping): Kind[] {
  const { rowAxis, names, otherInner, tile } = grouping;
  const tiles = tileNumbers(shape.slice(2), grouping);
  const otherAxis = 1 - rowAxis;
  const rows = shape[rowAxis] ?? 1, others = shape[otherAxis] ?? 1;
  const results = tile.reduce((all, one) => all * one, 1);
  // Tiles of Winograd are columns of the product, each of several outputs.
  const width = Math.max(1, Math.ceil(BLOCK / results));
  const columnBlocks = Math.ceil(others * tiles.count / width);
  const column = (at: readonly number[]) => {
    const place = tiles.of(at, 2);
    return otherInner ? place * others + at[otherAxis]! : at[otherAxis]! * tiles.count + place;
  };
  const axis = (which: number, name: string): Kind => ({
    count: shape[which] ?? 1,
    of: (at) => at[which]!,
    name: (group) => `${name} ${group}`,
  });
  return [
    axis(rowAxis, names[0]),
    axis(otherAxis, names[1]),
    {
      count: Math.ceil(rows / BLOCK) * columnBlocks,
      of: (at) => Math.floor(at[rowAxis]! / BLOCK) * columnBlocks + Math.floor(column(at) / width),
      name: (group) => {
        const first = Math.floor(group / columnBlocks) * BLOCK;
        const from = group % columnBlocks * width;
        return `the tile of ${names[0]}s ${first} to ${Math.min(rows, first + BLOCK) - 1} and ` +
          `columns ${from} to ${Math.min(others * tiles.count, from + width) - 1}`;
      },
    },
  ];
}
