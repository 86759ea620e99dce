/** What a kernel of others claims to compute in, as ways that its sums may be rounded. */
import { InputRangeError, InputTypeError } from "../errors.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import type { AxisTile, OperandRounding, PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { formatTile, parseTile } from "../winograd/tile.ts";

/** What the ways of a claim depend on beside its words. */
export interface ClaimedCase {
  /** Whether results must be exact: sums of int8. */
  readonly exact: boolean;
  /** The convolution, where it is one. */
  readonly problem?: ConvProblem | undefined;
  /** Whether operands are held in f64, and kernels of f32 round them. */
  readonly wide: boolean;
  /** Products of an output. */
  readonly length: number;
  /** Whether anything is added to sums. */
  readonly added: boolean;
  /** In what the result's file has it, where that is coarser than f32. */
  readonly results?: "f16" | "bf16" | undefined;
}

/** What products are summed in, and what operands are rounded to before: elements of `elements-sums-results`. */
const OPERANDS: Readonly<Record<string, readonly (OperandRounding | undefined)[]>> = {
  f32: [undefined],
  tf32: ["tf32", "tf32-truncated"],
  f16: ["f16"],
  bf16: ["bf16"],
};

/**
 * Orders in which others may sum: those of plain loops, of the innermost blocks of libraries, of split sums. Of products that cancel
 * their neighbours, those which part neighbours err most: lanes of vectors, threads that add every n-th product.
 */
const ORDERS: readonly Way[] = [
  { name: "one sum", arithmetic: {} },
  { name: "one sum, taps innermost", arithmetic: { inner: "taps" } },
  { name: "one sum on what is added", arithmetic: { begin: "added" } },
  { name: "every second product, then the others", arithmetic: { lanes: 2 } },
  ...[4, 16, 64, 256].map((chain) => ({ name: `sums of ${chain}`, arithmetic: { chain } })),
  { name: "sums of 32 in segments of 512", arithmetic: { chain: 32, segment: 512 } },
];
/** Of operands that are rounded, whose errors are larger than those of sums: few orders show all there is to see. */
const ROUNDED_ORDERS: readonly Way[] = [...ORDERS.slice(0, 4), {
  name: "sums of 32",
  arithmetic: { chain: 32 },
}];
/** Matrix units, which cut sums off; those that add few products at once err most, of products that cancel in the order that parts them. */
const UNITS: readonly Way[] = [
  ...[4, 16].map((unit) => ({ name: `matrix units of ${unit}`, arithmetic: { unit } })),
  {
    name: "matrix units of 4 of every second product, then of the others",
    arithmetic: { unit: 4, lanes: 2 },
  },
];
/** Sums in f16: of all products, or of some, which are added up in f32. */
const HALF_ORDERS: readonly Way[] = [
  { name: "one sum in f16", arithmetic: { sums: "f16" } },
  { name: "one sum in f16, taps innermost", arithmetic: { sums: "f16", inner: "taps" } },
  { name: "one sum in f16 on what is added", arithmetic: { sums: "f16", begin: "added" } },
  { name: "every second product in f16, then the others", arithmetic: { sums: "f16", lanes: 2 } },
  { name: "sums of 32 in f16", arithmetic: { sums: "f16", chain: 32 } },
];

/** The names of types that `--arithmetic` takes, for messages and help. */
export const CLAIM_HELP =
  'auto, f32, f32-any, tf32, bf16, f16, f16-f32, bf16-f32, i8, f64, f16x3, fft, "winograd F(4x4,3x3)", ' +
  "or f16-f32:fft";

/** Claims that `auto` tries, from the finest to the coarsest. */
const AUTO = ["f32", "f32-any", "f16x3", "tf32", "f16-f32", "bf16-f32", "f16", "bf16"];

/** A claim, and the ways that it allows; of `auto` there are several, the finest first. */
export interface Claim {
  readonly name: string;
  readonly ways: readonly Way[];
  /** Of results in 16 bits: f32's tiles, which libraries take unasked, before their results are rounded. */
  readonly unrounded: readonly Way[];
  /** What results are rounded to. */
  readonly results?: "f16" | "bf16" | undefined;
}

/** In what a subject is to be made for a claim: products of f64 and int8 have references of their own. */
export function claimDtype(text: string): "f64" | "i8" | "f32" {
  return text === "f64" || text === "i8" ? text : "f32";
}

/**
 * The claims that `--arithmetic` names. Ways that err most come first: what they allow needs no other.
 *
 * @throws {TypeError} for a name that is none, or of a type that the case has not.
 */
export function parseClaims(text: string, of: ClaimedCase): readonly Claim[] {
  const name = text.trim();
  if (name === "auto") {
    if (of.exact) return [claimOf("i8", of)];
    return [...(of.wide ? ["f64"] : []), ...AUTO].map((one) => claimOf(one, of));
  }
  if (of.exact !== (name === "i8")) {
    throw new InputTypeError(
      of.exact
        ? `Cannot verify: operands are i8, whose arithmetic is i8, not ${name}`
        : "Cannot verify: the arithmetic i8 takes operands of i8 or u8",
    );
  }
  return [claimOf(name, of)];
}

function claimOf(name: string, of: ClaimedCase): Claim {
  const ways = waysOf(name, of).filter(({ arithmetic: { begin, chain = 1 } }) =>
    (begin === undefined || of.added) && (chain === 1 || chain < of.length)
  );
  const [{ arithmetic: { results, sums, math, tiles } } = { arithmetic: {} }] = ways;
  const plain = results !== undefined && sums === "f32" && !math && !tiles;
  const unrounded = (plain ? anyTiles(of.problem) : [])
    .map((way) => ({ ...way, arithmetic: { ...way.arithmetic, sums: "f32" } as const }));
  const named = ways.map((way) => ({ ...way, name: `${name}, ${way.name}` }));
  return { name, results, ways: named, unrounded };
}

function waysOf(name: string, of: ClaimedCase): readonly Way[] {
  const { results, wide } = of;
  const all = (ways: readonly Way[], more: PlanArithmetic) =>
    ways.map((way) => ({ ...way, arithmetic: { ...way.arithmetic, ...more } }));
  const stored = results === undefined ? {} : { results };
  // Kernels of f32 read what they round.
  const read = wide ? { operands: "f32" } as const : {};
  switch (name) {
    case "i8":
      return [{ name: "exact", arithmetic: {} }];
    case "f64":
      return all(ORDERS, { sums: "f64", ...stored });
    case "f16x3":
      return all([{ name: "one sum", arithmetic: {} }, ORDERS.at(-1)!], {
        ...{ math: "f16x3", unit: 16, ...stored, ...read },
      });
    case "f32-any": {
      // Tiles allow most, orders but the first little more than that one.
      const [first, ...others] = waysOf("f32", of);
      const tiles = all(anyTiles(of.problem), { ...stored, ...read });
      return [first!, ...tiles, ...others];
    }
  }
  const [elements, algorithm] = splitAlgorithm(name);
  const { operands, sums, results: as = results } = parseElements(elements, name);
  const ways = operands.flatMap((kind) => {
    const said: PlanArithmetic = {
      ...(as === undefined || as === "f32" ? {} : { results: as }),
      ...(kind === undefined ? read : { operands: kind }),
    };
    if (algorithm !== undefined) {
      const transformed = kind === undefined ? {} : { transformed: kind as "f16" };
      return all(algorithmTiles(algorithm, of.problem), { ...said, ...transformed, sums: "f32" });
    }
    const orders = [
      ...(sums.includes("f32")
        ? (kind === undefined ? ORDERS : [...ROUNDED_ORDERS, ...UNITS]).map(withSums)
        : []),
      ...(sums.includes("f16") ? HALF_ORDERS : []),
    ];
    const cut = kind === "tf32-truncated" ? " of operands cut off" : "";
    return all(orders.map((way) => ({ ...way, name: way.name + cut })), said);
  });
  // Libraries that may round to TF32 need not: of operands that it holds f32's errors remain.
  return name === "tf32" ? [...ways, ...waysOf("f32-any", of)] : ways;
}

/** Sums that are said to be in f32, of a subject that is in f64 otherwise. */
function withSums({ name, arithmetic }: Way): Way {
  return { name, arithmetic: { ...arithmetic, sums: "f32" } };
}

/** What `f16-f32:winograd F(4x4,3x3)` says of elements, and of the algorithm. */
function splitAlgorithm(name: string): [elements: string, algorithm: string | undefined] {
  const colon = name.indexOf(":");
  if (colon >= 0) return [name.slice(0, colon).trim(), name.slice(colon + 1).trim()];
  return /^(winograd|fft)\b/i.test(name) ? ["f32", name] : [name, undefined];
}

/** `operands`, `operands-sums` or `operands-sums-results`. */
function parseElements(text: string, whole: string) {
  const [operands, sums, results, ...rest] = text.split("-");
  const kinds = Object.hasOwn(OPERANDS, operands!) ? OPERANDS[operands!] : undefined;
  const known = (one: string | undefined) => one === undefined || ["f32", "f16"].includes(one);
  const stored = (["f32", "f16", "bf16"] as const).find((one) => one === results);
  if (
    kinds === undefined || rest.length > 0 || !known(sums) || stored !== results ||
    (sums === "f16" && operands !== "f16")
  ) {
    throw new InputTypeError(
      `Cannot verify: there is no arithmetic "${whole}", expected ${CLAIM_HELP}`,
    );
  }
  const alone = (["f16", "bf16"] as const).find((one) => one === operands);
  return {
    operands: kinds,
    sums: sums === undefined ? (operands === "f16" ? ["f32", "f16"] : ["f32"]) : [sums],
    results: sums === undefined ? alone : stored,
  };
}

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
function algorithmTiles(text: string, problem: ConvProblem | undefined): readonly Way[] {
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
function anyTiles(problem: ConvProblem | undefined): readonly Way[] {
  if (problem === undefined || !isUnitStep(problem)) return [];
  // A filter of one tap is a product.
  if (problem.filterSize.every((taps) => taps === 1)) return [];
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
function fftTiles(problem: ConvProblem | undefined): readonly Way[] {
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
