/**
 * Speed of the FP64 reference: `deno run -A bench/reference_bench.ts`. Flops are the direct
 * algorithm's; a signed problem computes as many again for Σ|a||b|.
 */
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  directFlops,
  operandTensors,
  type Operation,
  OPERATIONS,
  tensorShape,
} from "../src/problem/conv_problem.ts";
import { referenceConv, type ReferenceInputs } from "../src/reference/reference.ts";
import { randomStream } from "../src/reference/sample.ts";
import { filterLayoutFor, type Layout } from "../src/tensor/layout.ts";
import { elementCount } from "../src/tensor/tensor.ts";

const PROBLEMS: Record<string, ConvProblemInit> = {
  "conv2 56x56x64": square(8, 64, 64, 56, 3),
  "conv4 14x14x256": square(8, 256, 256, 14, 3),
  "conv5 7x7x512": square(8, 512, 512, 7, 3),
  "pointwise 28x28": square(8, 256, 256, 28, 1),
  "stem 7x7 s2": { ...square(4, 3, 64, 112, 7), stride: [2, 2] },
  "groups 8": { ...square(8, 128, 128, 28, 3), groups: 8 },
  "depthwise": { ...square(8, 128, 128, 28, 3), groups: 128 },
};

function square(batch: number, inChannels: number, outChannels: number, size: number, r: number) {
  return {
    batch,
    inChannels,
    outChannels,
    inputSize: [size, size],
    filterSize: [r, r],
    paddingBegin: [(r - 1) >> 1, (r - 1) >> 1],
  };
}

function operands(problem: ConvProblem, layout: Layout, low: number): ReferenceInputs {
  const random = randomStream(1);
  return Object.fromEntries(
    operandTensors(problem.op).map((which) => {
      const data = new Float32Array(elementCount(tensorShape(problem, which)));
      for (let i = 0; i < data.length; i++) data[i] = low + (1 - low) * random();
      return [which, { data, layout: which === "filter" ? filterLayoutFor(layout) : layout }];
    }),
  );
}

async function rate(
  init: ConvProblemInit,
  op: Operation,
  layout: Layout,
  low: number,
  workers: number,
): Promise<number> {
  const problem = convProblem({ ...init, op });
  const inputs = operands(problem, layout, low);
  let best = Infinity;
  for (let run = 0; run < 3; run++) {
    const start = performance.now();
    await referenceConv(problem, inputs, { workers });
    best = Math.min(best, performance.now() - start);
  }
  return directFlops(problem) / best / 1e6;
}

const cores = navigator.hardwareConcurrency;
console.log(`GFLOP/s of one core, then of ${cores} with Workers; 2·N·K·P·Q·(C/g)·R·S flops`);
console.log("problem            op          layout  uniform01  signed  all cores, uniform01");
for (const [name, init] of Object.entries(PROBLEMS)) {
  for (const op of OPERATIONS) {
    for (const layout of ["nchw", "nhwc"] as const) {
      const one = await rate(init, op, layout, 0, 0);
      const signed = await rate(init, op, layout, -1, 0);
      const all = await rate(init, op, layout, 0, cores);
      console.log(
        `${name.padEnd(18)} ${op.padEnd(11)} ${layout.padEnd(6)} ${one.toFixed(2).padStart(10)} ` +
          `${signed.toFixed(2).padStart(7)} ${all.toFixed(2).padStart(21)}`,
      );
    }
  }
}
