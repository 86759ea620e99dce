import { resultTensor, tensorShape } from "../../src/problem/conv_problem.ts";
import type { ReferenceResult } from "../../src/reference/reference.ts";
import { convOperands } from "../../src/simulate/conv_source.ts";
import {
  type ConvYardstickRequest,
  gridOf,
  placeOf,
  simulateBlock,
} from "../../src/simulate/conv_yardstick.ts";
import type { SimulationOrder } from "../../src/simulate/simulated_yardstick.ts";
import { elementCount } from "../../src/tensor/tensor.ts";

/** A whole result in simulated arithmetic, and its reference: what a correct kernel may give. */
export function simulateConv(
  request: ConvYardstickRequest,
  order: SimulationOrder = {},
): { result: Float32Array<ArrayBuffer>; reference: ReferenceResult } {
  const operands = convOperands(request.problem, request.inputs);
  const grid = gridOf(operands, request.arithmetic);
  const shape = tensorShape(request.problem, resultTensor(request.problem.op));
  const count = elementCount(shape);
  const result = new Float32Array(count);
  const values = new Float64Array(count);
  const magnitudes = new Float64Array(count);
  const channels = Array.from({ length: grid.channels }, (_, channel) => channel);
  const places = grid.outer * grid.tiles[0] * grid.tiles[1] * grid.tiles[2];
  for (let group = 0; group < operands.geometry.groups; group++) {
    for (let place = 0; place < places; place++) {
      const block = { group, places: [placeOf(grid, place)], channels };
      for (const made of simulateBlock(request, operands, grid, block, order)) {
        made.indices.forEach((index, i) => {
          result[index] = made.values[i]!;
          values[index] = made.exact[i]!;
          magnitudes[index] = made.magnitudes[i]!;
        });
      }
    }
  }
  return { result, reference: { values, magnitudes, shape } };
}
