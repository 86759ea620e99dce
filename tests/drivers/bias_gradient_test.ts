/** Gradients of biases on the driver at hand, against FP64: sizes that divide nothing, every layout, both size modes. */
import assert from "#assert";
import fc from "fast-check";
import { planBiasGradient } from "../../src/algorithms/bias_gradient/plan.ts";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { type GpuDevice, openDevice } from "../../src/gpu/device.ts";
import { type ConvProblem, convProblem, FLOAT_DTYPES } from "../../src/problem/conv_problem.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { HostData } from "../../src/run/subject.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { type Layout, LAYOUTS, shapeInLayout, stridesInLayout } from "../../src/tensor/layout.ts";
import { tensorShape } from "../../src/problem/conv_problem.ts";
import { sizeModes } from "../random_axes.ts";
import { backend, full, test } from "./driver.ts";

/** Sums of a gradient over all but its channels, and of its magnitudes, in FP64. */
function sumsOf(problem: ConvProblem, layout: Layout, gradient: HostData) {
  const shape = tensorShape(problem, "output");
  const channels = shape[1]!;
  const stride = stridesInLayout(shape, layout)[1]!;
  const [values, magnitudes] = [new Float64Array(channels), new Float64Array(channels)];
  gradient.forEach((value, at) => {
    const channel = Math.floor(at / stride) % channels;
    values[channel]! += value;
    magnitudes[channel]! += Math.abs(value);
  });
  return { values, magnitudes };
}

interface Choice {
  readonly layout: Layout;
  readonly sizes?: "constant" | "uniform";
  readonly dtype?: "f32" | "f16" | "bf16";
  readonly outDtype?: "f32" | "f16" | "bf16";
  readonly multiprocessors?: number;
  readonly maxBinding?: number;
}

/** Runs a bias' gradient twice on seeded data, and holds it against FP64. */
async function check(
  gpu: GpuDevice,
  problem: ConvProblem,
  choice: Choice,
  fill = "normal" as const,
) {
  const { layout, sizes = "uniform", dtype = "f32", outDtype = dtype } = choice;
  const { multiprocessors = 1 / 64, maxBinding } = choice;
  const limits = maxBinding === undefined
    ? gpu.limits
    : { ...gpu.limits, maxStorageBufferBindingSize: maxBinding };
  const device = { ...H200, multiprocessors, software: true };
  const plan = planBiasGradient({ problem, layout, dtype, outDtype, sizes, device, limits });
  const shape = shapeInLayout(tensorShape(problem, "output"), layout);
  const output = fillTensor(dtype, shape, fill, 3).data as HostData;
  const left = { role: "bias", dtype: outDtype, shape: [problem.outChannels] } as const;
  const { result } = await runPlan(gpu, plan, { output }, left, 2);
  const { values, magnitudes } = sumsOf(problem, layout, output);
  const own = { f32: 2 ** -24, f16: 2 ** -11, bf16: 2 ** -8 }[outDtype];
  result.forEach((value, channel) => {
    const reference = values[channel]!;
    // Lanes and segments make chains of sums short, compensated or not.
    const bound = 4 * 2 ** -24 * magnitudes[channel]! + own * Math.abs(reference) + 2 ** -25;
    const error = Math.abs(value - reference);
    assert.ok(error <= bound, `${plan.kernel} at ${channel}: ${value}, expected ${reference}`);
  });
  return { plan, result };
}

/** A problem with an output of these sizes. */
function outputOf(batch: number, outChannels: number, size: number[]): ConvProblem {
  const filterSize = size.map(() => 1);
  return convProblem({ batch, inChannels: 1, outChannels, inputSize: size, filterSize });
}

Deno.test("random gradients of biases agree with FP64 in every layout", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  const kinds = FLOAT_DTYPES.filter((one) => one !== "f16" || gpu.features.has("shader-f16"));
  const names = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom(1, 2, 3, 4, 7, 8, 13, 36, 40, 130),
      fc.array(fc.integer({ min: 1, max: 13 }), { minLength: 1, maxLength: 3 }),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(...kinds),
      fc.constantFrom(...kinds),
      fc.constantFrom(1 / 64, 1, 16),
      sizeModes,
      async (batch, channels, size, layout, dtype, outDtype, multiprocessors, sizes) => {
        const choice = { layout, dtype, outDtype, multiprocessors, sizes } as const;
        names.add((await check(gpu, outputOf(batch, channels, size), choice)).plan.kernel);
      },
    ),
    { numRuns: full ? 300 : 60, seed: 7 },
  );
  assert.ok(names.size >= 8, [...names].join(" "));
});

test("many places of a channel are dealt to workgroups, and give the same bits again", async (gpu) => {
  for (const layout of LAYOUTS) {
    for (const channels of [3, 20]) {
      const problem = outputOf(3, channels, [107, 101]);
      const choice = { layout, multiprocessors: 4 } as const;
      const first = await check(gpu, problem, choice);
      assert.equal(first.plan.passes.length, 2, first.plan.kernel);
      assert.deepEqual((await check(gpu, problem, choice)).result, first.result);
      // Of a tensor that takes several bindings.
      const parts = await check(gpu, problem, { ...choice, maxBinding: 500_224 });
      assert.deepEqual(parts.result, first.result);
    }
  }
});

test("a gradient of no places is zero, and one of no channels is empty", async (gpu) => {
  for (const layout of LAYOUTS) {
    for (const sizes of ["constant", "uniform"] as const) {
      const { result } = await check(gpu, outputOf(0, 5, [3, 3]), { layout, sizes });
      assert.deepEqual([...result], [0, 0, 0, 0, 0]);
      const none = await check(gpu, outputOf(2, 0, [3, 3]), { layout, sizes });
      assert.deepEqual([...none.result], []);
    }
  }
});
