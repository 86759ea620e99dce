import { InputRangeError, InputSyntaxError } from "../../errors.ts";
import {
  admissible,
  expectSizes,
  isAdmissible,
  type Omega,
  omegaName,
  parseOmega,
  type Throughput,
} from "./omega.ts";

/**
 * The kernels that share the columns of ∇Y: `first` takes k0 tiles from the left edge, `second`, where there
 * is one, the k1 tiles that remain. Each has its own n, and both divide the filter's width.
 */
export interface KernelPair {
  readonly first: Omega;
  readonly second?: Omega;
  /** Tiles of `first` in a row of ∇Y, at least 1. */
  readonly k0: number;
  /** Tiles of `second` in a row of ∇Y; 0 without a second kernel. */
  readonly k1: number;
  /** Columns covered, k0·r0 + k1·r1: O_W, or more where the last tile is filled with zeros. */
  readonly width: number;
}

/** Costs closer than this count as equal. */
const TIE = 1e-9;

/** What {@linkcode fastestPair} may choose. */
export interface PairOptions {
  /** Only pairs with k0·r0 + k1·r1 = O_W, as in the paper; else a last tile may be filled with zeros. */
  readonly exact?: boolean;
  /** Rows of the filter that nested kernels may go along; none of these where absent. */
  readonly tiledRows?: number;
  /** Which pairs may be chosen; all where absent. */
  readonly admits?: (pair: KernelPair) => boolean;
}

/**
 * The pair that takes the least time for a row of ∇Y: a column costs 1 / throughput, a column of zeros in the
 * last tile too. Of equals the exact one wins, then the one of fewer kernels, then the smaller α.
 *
 * @param throughput Direct flops a second of each kernel, in any unit.
 * @throws {RangeError} if a width is not a positive whole number.
 */
export function fastestPair(
  filterWidth: number,
  outputWidth: number,
  throughput: Throughput,
  options: PairOptions = {},
): KernelPair {
  const pairs = possiblePairs(filterWidth, outputWidth, throughput, options);
  return cheapest(pairs, outputWidth, throughput);
}

/**
 * Every pair that {@linkcode fastestPair} looks at: one kernel, or two of which the faster comes first; no nested one comes behind
 * one that is not, where few and short sums took 1.05 to 1.26 of the time on an H100.
 *
 * @throws {RangeError} if a width is not a positive whole number.
 */
export function possiblePairs(
  filterWidth: number,
  outputWidth: number,
  throughput: Throughput,
  options: PairOptions = {},
): KernelPair[] {
  checkWidths(filterWidth, outputWidth);
  const kernels = admissible(filterWidth, options.tiledRows);
  return kernels.flatMap((first) => [
    ...covers(outputWidth, first),
    ...kernels
      .filter((second) =>
        second !== first && (second.rows === undefined || first.rows !== undefined) &&
        throughput(second) <= throughput(first)
      )
      .flatMap((second) => covers(outputWidth, first, second)),
  ]).filter((pair) =>
    (!options.exact || pair.width === outputWidth) && (options.admits?.(pair) ?? true)
  );
}

/** What a row of ∇Y costs: columns of each kernel over its throughput. */
export function pairCost({ first, second, k0, k1 }: KernelPair, throughput: Throughput): number {
  return k0 * first.r / throughput(first) + (second ? k1 * second.r / throughput(second) : 0);
}

/** The word that stands for the fastest of the paper's pairs with k0·r0 + k1·r1 = O_W; Ω2(1,1) makes one of any width. */
export const EXACT_PAIR = "exact";

/**
 * The pair that `a8n3r6,a4n3r2` names, or one kernel alone, whose last tile may be filled with zeros. Of the
 * ways to share the columns it takes the cheapest by the rates. {@linkcode EXACT_PAIR} is the fastest pair that covers
 * nothing beyond the edge.
 *
 * @throws {RangeError} if a kernel is unknown, or its n does not divide the filter's width.
 * @throws {SyntaxError} if the text names none or more than two kernels, or one twice.
 */
export function parsePair(
  text: string,
  filterWidth: number,
  outputWidth: number,
  throughput: Throughput,
  tiledRows = 0,
): KernelPair {
  checkWidths(filterWidth, outputWidth);
  if (text === EXACT_PAIR) {
    return fastestPair(filterWidth, outputWidth, throughput, { exact: true });
  }
  const [first, second] = parseKernels(text) as [Omega, Omega | undefined];
  for (const omega of second ? [first, second] : [first]) {
    if (!isAdmissible(omega, filterWidth, tiledRows)) {
      throw new InputRangeError(
        `Cannot choose WinRS kernels: ${unfitKernel(omega, filterWidth, tiledRows)}`,
      );
    }
  }
  const candidates = covers(outputWidth, first, second);
  const pairs = candidates.length > 0 ? candidates : covers(outputWidth, second!);
  return cheapest(pairs, outputWidth, throughput);
}

/** The kernels that {@linkcode parsePair} may take: those that a text names, or all that fit the filter's width. */
export function kernelsOf(text: string, filterWidth: number): Omega[] {
  return text === EXACT_PAIR ? admissible(filterWidth) : parseKernels(text);
}

/**
 * The one or two kernels that a text names.
 *
 * @throws {RangeError} if one is unknown, {SyntaxError} if there are none, more, or one twice.
 */
function parseKernels(text: string): Omega[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.length > 2 || new Set(names).size < names.length) {
    throw new InputSyntaxError(
      `Cannot choose WinRS kernels: "${text}" is not one kernel or two different ones, as a8n3r6,a4n3r2`,
    );
  }
  return names.map(parseOmega);
}

/** What is wrong with a kernel that is not admissible. */
export function unfitKernel(omega: Omega, filterWidth: number, tiledRows: number): string {
  const { n, rows } = omega;
  const wrong = filterWidth % n !== 0 || rows === undefined
    ? `yields ${n} filter columns at once, which does not divide the filter's width ${filterWidth}`
    : tiledRows === 0
    ? "goes along rows, of which there are none without a stride or dilation"
    : `yields ${rows.n} filter rows at once, which does not divide the filter's ${tiledRows}`;
  const fitting = admissible(filterWidth, tiledRows).map(omegaName).join(", ");
  return `${omegaName(omega)} ${wrong}; those that fit are ${fitting}`;
}

/**
 * Ways to cover a row: of one kernel the only one; of two those that use both, by the last r1 values of k0,
 * after which the remainders repeat.
 */
function covers(outputWidth: number, first: Omega, second?: Omega): KernelPair[] {
  if (!second) {
    const k0 = Math.ceil(outputWidth / first.r);
    return [{ first, k0, k1: 0, width: k0 * first.r }];
  }
  const most = Math.ceil(outputWidth / first.r) - 1;
  const pairs: KernelPair[] = [];
  for (let k0 = most; k0 >= 1 && k0 > most - second.r; k0--) {
    const k1 = Math.ceil((outputWidth - k0 * first.r) / second.r);
    pairs.push({ first, second, k0, k1, width: k0 * first.r + k1 * second.r });
  }
  return pairs;
}

function cheapest(
  pairs: readonly KernelPair[],
  outputWidth: number,
  throughput: Throughput,
): KernelPair {
  const rank = ({ first, second, width }: KernelPair) =>
    [Number(width > outputWidth), second ? 1 : 0, first.alpha] as const;
  return pairs.reduce((best, pair) => {
    const [a, b] = [pairCost(best, throughput), pairCost(pair, throughput)];
    if (Math.abs(a - b) > TIE * a) return b < a ? pair : best;
    const [left, right] = [rank(best), rank(pair)];
    const differs = left.findIndex((value, i) => value !== right[i]);
    return differs >= 0 && right[differs]! < left[differs]! ? pair : best;
  });
}

function checkWidths(filterWidth: number, outputWidth: number): void {
  const sizes = { "the filter's width": filterWidth, "the width of ∇Y": outputWidth };
  expectSizes("choose WinRS kernels", sizes);
}

/** `a8n3r6,a4n3r2`. */
export function pairText(pair: KernelPair): string {
  return pairKernels(pair).map(omegaName).join(",");
}

export function pairKernels({ first, second }: KernelPair): Omega[] {
  return second === undefined ? [first] : [first, second];
}
