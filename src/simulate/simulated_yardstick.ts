import { errorScale, type Precision } from "../accuracy/precision.ts";
import { type ErrorStatistics, errorStatistics, type Yardstick } from "../accuracy/yardstick.ts";
import { randomStream } from "../reference/sample.ts";
import {
  closerLook,
  moreOrders,
  type SimulationOrder,
  simulationOrders,
  type UnitSize,
} from "./orders.ts";

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
