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
 * The way of a named algorithm: `winograd F(4x4,3x3)`.
 *
 * @throws {TypeError | SyntaxError} for other words, or a tile of other axes than the problem has.
 * @throws {RangeError} for a problem that has strides or dilations.
 */
export function winogradTiles(text: string, problem: ConvProblem | undefined): readonly Way[] {
  const [, tileText] = /^winograd\s*(f\(.*\))$/i.exec(text) ?? [];
  if (tileText === undefined) {
    throw new InputTypeError(
      `Cannot verify: there is no algorithm "${text}", expected winograd F(4x4,3x3)`,
    );
  }
  if (problem === undefined) {
    throw new InputTypeError(
      "Cannot verify: Winograd's tiles are of convolutions, not of products",
    );
  }
  const { n, r } = parseTile(tileText, 3);
  const axes = problem.filterSize.length;
  if (n.length > axes) {
    throw new InputTypeError(
      `Cannot verify: ${formatTile({ n, r })} has ${n.length} axes, the problem has ${axes}`,
    );
  }
  if (!isUnitStep(problem)) {
    throw new InputRangeError("Cannot verify: Winograd takes stride 1 and dilation 1");
  }
  return [tileWay(axes, n.map((size, axis) => ({ n: size, r: r[axis]! })))];
}

/** All tiles of the filter's size of so many points along an axis, the largest first; none where Winograd cannot do it. */
export function winogradTilesUpTo(most: number, problem: ConvProblem | undefined): readonly Way[] {
  if (problem === undefined || !isUnitStep(problem)) return [];
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

function tileWay(axes: number, tiles: readonly AxisTile[]): Way {
  const all = [...Array.from({ length: axes - tiles.length }, () => WHOLE), ...tiles];
  const name = formatTile({ n: all.map(({ n }) => n), r: all.map(({ r }) => r) });
  return { name, arithmetic: { tiles: [{ axes: all }] } };
}

function isUnitStep({ stride, dilation }: ConvProblem): boolean {
  return [...stride, ...dilation].every((step) => step === 1);
}
