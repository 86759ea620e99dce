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
export function closerLook<T>(
  outputs: readonly T[],
  size: UnitSize,
): { outputs: readonly T[]; orders: number } {
  const orders = outputs.length <= FEW ? ORDERS.few : ORDERS.many;
  return { outputs: spread(outputs, affordable(size, orders)), orders };
}

/** The same once more, in many orders of the same data. */
export function moreOrders<T>(
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
export interface UnitSize {
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
