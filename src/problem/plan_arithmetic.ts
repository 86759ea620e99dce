/** F(n,r) along one spatial axis; n = r = 1 where the axis is not tiled. */
export interface AxisTile {
  /** Results of a tile along the axis. */
  readonly n: number;
  /** Taps of the filter that a tile has along it. */
  readonly r: number;
}

/** Winograd's tiles of a plan, or of one of its kernels. */
export interface TileShare {
  /** One entry a spatial axis. */
  readonly axes: readonly AxisTile[];
  /** Backward-filter with several kernels: the places of the output gradient that this one takes along a spatial axis. */
  readonly columns?: { readonly axis: number; readonly first: number; readonly count: number };
}

/** What operands are rounded to, to the nearest but where they are cut off. */
export type OperandRounding = "f32" | "tf32" | "tf32-truncated" | "f16" | "bf16";

/**
 * How a plan's sums are rounded: what computing the same outputs in simulated arithmetic needs (`src/simulate`). Products
 * are of the transformed domain where there are tiles.
 */
export interface PlanArithmetic {
  /** Products that one accumulator adds up; all where absent. */
  readonly chain?: number;
  /**
   * Products whose chains are added up one to the next, before segments are. All where absent. Compilers drop Kahan's
   * compensation of these sums (LLVM on lavapipe does), so none is counted on.
   */
  readonly segment?: number;
  /** Whether chains meet before the output transform (`products`, where absent) or after it. */
  readonly fold?: "products" | "results";
  /** Whether the channels of a tap are neighbours in the order of the products, or (`taps`) the taps of a channel. */
  readonly inner?: "channels" | "taps";
  /** Products are dealt to so many lanes in turn, and summed one lane after the other; in their own order where absent. */
  readonly lanes?: number;
  /** What operands are rounded to before anything else; they are used as they are where absent. */
  readonly operands?: OperandRounding;
  /** What results are stored in, where that is not what the subject says. */
  readonly results?: "f16" | "bf16";
  /** Whether plain sums begin with what is added to them, a bias or C, to which it is added last where absent. */
  readonly begin?: "added";
  /** What products are summed in; `f16` chains of `chain` products are added to f32. f32 where absent. */
  readonly sums?: "f32" | "f16" | "f64" | "i32";
  /**
   * What transformed data is rounded to before it is multiplied; f32 where absent. Of f16 the transforms' rows are scaled by
   * powers of two (`power-of-two`).
   */
  readonly transformed?: Exclude<OperandRounding, "f32">;
  /** Products that a matrix unit adds at once; absent where threads add them one by one. */
  readonly unit?: number;
  /**
   * Operands in f32 that the unit multiplies as two halves each, in three products (`f16x3`), or tiles by Fourier transforms (`fft`);
   * as they are where absent.
   */
  readonly math?: "f16x3" | "fft";
  /** Of halves: how high ones of the operand whose places are the results' are rounded; to the nearest where absent. */
  readonly highs?: "nearest" | "away";
  /** Of halves: by how much results are enlarged, since units cut sums off, in units of 2^-23; 0 where absent. */
  readonly drift?: number;
  /** Products of a result from which on it is enlarged by so much, fewer by as much less; all where absent. */
  readonly driftLength?: number;
  /** Of halves of transformed data: what of the images has a power of two of its own, their tiles or (where absent) they themselves. */
  readonly scaled?: "tiles";
  /** Winograd's tiles, one entry a kernel; plain products where absent. */
  readonly tiles?: readonly TileShare[];
}

/** How Winograd's tiles lie on a result. */
export interface ResultTiles {
  /** Outputs of a tile along the spatial axes; 1 where there is none. */
  readonly tile: readonly number[];
  /** How far apart they stand along each axis; 1 where absent. */
  readonly apart?: readonly number[];
}

/** Tiles of `n` places of an axis, which stand `apart`: so many tiles begin side by side, some of them beyond the end. */
export function tileCount(size: number, n: number, apart: number): number {
  return n === 1 ? size : apart * Math.ceil(Math.ceil(size / apart) / n);
}

/** The tile that has a place. */
export function tileOf(place: number, n: number, apart: number): number {
  return Math.floor(Math.floor(place / apart) / n) * apart + place % apart;
}

/** The first place of a tile. */
export function tileStart(tile: number, n: number, apart: number): number {
  return Math.floor(tile / apart) * n * apart + tile % apart;
}

/** A result's tiles, numbered. */
interface TileNumbers {
  readonly count: number;
  /** The number of the tile that has an output; its place begins so many coordinates on. */
  of(place: readonly number[], first?: number): number;
}

/** Numbers the tiles of a result of so many places along its spatial axes. */
export function tileNumbers(
  sizes: readonly number[],
  { tile, apart }: ResultTiles,
): TileNumbers {
  const extents = sizes.map((_, d) => tile[d] ?? 1);
  const steps = sizes.map((_, d) => apart?.[d] ?? 1);
  const counts = sizes.map((size, d) => tileCount(size, extents[d]!, steps[d]!));
  return {
    count: counts.reduce((all, one) => all * one, 1),
    // No copies: it is called for each of millions of outputs.
    of(place, first = 0) {
      let number = 0;
      for (let d = 0; d < counts.length; d++) {
        number = number * counts[d]! + tileOf(place[first + d]!, extents[d]!, steps[d]!);
      }
      return number;
    },
  };
}
