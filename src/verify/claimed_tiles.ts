/** Winograd's tiles as claims name them. */
import { InputRangeError, InputTypeError } from "../errors.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import type { AxisTile, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { formatTile, parseTile } from "../winograd/tile.ts";

/** A way to compute a result that a claim allows. */
export interface Way {
  /** What it is called in messages: `f32, one sum`. */
  readonly name: string;
  readonly arithmetic: PlanArithmetic;
}

const WHOLE: AxisTile = { n: 1, r: 1 };

/**
 * The ways of a named algorithm: `winograd F(4x4,3x3)` or `fft`.
 *
 * @throws {TypeError | SyntaxError} for other words, or a tile of other axes than the problem has.
 * @throws {RangeError} for a problem that has strides or dilations.
 */
export function algorithmTiles(text: string, problem: ConvProblem | undefined): readonly Way[] {
  if (/^fft$/i.test(text)) return fftTiles(problem);
  const [, tileText] = /^winograd\s*(f\(.*\))$/i.exec(text) ?? [];
  if (tileText === undefined) {
    throw new InputTypeError(
      `Cannot verify: there is no algorithm "${text}", expected winograd F(4x4,3x3) or fft`,
    );
  }
  expectTileable("Winograd's tiles", problem);
  const { n, r } = parseTile(tileText, 3);
  const axes = problem.filterSize.length;
  if (n.length > axes) {
    throw new InputTypeError(
      `Cannot verify: ${formatTile({ n, r })} has ${n.length} axes, the problem has ${axes}`,
    );
  }
  return [tileWay(axes, n.map((size, axis) => ({ n: size, r: r[axis]! })))];
}

/** The ways of any algorithm in f32 beside plain sums; none where it has no tiles. */
export function anyTiles(problem: ConvProblem | undefined): readonly Way[] {
  if (problem === undefined || !isUnitStep(problem)) return [];
  return [...winogradTilesUpTo(ANY_POINTS, problem), ...fftTiles(problem)];
}

/** Points of the largest Winograd tile along an axis that libraries take in f32. */
const ANY_POINTS = 8;

/** All tiles of the filter's size of so many points along an axis, the largest first. */
function winogradTilesUpTo(most: number, problem: ConvProblem): readonly Way[] {
  const { filterSize, op } = problem;
  const ways: Way[] = [];
  for (let alpha = most; alpha >= 4; alpha -= 2) {
    const tiles = filterSize.map((taps): AxisTile => {
      const other = alpha - taps + 1;
      if (taps === 1) return WHOLE;
      return op === "bwd-filter" ? { n: taps, r: other } : { n: other, r: taps };
    });
    const fits = tiles.every((tile) => tile === WHOLE || (tile.n > 1 && tile.r > 1));
    if (fits && tiles.some((tile) => tile !== WHOLE)) ways.push(tileWay(filterSize.length, tiles));
  }
  return ways;
}

/** Sizes of Fourier transforms along an axis by the number of axes: usual tiles, and the largest that are simulated. */
const FFT_SIZES = [[128, 512], [32, 64], [16, 16]] as const;

/**
 * The ways of Fourier transforms: of the whole result at once where that is small, and of tiles.
 *
 * @throws {TypeError} for products, and {RangeError} for a problem that has strides or dilations.
 */
export function fftTiles(problem: ConvProblem | undefined): readonly Way[] {
  expectTileable("Fourier transforms", problem);
  const { filterSize, inputSize, outputSize, op } = problem;
  const [usual, most] = FFT_SIZES[filterSize.length - 1]!;
  const way = (limit: number): Way => {
    const axes = filterSize.map((taps, axis): AxisTile => {
      const whole = op === "fwd" ? outputSize[axis]! : op === "bwd-data" ? inputSize[axis]! : taps;
      const summed = op === "bwd-filter" ? outputSize[axis]! : taps;
      const size = Math.min(limit, 2 ** Math.ceil(Math.log2(whole + summed - 1)));
      if (op === "bwd-filter") return { n: taps, r: Math.max(1, size - taps + 1) };
      return { n: Math.max(1, size - taps + 1), r: taps };
    });
    const sizes = axes.map(({ n, r }) => n + r - 1);
    return { name: `fft of ${sizes.join("x")}`, arithmetic: { math: "fft", tiles: [{ axes }] } };
  };
  const [small, large] = [way(usual), way(most)];
  return small.name === large.name ? [small] : [small, large];
}

/** @throws {TypeError | RangeError} where no algorithm of tiles computes it. */
function expectTileable(
  what: string,
  problem: ConvProblem | undefined,
): asserts problem is ConvProblem {
  if (problem === undefined) {
    throw new InputTypeError(`Cannot verify: ${what} are of convolutions, not of products`);
  }
  if (!isUnitStep(problem)) {
    throw new InputRangeError(`Cannot verify: ${what} take stride 1 and dilation 1`);
  }
}

function tileWay(axes: number, tiles: readonly AxisTile[]): Way {
  const all = [...Array.from({ length: axes - tiles.length }, () => WHOLE), ...tiles];
  const name = formatTile({ n: all.map(({ n }) => n), r: all.map(({ r }) => r) });
  return { name, arithmetic: { tiles: [{ axes: all }] } };
}

function isUnitStep({ stride, dilation }: ConvProblem): boolean {
  return [...stride, ...dilation].every((step) => step === 1);
}
