import type { Precision } from "../accuracy/precision.ts";
import type { ErrorStatistics } from "../accuracy/statistics.ts";
import type { Yardstick } from "../accuracy/yardstick.ts";
import { randomStream } from "../reference/sample.ts";
import { errorCollection, type SimulatedOutputs } from "./collect.ts";
import {
  closerLook,
  moreOrders,
  type SimulationOrder,
  simulationOrders,
  type UnitSize,
} from "./orders.ts";

/** How outputs of some computation are simulated; a block is what is simulated together. */
export interface Simulation<Block> {
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
