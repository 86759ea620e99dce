import type { Floors, Yardstick } from "../accuracy/yardstick.ts";
import { type Precision, stored } from "../accuracy/precision.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import type { Epilogue } from "../problem/epilogue.ts";
import {
  type PlanArithmetic,
  tileCount,
  tileOf,
  type TileShare,
  tileStart,
} from "../problem/plan_arithmetic.ts";
import { activate, activationGain, operandOf } from "../problem/activations.ts";
import type { Triple } from "../reference/geometry.ts";
import { activatedMagnitude, type ReferenceInputs } from "../reference/reference.ts";
import { randomStream } from "../reference/sample.ts";
import {
  distinct,
  rounds,
  scaledBy,
  type SimulatedOutputs,
  simulatedYardstick,
  type SimulationOrder,
  simulationOrders,
} from "./simulated_yardstick.ts";
import {
  type ConvOperands,
  convOperands,
  convSource,
  resultSizes,
  threeTiles,
  unitCounts,
} from "./conv_source.ts";
import { addedRounding, type Round, type SimulatedSums } from "./sum_source.ts";
import { simulateSums } from "./sums.ts";

/** What a convolution's yardstick is made of. */
export interface ConvYardstickRequest {
  readonly problem: ConvProblem;
  readonly inputs: ReferenceInputs;
  readonly epilogue: Epilogue;
  readonly arithmetic: PlanArithmetic;
  readonly precision: Precision;
  /** By which results' errors are measured too (`convFloors()`); what Σ|a||b| of each tile is where absent. */
  readonly floors?: Floors | undefined;
  readonly seed: number;
}

/** Outputs of a group that are simulated together: tiles of every place in every channel. */
interface Block {
  readonly group: number;
  /** Outer index and tile along three axes. */
  readonly places: readonly (readonly [outer: number, ...tile: Triple])[];
  readonly channels: readonly number[];
}

/** The yardstick of a convolution: outputs sampled from all groups, images, places and channels. */
export function convYardstick(request: ConvYardstickRequest): Yardstick {
  const operands = convOperands(request.problem, request.inputs);
  const grid = gridOf(operands, request.arithmetic);
  return simulatedYardstick({
    precision: request.precision,
    seed: request.seed,
    size: grid,
    sampled: () => sampledBlocks(request, operands, grid),
    blockOf(index) {
      const { group, place, channel } = blockOf(operands, grid, index);
      return { group, places: [place], channels: [channel] };
    },
    simulate: (block, order) => simulateBlock(request, operands, grid, block, order),
  });
}

/** How the result is cut into tiles. */
export interface Grid {
  /** Images, or channels of a group for a filter's gradient. */
  readonly outer: number;
  /** Tiles along three axes. */
  readonly tiles: Triple;
  /** Result channels of a group. */
  readonly channels: number;
  /** Results of a tile along three axes, those of all kernels together. */
  readonly tile: Triple;
  /** How far apart they stand. */
  readonly apart: Triple;
  readonly sizes: Triple;
  readonly units: number;
  /** Products of a unit. */
  readonly products: number;
  readonly tiled: boolean;
  /** Whether transforms mix places of an axis. */
  readonly mixed: readonly [boolean, boolean, boolean];
}

/** How many times longer than Winograd's the transforms of Fourier take. */
const FFT_STEPS = 8;

/** The tiles of a plan's arithmetic. */
export function gridOf(
  { geometry: g }: ConvOperands,
  { tiles: shares, math }: PlanArithmetic,
): Grid {
  const sizes = resultSizes(g);
  const axes = threeTiles(shares?.[0]);
  // Kernels of different tiles share results only where each has whole rows of taps.
  const whole = shares !== undefined && shares.length > 1 ? shares[0]!.columns?.axis : undefined;
  const wholeAxis = whole === undefined ? -1 : whole + 3 - shares![0]!.axes.length;
  const tile = axes.map(({ n }, d) => d === wholeAxis ? sizes[d]! : n) as Triple;
  const mixed = axes.map(({ n, r }) => n > 1 || r > 1) as [boolean, boolean, boolean];
  const channels = g.op === "bwd-data" ? g.inChannels : g.outChannels;
  const outer = g.op === "bwd-filter" ? g.inChannels : g.batch;
  const depth = g.op === "bwd-filter" ? g.batch : g.op === "fwd" ? g.inChannels : g.outChannels;
  const steps = unitCounts(g, axes, undefined);
  const apart = tile.map((n, d) => g.op === "bwd-filter" || n === 1 ? 1 : g.dilation[d]!) as Triple;
  return {
    tile,
    apart,
    tiles: sizes.map((size, d) => tileCount(size, tile[d]!, apart[d]!)) as Triple,
    sizes,
    outer,
    channels,
    units: depth * steps[0] * steps[1] * steps[2],
    products: axes.reduce((all, { n, r }) => all * (n + r - 1), math === "fft" ? FFT_STEPS : 1),
    tiled: mixed.includes(true),
    mixed,
  };
}

/** Blocks of places and channels drawn from the whole result, with their orders. */
function* sampledBlocks(
  { seed }: ConvYardstickRequest,
  { geometry: g }: ConvOperands,
  grid: Grid,
): Generator<readonly [Block, SimulationOrder]> {
  const random = randomStream(seed);
  const [t0, t1, t2] = grid.tiles;
  const places = grid.outer * t0 * t1 * t2;
  const plan = rounds({
    groups: g.groups,
    places,
    channels: grid.channels,
    results: grid.tile[0] * grid.tile[1] * grid.tile[2],
    units: grid.units,
    products: grid.products,
    tiled: grid.tiled,
  });
  if (plan.count === 0) return;
  const orders = simulationOrders(plan.count, grid.units, random, plan.whole);
  const groups = distinct(plan.count, g.groups, random);
  for (let round = 0; round < plan.count; round++) {
    yield [{
      group: groups[round % groups.length]!,
      places: distinct(plan.places, places, random).map((place) => placeOf(grid, place)),
      channels: distinct(plan.channels, grid.channels, random),
    }, orders[round]!];
  }
}

/** A place by its number: images (or channels) outermost. */
export function placeOf({ tiles: [t0, t1, t2] }: Grid, place: number): Block["places"][number] {
  const c2 = place % t2, r2 = (place - c2) / t2;
  const c1 = r2 % t1, r1 = (r2 - c1) / t1;
  const c0 = r1 % t0;
  return [(r1 - c0) / t0, c0, c1, c2];
}

/** A tile in a channel. */
interface Spot {
  readonly group: number;
  readonly place: Block["places"][number];
  readonly channel: number;
}

/** The tile that an output is of. */
export function blockOf(
  { geometry: g }: Pick<ConvOperands, "geometry">,
  { tile, apart, sizes }: Grid,
  index: number,
): Spot {
  const spots = sizes[0] * sizes[1] * sizes[2];
  const spot = index % spots;
  const rest = (index - spot) / spots;
  const p2 = spot % sizes[2], q2 = (spot - p2) / sizes[2];
  const p1 = q2 % sizes[1], p0 = (q2 - p1) / sizes[1];
  const at: Triple = [
    tileOf(p0, tile[0], apart[0]),
    tileOf(p1, tile[1], apart[1]),
    tileOf(p2, tile[2], apart[2]),
  ];
  if (g.op === "bwd-filter") {
    const c = rest % g.inChannels;
    const k = (rest - c) / g.inChannels;
    const group = Math.floor(k / g.outChannels);
    return { group, place: [c, ...at], channel: k - group * g.outChannels };
  }
  const perGroup = g.op === "fwd" ? g.outChannels : g.inChannels;
  const channel = rest % (perGroup * g.groups);
  const group = Math.floor(channel / perGroup);
  const image = (rest - channel) / (perGroup * g.groups);
  return { group, place: [image, ...at], channel: channel - group * perGroup };
}

/** Outputs of a tile in one channel, as arithmetic makes them. */
interface TileOutputs extends SimulatedOutputs {
  /** Of each output, the canonical flat index. */
  readonly indices: readonly number[];
}

/** Simulates a block, tile by tile. */
export function* simulateBlock(
  request: ConvYardstickRequest,
  operands: ConvOperands,
  grid: Grid,
  block: Block,
  order: SimulationOrder,
): Generator<TileOutputs> {
  const { epilogue: { bias, activation }, inputs, precision, floors, arithmetic } = request;
  const round = roundOf(arithmetic);
  const keep = addedRounding(arithmetic.operands);
  const { tile, apart, sizes, channels: perGroup } = grid;
  const { group, places, channels } = block;
  const results = tile[0] * tile[1] * tile[2];
  const sums = blockSums(request, operands, grid, block, order);
  for (let place = 0; place < places.length; place++) {
    const [outer, ...at] = places[place]!;
    const start = at.map((one, d) => tileStart(one, tile[d]!, apart[d]!));
    // Of tiles that stand apart some begin beyond the end.
    if (start.some((one, d) => one >= sizes[d]!)) continue;
    for (let right = 0; right < channels.length; right++) {
      const channel = group * perGroup + channels[right]!;
      const shift = bias ? inputs.bias![channel]! : 0;
      const operand = operandOf(activation, inputs)(channel);
      const gain = activationGain(activation, operand);
      const last = sums.begun ? 0 : keep(shift);
      const made = {
        indices: [] as number[],
        values: [] as number[],
        exact: [] as number[],
        rests: [] as number[],
        magnitudes: [] as number[],
        squares: [] as number[],
        rounded: sums.rounded,
      };
      const first = (place * channels.length + right) * results;
      for (let i = 0; i < results; i++) {
        const z = i % tile[2], rest = (i - z) / tile[2];
        const y = rest % tile[1], x = (rest - y) / tile[1];
        const p: Triple = [
          start[0]! + x * apart[0],
          start[1]! + y * apart[1],
          start[2]! + z * apart[2],
        ];
        if (p[0] >= sizes[0] || p[1] >= sizes[1] || p[2] >= sizes[2]) continue;
        const sum = sums.values[first + i]!;
        const argument = sums.exact[first + i]! + shift;
        const exact = activate(activation, argument, operand);
        const value = activate(activation, last === 0 ? sum : round(sum + last), operand);
        made.indices.push(canonicalIndex(operands, sizes, outer, channel, p));
        made.values.push(stored(precision, value));
        made.exact.push(exact);
        made.rests.push(sums.rests[first + i]!);
        const magnitude = sums.magnitudes[first + i]! + Math.abs(shift);
        made.magnitudes.push(
          activatedMagnitude(activation, { argument, operand, value: exact, magnitude }),
        );
        made.squares.push(gain ** 2 * sums.squares[first + i]!);
      }
      const index = made.indices[0]!;
      yield floors === undefined ? made : {
        ...made,
        floor: floors.size(index),
        floorNoise: Math.sqrt(floors.square(index)),
      };
    }
  }
}

/** Where an output stands in the canonical result. */
function canonicalIndex(
  { geometry: g }: ConvOperands,
  sizes: Triple,
  outer: number,
  channel: number,
  [p0, p1, p2]: readonly [number, number, number],
): number {
  const lead = g.op === "bwd-filter"
    ? channel * g.inChannels + outer
    : outer * g.groups * (g.op === "fwd" ? g.outChannels : g.inChannels) + channel;
  return ((lead * sizes[0] + p0) * sizes[1] + p1) * sizes[2] + p2;
}

/** Rounds a sum to what sums are kept in. */
function roundOf({ sums }: PlanArithmetic): Round {
  return sums === "f64" ? Number : Math.fround;
}

/** The sums of a block, those of all kernels together: [place][channel][result of a tile]. */
function blockSums(
  { arithmetic, epilogue, inputs }: ConvYardstickRequest,
  operands: ConvOperands,
  { tile, channels: perGroup, tiled }: Grid,
  { group, places, channels }: Block,
  order: SimulationOrder,
): SimulatedSums & { begun: boolean } {
  const results = tile[0] * tile[1] * tile[2];
  const made = () => new Float64Array(places.length * channels.length * results);
  const all = {
    values: made(),
    exact: made(),
    rests: made(),
    magnitudes: made(),
    squares: made(),
    rounded: false,
    /** Whether they have their bias. */
    begun: arithmetic.begin === "added" && epilogue.bias && !tiled,
  };
  const round = roundOf(arithmetic);
  const keep = addedRounding(arithmetic.operands);
  const shares: readonly (TileShare | undefined)[] = arithmetic.tiles ?? [undefined];
  for (const share of shares) {
    const axes = threeTiles(share);
    // Tiles of this kernel in one of the grid's.
    const parts = axes.map(({ n }, d) => Math.ceil(tile[d]! / n)) as Triple;
    const perPlace = parts[0] * parts[1] * parts[2];
    const within = Array.from({ length: perPlace }, (_, part) => {
      const c = part % parts[2], rest = (part - c) / parts[2];
      const b = rest % parts[1];
      return [(rest - b) / parts[1], b, c] as const;
    });
    const lefts = places.flatMap(([outer, ...at]) =>
      within.map((part) =>
        [outer, ...part.map((value, d) => at[d]! * parts[d]! + value)] as [number, ...Triple]
      )
    );
    const bare = convSource(operands, { group, lefts, rights: channels }, share, arithmetic);
    const biases = channels.map((channel) => keep(inputs.bias?.[group * perGroup + channel] ?? 0));
    const initial = Float64Array.from(lefts.flatMap(() => biases));
    const source = all.begun ? { ...bare, initial } : bare;
    const sums = simulateSums(scaledBy(source, order.scale, round), arithmetic, order);
    all.rounded ||= sums.rounded;
    let i = 0;
    for (let left = 0; left < lefts.length; left++) {
      const place = Math.floor(left / perPlace);
      const [a, b, c] = within[left % perPlace]!;
      const offset = (a * axes[0].n * tile[1] + b * axes[1].n) * tile[2] + c * axes[2].n;
      for (let right = 0; right < channels.length; right++) {
        const first = (place * channels.length + right) * results + offset;
        for (let x = 0; x < axes[0].n; x++) {
          for (let y = 0; y < axes[1].n; y++) {
            for (let z = 0; z < axes[2].n; z++, i++) {
              const at = first + (x * tile[1] + y) * tile[2] + z;
              all.values[at] = round(all.values[at]! + sums.values[i]!);
              all.exact[at]! += sums.exact[i]!;
              all.rests[at]! += sums.rests[i]!;
              all.magnitudes[at]! += sums.magnitudes[i]!;
              all.squares[at]! += sums.squares[i]!;
            }
          }
        }
      }
    }
  }
  return all;
}
