/** Random problems of one to three axes on the driver at hand, against the FP64 reference. */
import assert from "#assert";
import fc from "fast-check";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { full, test } from "./driver.ts";
import type { AlgorithmName } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import {
  type ConvProblem,
  convProblem,
  type ConvTensor,
  operandTensors,
  type Operation,
  OPERATIONS,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { channelOperands, type Epilogue, NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { convResult } from "../../src/run/conv_subject.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { HostOperands } from "../../src/run/subject.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { filterLayoutFor, type Layout, LAYOUTS, shapeInLayout } from "../../src/tensor/layout.ts";

/** Problems whose filter fits, with every option of the definition. */
const problems = randomSizes({
  axes: randomAxes({ more: 7, stride: 4, dilation: 3 }),
  batch: fc.integer({ min: 1, max: 4 }),
  groups: fc.constantFrom(1, 1, 2, 3),
  groupIn: fc.integer({ min: 1, max: 9 }),
  groupOut: fc.integer({ min: 1, max: 9 }),
});

async function conv(
  gpu: GpuDevice,
  problem: ConvProblem,
  operands: HostOperands,
  algorithm: AlgorithmName,
  layout: Layout,
  epilogue: Epilogue = NO_EPILOGUE,
  more: Pick<PlanRequest, "schedule" | "sizes"> = {},
) {
  const policy = algorithm === "direct" ? {} : { policy: "tiny" };
  const choice = {
    algorithm,
    layout,
    epilogue,
    ...more,
    schedule: { ...policy, ...more.schedule },
  };
  const { result } = await checkedResult(gpu, convRequest(gpu, problem, choice), operands);
  return result;
}

function operandsOf(problem: ConvProblem, layout: Layout, which: readonly ConvTensor[]) {
  const filterLayout = filterLayoutFor(layout);
  const operands: Partial<Record<ConvTensor, Float32Array<ArrayBuffer>>> = {};
  for (const name of which) {
    const shape = shapeInLayout(
      tensorShape(problem, name),
      name === "filter" ? filterLayout : layout,
    );
    operands[name] = fillTensor("f32", shape, "uniform11", 7 + which.indexOf(name)).data;
  }
  return operands;
}

test("random problems agree with the reference, in every operation and layout", async (gpu) => {
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom<AlgorithmName>("direct", "implicit-gemm"),
      sizeModes,
      async (init, op, layout, algorithm, sizes) => {
        const problem = convProblem({ ...init, op });
        const operands = operandsOf(problem, layout, operandTensors(op));
        await conv(gpu, problem, operands, algorithm, layout, NO_EPILOGUE, { sizes });
      },
    ),
    { numRuns: full ? 400 : 60, seed: 20261120 },
  );
});

test("the three operations are adjoint to each other", async (gpu) => {
  const dot = (a: Float32Array, b: Float32Array) =>
    a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  const length = (a: Float32Array) => Math.sqrt(dot(a, a));
  await fc.assert(
    fc.asyncProperty(problems, async (init) => {
      const layout = "nhwc";
      const problem = convProblem(init);
      const operands = operandsOf(problem, layout, ["input", "filter", "output"]);
      const { input, filter, output } = operands as Required<typeof operands>;
      const run = (op: Operation) =>
        conv(gpu, { ...problem, op }, operands, "implicit-gemm", layout);
      const y = await run("fwd");
      const dx = await run("bwd-data");
      const dw = await run("bwd-filter");
      const left = dot(y, output);
      // Each result is right to f32 rounding, so the products agree to that share of the norms.
      const room = 1e-5 * (length(y) * length(output) + length(dx) * length(input) + 1e-3);
      assert.ok(Math.abs(left - dot(dx, input)) < room, `${left} and ${dot(dx, input)}`);
      assert.ok(Math.abs(left - dot(dw, filter)) < room, `${left} and ${dot(dw, filter)}`);
    }),
    { numRuns: full ? 60 : 10, seed: 4 },
  );
});

test("bias and activations follow the sum, with and without split depth", async (gpu) => {
  const problem = parseDescriptor("mb2ic9ih7iw6oc10kh3ph1");
  const bias = Float32Array.from({ length: 10 }, (_, k) => (k - 5) * 0.7);
  const input = operandsOf(problem, "nchw", ["input"]);
  // Sums from about -6 to 6 meet every part of the activations.
  const filter = operandsOf(problem, "nchw", ["filter"]).filter!.map((value) => value * 2);
  for (const activation of ACTIVATIONS) {
    const read = Object.fromEntries(
      channelOperands({ bias: false, activation }).map((role) => [role, bias]),
    );
    for (const algorithm of ["direct", "implicit-gemm"] as const) {
      for (
        const more of algorithm === "direct"
          ? [{}]
          : [{ schedule: { splits: 1 } }, { schedule: { splits: 3 } }]
      ) {
        const epilogue = { bias: true, activation };
        const given = { ...input, filter, bias, ...read };
        await conv(gpu, problem, given, algorithm, "nchw", epilogue, more);
      }
    }
    const epilogue = { bias: false, activation };
    const given = { ...input, filter, ...read };
    await conv(gpu, problem, given, "implicit-gemm", "nhwc", epilogue, { schedule: { splits: 2 } });
  }
});

test("an operation without products gives zeros, or the bias", async (gpu) => {
  const sizes = { inputSize: [3, 3], filterSize: [2, 2] };
  const noImages = convProblem({
    ...sizes,
    op: "bwd-filter",
    batch: 0,
    inChannels: 2,
    outChannels: 3,
  });
  const noChannels = convProblem({ ...sizes, batch: 1, inChannels: 0, outChannels: 3 });
  for (const algorithm of ["direct", "implicit-gemm"] as const) {
    const plan = (problem: ConvProblem, epilogue: Epilogue) =>
      planConv(convRequest(gpu, problem, { algorithm, epilogue, sizes: "constant" }));
    const zero = await runPlan(gpu, plan(noImages, NO_EPILOGUE), {}, convResult(noImages), 2);
    assert.deepEqual([...zero.result], new Array(24).fill(0));
    const bias = Float32Array.of(1, 2, 3);
    const withBias = plan(noChannels, { bias: true, activation: "none" });
    const { result } = await runPlan(gpu, withBias, { bias }, convResult(noChannels), 2);
    assert.deepEqual([...result], [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
  }
});

test("baked sizes keep what is padded on one side only, in every operation and layout", async (gpu) => {
  // The first axis is padded by one place at its end, the second at its beginning.
  const sizes = {
    inputSize: [6, 5],
    filterSize: [2, 3],
    paddingBegin: [0, 1],
    paddingEnd: [1, 0],
  };
  for (const op of OPERATIONS) {
    const problem = convProblem({ ...sizes, op, batch: 2, inChannels: 3, outChannels: 4 });
    for (const layout of LAYOUTS) {
      const operands = operandsOf(problem, layout, operandTensors(op));
      for (const algorithm of ["direct", "implicit-gemm"] as const) {
        await conv(gpu, problem, operands, algorithm, layout, NO_EPILOGUE, { sizes: "constant" });
      }
    }
  }
});
