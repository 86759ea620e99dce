import {
  accumulationLength,
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  tensorShape,
} from "../problem/conv_problem.ts";
import { layoutAxes } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type HostOperands, layoutOf, type Layouts } from "./operands.ts";

/**
 * Products that are not 0 in an output of each channel of the result (K; C of an input gradient): the accumulation
 * length, times the shares of the two operands' values that are not 0.
 */
export function channelLengths(
  problem: ConvProblem,
  operands: HostOperands,
  layouts: Layouts,
): Float64Array {
  const { op, inChannels, outChannels, groups } = problem;
  const perGroup = { in: inChannels / groups, out: outChannels / groups };
  const [left, right] = operandTensors(op).map((which) => {
    const data = operands[which];
    if (!data) throw new TypeError(`Cannot count the products: ${which} is missing`);
    return shares(problem, which, data, layouts);
  });
  const result = new Float64Array(op === "bwd-data" ? inChannels : outChannels);
  // Each output channel of a group meets each input channel of it.
  const pairs = op === "bwd-data" ? perGroup.out : perGroup.in;
  for (let k = 0; k < outChannels; k++) {
    const first = Math.floor(k / perGroup.out) * perGroup.in;
    for (let c = 0; c < perGroup.in; c++) {
      const input = first + c;
      const filter = k * perGroup.in + c;
      if (op === "fwd") result[k]! += left![input]! * right![filter]!;
      else if (op === "bwd-data") result[input]! += left![k]! * right![filter]!;
      else result[k]! += left![input]! * right![k]!;
    }
  }
  const scale = accumulationLength(problem) / pairs;
  return result.map((sum) => sum * scale);
}

/** The share of values that are not 0: of a filter for each k and c, of activations for each channel. */
function shares(
  problem: ConvProblem,
  which: ConvTensor,
  data: Float32Array,
  layouts: Layouts,
): Float64Array {
  const [outer, inner, ...spatial] = tensorShape(problem, which) as [number, number, ...number[]];
  const counts = new Float64Array(which === "filter" ? outer * inner : inner);
  const places = elementCount(spatial);
  // The tensor as three axes in the order of memory, with the step each makes in `counts`.
  const axes = layoutAxes(layoutOf(which, layouts), 1).map((axis) =>
    axis === 2
      ? { size: places, step: 0 }
      : axis === 1
      ? { size: inner, step: 1 }
      : { size: outer, step: which === "filter" ? inner : 0 }
  );
  const [a, b, c] = axes as [typeof axes[0], typeof axes[0], typeof axes[0]];
  let at = 0;
  for (let i = 0; i < a.size; i++) {
    for (let j = 0; j < b.size; j++) {
      let count = i * a.step + j * b.step;
      for (let k = 0; k < c.size; k++, count += c.step) {
        if (data[at++] !== 0) counts[count]!++;
      }
    }
  }
  const each = data.length / Math.max(1, counts.length);
  return counts.map((count) => count / Math.max(1, each));
}
