import type { Projection } from "../reference/projection.ts";
import type { ChannelSums } from "../reference/project_channels.ts";
import type { ErrorStatistics, Floors } from "./yardstick.ts";
import type { Precision } from "./precision.ts";
import { type ResultTiles, tileNumbers } from "../problem/plan_arithmetic.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";

/** Rounding errors of one healthy output: their variance is the sum of these parts, squared. */
export interface ProjectionNoise {
  /** Times √Σ a²b²: of partial sums that wander. */
  readonly products: number;
  /** Times |y|: of partial sums that grow to it, and of the result's own rounding. */
  readonly result: number;
  /** Times |bias|, |β·C| and |residual|: of adding them. */
  readonly additions: number;
  /** The dtype's smallest normal number: what is below may be flushed. */
  readonly smallest: number;
  /** How much larger the largest errors are than normal ones of the same RMS: positions in a Winograd tile differ. */
  readonly tail?: number;
}

/** Roundings of a number that is evenly spread err by 1/√3 of the unit roundoff at most: its root mean square. */
const ROUNDED = 1 / Math.sqrt(3);
/** What sums of doubles err by at least, where simulated arithmetic is exact. */
const DOUBLES = 2 ** -44;
/** A normal error has its 99.9th percentile at so many standard deviations. */
const NORMAL_TYPICAL = 3.29;

/** Rounding errors of a healthy output, of what simulated arithmetic shows on the data at hand. */
export function projectionNoise(
  { squareRms, rms, typical }: Pick<ErrorStatistics, "squareRms" | "rms" | "typical">,
  { unitRoundoff, smallestNormal, result }: Precision,
): ProjectionNoise {
  const stored = result === "bf16" ? 2 ** -8 : result === "f16" ? 2 ** -11 : unitRoundoff;
  return {
    products: Math.max(squareRms, DOUBLES),
    result: squareRms === 0 ? DOUBLES : ROUNDED * stored,
    additions: squareRms === 0 ? DOUBLES : ROUNDED * unitRoundoff,
    smallest: smallestNormal,
    tail: rms === 0 ? 1 : Math.max(1, typical / (NORMAL_TYPICAL * rms)),
  };
}

/** The noise of a product of f64: the reference's own sums, of m and of k, round as much. */
export function doubleNoise(
  sample: Pick<ErrorStatistics, "squareRms" | "rms" | "typical">,
  { m, k }: { readonly m: number; readonly k: number },
  precision: Precision,
): ProjectionNoise {
  const { unitRoundoff } = precision;
  const longer = 2 * Math.sqrt((m + k) / Math.max(1, k));
  const squareRms = longer * Math.max(sample.squareRms, unitRoundoff * Math.sqrt(k));
  const noise = projectionNoise({ ...sample, squareRms }, precision);
  return { ...noise, result: 2 * Math.sqrt(m + k) * unitRoundoff };
}

/** A run of places: a patch of the last two axes, a row, a plane, or all. */
interface ProjectionPatch {
  /** [outside, group, places...] of its first place. */
  readonly index: readonly number[];
  readonly size: readonly number[];
  /** RMS of the differences in units of their noise, and what is allowed. */
  readonly rms: number;
  readonly limit: number;
}

/** How far a result's projection is from the reference's; ratios are in units of a healthy result's noise. */
export interface ProjectionReport {
  readonly places: number;
  /** Outputs added up in a place. */
  readonly members: number;
  /** Places with a NaN or an infinity, which say nothing. */
  readonly masked: number;
  readonly max_ratio: number;
  readonly limit: number;
  /** [outside, group, places...] of the largest ratio. */
  readonly index: readonly number[];
  /** The patch that comes nearest to its limit. */
  readonly patch: ProjectionPatch;
  /** A single output that is wrong by so many times its typical error is seen, wherever it is. */
  readonly size: number;
}

interface ProjectionMeasureOptions {
  readonly noise: ProjectionNoise;
  /** Winograd's tiles, whose outputs' errors are mixed. */
  readonly tiles?: ResultTiles | undefined;
  /** Of tiles, what Σ a²·b² of a place's outputs counts for at least, in the mean: their transforms meet more than their products. */
  readonly floorOf?: ((place: number) => number) | undefined;
}

/** What a model of the noise may be wrong by, and heavier tails than a normal distribution's. */
const SLACK = 2;
/** Normal quantile of one false alarm in 10⁶ checks; of more than one number below. */
const QUANTILE = 4.89;
/** An eighth suffices for the floor, as limits are at least twelve times the noise. */
const FLUSHED = 1 / 8;
/** A weight's mean square, where the least is 1. */
const WEIGHT_SQUARE = 7 / 3;
/** Patches of so many places: [rows, columns], of one axis as many together. */
const FEWEST_PLACES = 32;
const PATCHES: readonly (readonly [number, number])[] = [[6, 6], [16, 16]];

/** Compares a result's projection with the reference's. Places that are masked are returned beside the report. */
export function measureProjection(
  projection: Projection,
  got: ChannelSums,
  options: ProjectionMeasureOptions,
): { report: ProjectionReport; masked: number[] } {
  const { shape, expected, members } = projection;
  const variances = noiseVariances(projection, got, options);
  const ratios = new Float64Array(expected.length);
  const masked: number[] = [];
  let most = 0, at = 0;
  for (let i = 0; i < ratios.length; i++) {
    const difference = Math.abs(got.sums[i]! - expected[i]!);
    const variance = variances[i]!;
    if (!Number.isFinite(difference) || !Number.isFinite(variance)) {
      masked.push(i);
      ratios[i] = NaN;
      continue;
    }
    const ratio = difference === 0 ? 0 : difference / Math.sqrt(variance);
    ratios[i] = ratio;
    if (ratio > most) most = ratio, at = i;
  }
  const { tiles, noise: { tail = 1 } } = options;
  const limit = SLACK * tail * quantileOf(ratios.length);
  const shared = { results: elementCount(tiles?.tile ?? []), tail };
  return {
    report: {
      places: ratios.length,
      members,
      masked: masked.length,
      max_ratio: most,
      limit,
      index: unravelIndex(at, shape),
      patch: worstPatch(ratios, shape, shared),
      size: limit * Math.sqrt(WEIGHT_SQUARE * members),
    },
    masked,
  };
}

/** By floors of outputs, what Σ a²·b² of a place's outputs counts for at least. */
export function varianceFloors(
  { indicesOf }: Pick<Projection, "indicesOf">,
  floors: Floors | undefined,
): ((place: number) => number) | undefined {
  if (floors === undefined) return undefined;
  return (place) => floors.meanSquare(indicesOf(place)[0]!);
}

/** Why a projection fails, as clauses; `where` names a place. */
export function judgeProjection(
  { max_ratio, limit, index, patch }: ProjectionReport,
  where: (index: readonly number[]) => string,
): string[] {
  const reasons: string[] = [];
  if (!(max_ratio <= limit)) {
    reasons.push(`${where(index)} is ${figure(max_ratio)} times its noise, above ${figure(limit)}`);
  }
  if (!(patch.rms <= patch.limit)) {
    reasons.push(
      `the RMS of ${patch.size.join("x")} places from ${where(patch.index)} on is ` +
        `${figure(patch.rms)} times the noise, above ${figure(patch.limit)}`,
    );
  }
  return reasons;
}

/** Standard deviations that the largest of `count` healthy numbers stays below. */
function quantileOf(count: number): number {
  return Math.sqrt(QUANTILE ** 2 + 2 * Math.log(Math.max(1, count)));
}

/** The variance of each place's difference. */
function noiseVariances(
  { shape, variances, additions, weightSquares }: Projection,
  { squares }: ChannelSums,
  { noise, tiles, floorOf }: ProjectionMeasureOptions,
): Float64Array {
  const [products, result, added] = [noise.products, noise.result, noise.additions]
    .map((factor) => factor * factor) as [number, number, number];
  const floors = weightSquares.map((square) => square * (FLUSHED * noise.smallest) ** 2);
  const area = elementCount(shape.slice(2));
  const values = new Float64Array(variances.length);
  for (let start = 0, row = 0; start < values.length; start += area, row++) {
    const floor = floors[row % floors.length]!;
    for (let i = start; i < start + area; i++) {
      values[i] = products * variances[i]! + result * squares[i]! + floor;
    }
  }
  additions?.forEach((addition, i) => values[i]! += added * addition);
  if (tiles?.tile.some((size) => size > 1)) {
    const rows = weightSquares.length;
    mixTiles(
      values,
      shape,
      tiles,
      (place) =>
        floorOf === undefined
          ? 0
          : products * weightSquares[Math.floor(place / area) % rows]! * floorOf(place),
    );
  }
  return values;
}

/** Replaces each place's value by its tile's mean, where that is more, and by what the tile's first place says is the least. */
function mixTiles(
  values: Float64Array,
  shape: readonly number[],
  tiles: ResultTiles,
  leastOf: (place: number) => number,
): void {
  const sizes = shape.slice(2);
  const area = elementCount(sizes);
  const numbers = tileNumbers(sizes, tiles);
  const tileOf = Uint32Array.from(
    { length: area },
    (_, place) => numbers.of(unravelIndex(place, sizes)),
  );
  for (let start = 0; start < values.length; start += area) {
    const sums = new Float64Array(numbers.count);
    const counts = new Float64Array(numbers.count);
    const firsts = new Float64Array(numbers.count).fill(-1);
    tileOf.forEach((tile, place) => {
      if (firsts[tile]! < 0) firsts[tile] = start + place;
      const value = values[start + place]!;
      if (!Number.isFinite(value)) return;
      sums[tile]! += value;
      counts[tile]!++;
    });
    const least = sums.map((sum, tile) =>
      Math.max(counts[tile] === 0 ? 0 : sum / counts[tile]!, leastOf(firsts[tile]!))
    );
    tileOf.forEach((tile, place) => {
      if (values[start + place]! < least[tile]!) values[start + place] = least[tile]!;
    });
  }
}

function lastThree(sizes: readonly number[]): [number, number, number] {
  const [a, b, c] = [...new Array<number>(3 - sizes.length).fill(1), ...sizes];
  return [a!, b!, c!];
}

interface SharedErrors {
  /** Outputs of a Winograd tile, whose errors are mixed; 1 where there is none. */
  readonly results: number;
  readonly tail: number;
}

/** Of small and large patches, rows, planes and the whole, the one nearest to its limit. */
function worstPatch(
  ratios: Float64Array,
  shape: readonly number[],
  shared: SharedErrors,
): ProjectionPatch {
  const [, h, w] = lastThree(shape.slice(2));
  const area = Math.max(1, h * w);
  const planes = ratios.length / area;
  const sizes = [
    ...PATCHES.map(([rows, columns]) => h === 1 ? [1, rows * columns] : [rows, columns]),
    [1, w],
    [h, w],
  ].filter(([rows, columns]) => rows! <= h && columns! <= w) as [number, number][];
  let worst: ProjectionPatch | undefined;
  const offer = (
    rows: readonly [start: number, end: number][],
    count: number,
    size: readonly number[],
  ) => {
    const { rms, limit } = rmsOf(ratios, rows, count, shared);
    if (worst !== undefined && !(rms / limit > worst.rms / worst.limit)) return;
    worst = { index: unravelIndex(rows[0]![0], shape), size, rms, limit };
  };
  for (const [rows, columns] of sizes) {
    const count = planes * Math.ceil(h / rows) * Math.ceil(w / columns);
    for (let plane = 0; plane < planes; plane++) {
      for (let y = 0; y < h; y += rows) {
        for (let x = 0; x < w; x += columns) {
          const runs: [number, number][] = [];
          for (let j = y; j < Math.min(h, y + rows); j++) {
            const start = (plane * h + j) * w + x;
            runs.push([start, start + Math.min(columns, w - x)]);
          }
          offer(runs, count, [rows, columns]);
        }
      }
    }
  }
  offer([[0, ratios.length]], 1, shape);
  return worst!;
}

/** RMS of the ratios in some runs, and what it may be where `count` such patches are looked at. */
function rmsOf(
  ratios: Float64Array,
  runs: readonly (readonly [start: number, end: number])[],
  count: number,
  shared: SharedErrors,
): { rms: number; limit: number } {
  let squares = 0, seen = 0;
  for (const [start, end] of runs) {
    for (let i = start; i < end; i++) {
      const ratio = ratios[i]!;
      if (Number.isNaN(ratio)) continue;
      squares += ratio * ratio;
      seen++;
    }
  }
  const rms = Math.sqrt(squares / Math.max(1, seen));
  const limit = patchLimit(seen, count, shared);
  if (rms <= limit / 2) return { rms, limit };
  // Places with the same data have the same errors, which count once. Where most have, one chance made them all.
  const sorted = Float64Array.from(runs.flatMap(([start, end]) => [...ratios.subarray(start, end)]))
    .filter((ratio) => !Number.isNaN(ratio)).sort();
  const distinct = sorted.filter((ratio, i) => i === 0 || ratio !== sorted[i - 1]);
  return {
    rms: Math.sqrt(distinct.reduce((sum, ratio) => sum + ratio * ratio, 0) / distinct.length),
    limit: patchLimit(distinct.length < seen / 2 ? 1 : distinct.length, count, shared),
  };
}

/**
 * Of the RMS of `size` numbers in the largest of `count` patches, by Wilson and Hilferty's cube root; where they are few
 * and may be alike, that of a single one.
 */
function patchLimit(size: number, count: number, { results, tail }: SharedErrors): number {
  const independent = size / results;
  if (independent < FEWEST_PLACES) return SLACK * tail * quantileOf(count);
  const spread = 2 / (9 * independent);
  return SLACK * tail * (1 - spread + quantileOf(count) * Math.sqrt(spread)) ** 1.5;
}

function figure(value: number): string {
  return Number.isFinite(value) ? `${Number(value.toPrecision(3))}` : `${value}`;
}
