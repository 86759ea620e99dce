import { type ConvProblem, type Operation, referenceConv, tensorShape } from "../../mod.ts";
import { type Digits, PIXELS } from "./digits.ts";
import {
  BATCH,
  CLASSES,
  firstWeights,
  MOMENTUM,
  NETWORK,
  PLACES,
  RATE,
  type Trainer,
} from "./network.ts";

type Values = Float64Array<ArrayBufferLike>;

/** The same training in double precision on the CPU: convolutions by the library's reference, all in nchw and kcrs. */
export function fp64Trainer({ images, labels }: Digits, seed: number): Trainer {
  const layers = NETWORK.map(({ problem, relu }, i) => {
    const weights = Float64Array.from(firstWeights(i, seed));
    const bias = new Float64Array(problem.outChannels);
    const momentum = [new Float64Array(weights.length), new Float64Array(bias.length)] as const;
    return { problem, relu, weights, bias, momentum };
  });

  /** Results of all layers, the pictures first. */
  const forward = async (indices: Int32Array): Promise<Values[]> => {
    const pictures = new Float64Array(BATCH * PIXELS);
    indices.forEach((at, i) => {
      pictures.set(images.subarray(at * PIXELS, (at + 1) * PIXELS), i * PIXELS);
    });
    const results: Values[] = [pictures];
    for (const { problem, relu, weights, bias } of layers) {
      const epilogue = { bias: true, activation: relu ? "relu" : "none" } as const;
      results.push(
        await convolve("fwd", problem, { input: results.at(-1)!, filter: weights }, {
          bias,
          epilogue,
        }),
      );
    }
    return results;
  };

  const step = async (indices: Int32Array): Promise<number> => {
    const results = await forward(indices);
    const { loss, gradient } = lossOf(results.at(-1)!, indices, labels);
    let dy: Values = gradient;
    for (const [i, layer] of [...layers.entries()].reverse()) {
      const { problem, relu, weights, bias, momentum } = layer;
      const [x, y] = [results[i]!, results[i + 1]!];
      if (relu) dy = dy.map((value, at) => y[at]! > 0 ? value : 0);
      const dw = await convolve("bwd-filter", problem, { input: x, output: dy });
      const db = biasGradient(problem, dy);
      if (i > 0) dy = await convolve("bwd-data", problem, { output: dy, filter: weights });
      update(weights, momentum[0], dw);
      update(bias, momentum[1], db);
    }
    return loss;
  };

  return {
    async train(order) {
      let sum = 0;
      const steps = Math.floor(order.length / BATCH);
      for (let at = 0; at < steps; at++) {
        sum += await step(order.subarray(at * BATCH, (at + 1) * BATCH));
      }
      return sum / steps;
    },
    async test(order) {
      let hits = 0;
      const steps = Math.floor(order.length / BATCH);
      for (let at = 0; at < steps; at++) {
        const indices = order.subarray(at * BATCH, (at + 1) * BATCH);
        hits += lossOf((await forward(indices)).at(-1)!, indices, labels).hits;
      }
      return hits / (steps * BATCH);
    },
    [Symbol.dispose]: () => {},
  };
}

async function convolve(
  op: Operation,
  problem: ConvProblem,
  tensors: { readonly input?: Values; readonly filter?: Values; readonly output?: Values },
  more: {
    readonly bias?: Values;
    readonly epilogue?: { readonly bias: boolean; readonly activation: "relu" | "none" };
  } = {},
): Promise<Values> {
  const { bias, epilogue } = more;
  const operands = Object.fromEntries(
    Object.entries(tensors).map((
      [which, data],
    ) => [which, { data, layout: which === "filter" ? "kcrs" : "nchw" }]),
  );
  const inputs = { ...operands, ...(bias && { bias: bias as Float64Array }) };
  // Workers take longer to ask than these sizes to compute.
  const options = { workers: 0, ...(epilogue && { epilogue }) };
  return (await referenceConv({ ...problem, op }, inputs, options)).values;
}

/** Mean loss, hits and gradient of logits that are means over places. */
function lossOf(results: Values, indices: Int32Array, labels: Int32Array) {
  const gradient = new Float64Array(results.length);
  let [loss, hits] = [0, 0];
  indices.forEach((at, i) => {
    const places = (k: number) =>
      results.subarray((i * CLASSES + k) * PLACES, (i * CLASSES + k + 1) * PLACES);
    const logits = Array.from(
      { length: CLASSES },
      (_, k) => places(k).reduce((all, value) => all + value, 0) / PLACES,
    );
    const most = Math.max(...logits);
    const sum = logits.reduce((all, logit) => all + Math.exp(logit - most), 0);
    const label = labels[at]!;
    loss += (Math.log(sum) + most - logits[label]!) / indices.length;
    if (logits.indexOf(most) === label) hits++;
    logits.forEach((logit, k) => {
      const share = Math.exp(logit - most) / sum - (k === label ? 1 : 0);
      gradient.fill(
        share / indices.length / PLACES,
        (i * CLASSES + k) * PLACES,
        (i * CLASSES + k + 1) * PLACES,
      );
    });
  });
  return { loss, hits, gradient };
}

function biasGradient(problem: ConvProblem, gradient: Values): Values {
  const [, channels, ...size] = tensorShape(problem, "output") as [number, number, ...number[]];
  const places = size.reduce((all, one) => all * one, 1);
  const sums = new Float64Array(channels);
  gradient.forEach((value, at) => sums[Math.floor(at / places) % channels]! += value);
  return sums;
}

function update(weights: Values, momentum: Values, gradient: Values): void {
  for (let i = 0; i < weights.length; i++) {
    momentum[i] = MOMENTUM * momentum[i]! + gradient[i]!;
    weights[i]! -= RATE * momentum[i]!;
  }
}
