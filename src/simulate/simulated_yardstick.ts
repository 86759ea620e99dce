import { errorScale, type Precision } from "../accuracy/precision.ts";
import { type ErrorStatistics, errorStatistics, type Yardstick } from "../accuracy/yardstick.ts";
import { randomStream } from "../reference/sample.ts";
import type { Round, SumOrder, SumSource } from "./sum_source.ts";

/** An order of sums, and what the left operand is multiplied by: other roundings of data of the same kind. */
export interface SimulationOrder extends SumOrder {
  readonly scale?: number;
}

/** Orders in which few outputs are simulated, and many. */
const ORDERS = { few: 12, many: 4 };
/** Outputs that are few. */
const FEW = 16;
/** What is looked at once more: so many of the outputs, from so many starts of their sums. */
const MORE = { outputs: 192, starts: 16 };

/** What of given outputs is simulated: as many as are affordable, spread over them, in so many orders. */
function closerLook<T>(
  outputs: readonly T[],
  size: UnitSize,
): { outputs: readonly T[]; orders: number } {
  const orders = outputs.length <= FEW ? ORDERS.few : ORDERS.many;
  return { outputs: spread(outputs, affordable(size, orders)), orders };
}

/** The same once more, in many orders of the same data. */
function moreOrders<T>(
  outputs: readonly T[],
  size: UnitSize,
  random: () => number,
): { outputs: readonly T[]; orders: SimulationOrder[] } {
  // All starts where there are few: the kernel's own is one of them.
  const orders = distinct(MORE.starts, size.units, random)
    .flatMap((start) => [false, true].map((separate) => ({ separate, start })));
  const count = Math.min(MORE.outputs, affordable(size, orders.length));
  return { outputs: spread(outputs, count), orders };
}

function affordable(size: UnitSize, orders: number): number {
  return Math.max(FEW, Math.floor(2 * ROUND_PRODUCTS / Math.max(1, orders * cost(size, 1, 1))));
}

/** Up to `count` of a list, from all over it. */
function spread<T>(list: readonly T[], count: number): readonly T[] {
  if (list.length <= count) return list;
  return Array.from({ length: count }, (_, i) => list[Math.floor(i * list.length / count)]!);
}

/** What a sum takes. */
interface UnitSize {
  /** Units of a sum, and products of each. */
  readonly units: number;
  readonly products: number;
  /** Whether units are Winograd's, with transforms. */
  readonly tiled: boolean;
}

/** Multiply-adds of `places` x `channels` sums; a transform takes about as long as twenty products of its places. */
function cost(
  { units, products, tiled }: UnitSize,
  places: number,
  channels: number,
): number {
  return units * products * (places * channels + (tiled ? 20 : 2) * (places + channels));
}

/**
 * Orders for `count` rounds: products rounded and not in turn. Where rounds repeat the same outputs, the sums begin
 * elsewhere from the third on, and from the fifth on the data is scaled, which leaves only its kind as it was.
 */
export function simulationOrders(
  count: number,
  units: number,
  random: () => number,
  repeated = true,
): SimulationOrder[] {
  return Array.from({ length: count }, (_, round) => ({
    separate: round % 2 === 1,
    ...(repeated && round >= 2 ? { start: Math.floor(random() * units) } : {}),
    ...(repeated && round >= 4 ? { scale: 0.75 + random() / 2 } : {}),
  }));
}

/** The source with its left operand scaled, rounded as it is kept: what that makes infinite is left out of the errors. */
export function scaledBy(
  source: SumSource,
  scale: number | undefined,
  round: Round = Math.fround,
): SumSource {
  if (scale === undefined) return source;
  const { largest, lastBits } = source;
  return {
    ...source,
    // What is scaled ends anywhere.
    ...(lastBits && { lastBits: lastBits.map(() => -Infinity) }),
    ...(largest?.lefts && {
      largest: { ...largest, lefts: largest.lefts.map((value) => round(value * scale)) },
    }),
    load(unit, lefts, rights) {
      source.load(unit, lefts, rights);
      for (let i = 0; i < lefts.length; i++) lefts[i] = round(lefts[i]! * scale);
    },
  };
}

/** `count` different whole numbers below `total`, or all of them in order. */
export function distinct(count: number, total: number, random: () => number): number[] {
  if (count >= total) return Array.from({ length: total }, (_, i) => i);
  // One of each stratum, so that all parts of the range are met.
  return Array.from({ length: count }, (_, i) => {
    const [low, high] = [Math.floor(i * total / count), Math.floor((i + 1) * total / count)];
    return low + Math.floor(random() * (high - low));
  });
}

/** What there is to simulate. */
interface SimulationSize extends UnitSize {
  readonly groups: number;
  /** Tiles of one group's channel, and channels of a group. */
  readonly places: number;
  readonly channels: number;
  /** Results of a tile. */
  readonly results: number;
}

/** Outputs to simulate, of all rounds together: more where their products are few, which may be all of them. */
const OUTPUTS = { least: 1600, most: 20_000, products: 2e6 };
/** Channels, and places, of a round at most. */
const SIDE = { plain: 24, tiled: 12 };
/** Multiply-adds of a round at most: some tenths of a second. */
const ROUND_PRODUCTS = 3e7;
const MOST_ROUNDS = 24;

/** How many rounds, each of so many places and channels; `whole` where each has all of them. */
export function rounds(
  { groups, places, channels, results, units, products, tiled }: SimulationSize,
): { count: number; places: number; channels: number; whole: boolean } {
  if (groups * places * channels * results === 0) {
    return { count: 0, places: 0, channels: 0, whole: false };
  }
  const side = tiled ? SIDE.tiled : SIDE.plain;
  const size = { units, products, tiled };
  const outputs = Math.max(
    OUTPUTS.least,
    Math.min(OUTPUTS.most, OUTPUTS.products * results / Math.max(1, units * products)),
  );
  let c = Math.min(channels, side);
  let p = Math.min(places, Math.max(side, Math.ceil(outputs / 2 / c / results)));
  while (cost(size, p, c) > ROUND_PRODUCTS && (p > 2 || c > 2)) {
    if (p >= c) p = Math.max(Math.min(places, 2), Math.floor(p * 0.7));
    else c = Math.max(Math.min(channels, 2), Math.floor(c * 0.7));
    if (p <= 2 && c <= 2) break;
  }
  const whole = p === places && c === channels && groups === 1;
  const affordable = Math.max(2, Math.floor(2 * ROUND_PRODUCTS / Math.max(1, cost(size, p, c))));
  const wanted = Math.ceil(outputs / (p * c * results));
  return {
    count: Math.max(2, Math.min(wanted, affordable, MOST_ROUNDS)),
    places: p,
    channels: c,
    whole,
  };
}

/** How outputs of some computation are simulated; a block is what is simulated together. */
interface Simulation<Block> {
  readonly precision: Precision;
  readonly seed: number;
  /** What an output takes. */
  readonly size: UnitSize;
  /** Blocks drawn from the whole result, with their orders. */
  sampled(): Iterable<readonly [Block, SimulationOrder]>;
  /** The block of an output, by its flat canonical index. */
  blockOf(index: number): Block;
  simulate(block: Block, order: SimulationOrder): Iterable<SimulatedOutputs>;
}

/** The yardstick of a simulation. */
export function simulatedYardstick<Block>(simulation: Simulation<Block>): Yardstick {
  const { precision, seed, size } = simulation;
  const run = (blocks: Iterable<readonly [Block, SimulationOrder]>) => {
    const errors = errorCollection(precision);
    for (const [block, order] of blocks) {
      // What was exact stays so where the data is scaled.
      if (order.scale !== undefined && !errors.rounded) continue;
      for (const made of simulation.simulate(block, order)) errors.add(made);
    }
    return errors.statistics();
  };
  let sample: ErrorStatistics | undefined;
  return {
    get sample() {
      return sample ??= run(simulation.sampled());
    },
    of(indices) {
      const { outputs, orders } = closerLook(indices, size);
      const blocks = outputs.map((index) => simulation.blockOf(index));
      const each = simulationOrders(orders, size.units, randomStream(seed));
      return run(each.flatMap((order) => blocks.map((block) => [block, order] as const)));
    },
    again(indices) {
      const { outputs, orders } = moreOrders(indices, size, randomStream(seed));
      const blocks = outputs.map((index) => simulation.blockOf(index));
      return orders.map((order) => run(blocks.map((block) => [block, order])));
    },
  };
}

/** Simulated outputs that share a scale: one, or those of a Winograd tile. */
export interface SimulatedOutputs {
  readonly values: readonly number[];
  readonly exact: readonly number[];
  readonly rests: readonly number[];
  readonly magnitudes: readonly number[];
  readonly squares: readonly number[];
  /** What Σ|a||b| counts for at least (`convFloors()`); the root of its mean square over these outputs where absent. */
  readonly floor?: number | undefined;
  /** What √(Σ a²b²) counts for at least, likewise; 0 where absent. */
  readonly floorNoise?: number;
  /** Whether anything was rounded on the way. */
  readonly rounded: boolean;
}

/** Gathers errors of simulated outputs. */
interface ErrorCollection {
  add(outputs: SimulatedOutputs): void;
  /** Whether any of them was not exact. */
  readonly rounded: boolean;
  statistics(): ErrorStatistics;
}

/** Roundings of a result that a simulated error counts for at least: the root mean square of the last one. */
const LEAST = 0.4;

/** Makes an empty collection. */
function errorCollection(precision: Precision): ErrorCollection {
  const ratios: number[] = [];
  let anyRounded = false, largest = 0, errorSquares = 0, valueSquares = 0, noisy = 0;
  return {
    add({ values, exact, rests, magnitudes, squares, floor, floorNoise = 0, rounded }) {
      anyRounded ||= rounded;
      let sum = 0, finite = 0, squareSum = 0;
      for (let i = 0; i < values.length; i++) {
        if (!Number.isFinite(values[i]! - exact[i]!) || !Number.isFinite(magnitudes[i]!)) continue;
        sum += magnitudes[i]! * magnitudes[i]!;
        squareSum += squares[i]!;
        finite++;
      }
      if (finite === 0) return;
      const own = values.length === 1 ? magnitudes[0]! : Math.sqrt(sum / finite);
      const shared = floor ?? own;
      const noise = Math.max(Math.sqrt(squareSum / finite), floorNoise);
      for (let i = 0; i < values.length; i++) {
        const off = (values[i]! - exact[i]!) - rests[i]!;
        // What rounds may come out exact by chance; another order of the same sum then does not.
        const least = rounded ? LEAST * precision.unitRoundoff * Math.abs(exact[i]!) : 0;
        const error = Math.abs(off) < least ? least : off;
        // What an activation clips says nothing.
        if (!Number.isFinite(error) || (values[i] === 0 && exact[i] === 0)) continue;
        const scale = errorScale(precision, Math.max(shared, magnitudes[i]!), exact[i]!);
        const ratio = scale === 0 ? 0 : error / scale;
        if (!Number.isFinite(ratio)) continue;
        errorSquares += error * error;
        valueSquares += exact[i]! * exact[i]!;
        largest = Math.max(largest, Math.abs(error));
        ratios.push(ratio);
        if (noise > 0) noisy += (error / noise) ** 2;
      }
    },
    get rounded() {
      return anyRounded || largest > 0;
    },
    statistics: () =>
      errorStatistics(ratios, {
        largestError: largest,
        squareRms: Math.sqrt(noisy / Math.max(1, ratios.length)),
        relL2: errorSquares === 0 ? 0 : Math.sqrt(errorSquares / valueSquares),
      }),
  };
}
