/** Convolutions of int8 tensors on the driver at hand: exactly the reference's. */
import assert from "#assert";
import fc from "fast-check";
import { H200_LIMITS, H200_UNITS } from "../../bench/h200_limits.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { plainIntegers } from "../support/plain_reference.ts";
import { ONE_WORKGROUP } from "../support/one_workgroup.ts";
import { full, test } from "./driver.ts";
import { type AlgorithmName, DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
} from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { type Epilogue, NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { HostOperands } from "../../src/run/subject.ts";

/** Seeded operands; scales that leave all of int8's range, and reach both of its ends. */
function operandsFor(request: PlanRequest): HostOperands {
  const { outChannels } = request.problem;
  const scale = Float32Array.from({ length: outChannels }, (_, k) => 0.0003 * (1 + k % 5));
  return { ...fillOperands(convSubject(request), "int8", 5), scale };
}

async function conv(
  gpu: GpuDevice,
  problem: ConvProblem,
  choice: Partial<PlanRequest> & { readonly algorithm: AlgorithmName },
) {
  const request = convRequest(gpu, problem, { dtype: "i8", layout: "nhwc", ...choice });
  const { scale, ...others } = operandsFor(request);
  const operands = request.epilogue.scale === "channel" ? { scale: scale!, ...others } : others;
  return { ...await checkedResult(gpu, request, operands), operands };
}

const GOLDEN: ConvProblemInit = {
  batch: 2,
  groups: 2,
  inChannels: 16,
  outChannels: 8,
  inputSize: [7, 6],
  filterSize: [3, 2],
  stride: [2, 1],
  paddingBegin: [1, 0],
  paddingEnd: [0, 2],
  dilation: [1, 2],
};

test("int8 convolutions are their definition, whatever their channels divide", async (gpu) => {
  const bias: Epilogue = { bias: true, activation: "relu" };
  for (const algorithm of ["direct", "implicit-gemm"] as const) {
    for (const [inChannels, outChannels] of [[16, 8], [8, 6], [6, 10], [32, 64]] as const) {
      const problem = convProblem({ ...GOLDEN, inChannels, outChannels });
      const sums = await conv(gpu, problem, { algorithm });
      assert.deepEqual([...sums.result], plainIntegers(problem, sums.operands));
      const active = await conv(gpu, problem, { algorithm, epilogue: bias });
      const expected = plainIntegers(problem, active.operands);
      assert.deepEqual([...active.result], expected.map((sum) => Math.max(0, sum)));
    }
  }
});

test("int8 results round halves to even and saturate", async (gpu) => {
  const values = [-128, -127, -5, -3, -2, -1, 0, 1, 2, 3, 5, 126, 127];
  const problem = parseDescriptor(`mb1ic4iw${values.length}oc4kw1`);
  const input = Int8Array.from(
    { length: 4 * values.length },
    (_, i) => i % 4 ? 0 : values[i >> 2]!,
  );
  const filter = Int8Array.from({ length: 16 }, (_, i) => i % 4 ? 0 : [1, -1, 3, 127][i >> 2]!);
  for (const algorithm of ["direct", "implicit-gemm"] as const) {
    for (const scale of [0.5, "channel"] as const) {
      const epilogue = { ...NO_EPILOGUE, scale };
      const choice = { algorithm, dtype: "i8", outDtype: "i8", layout: "nhwc", epilogue } as const;
      const { result } = await checkedResult(gpu, convRequest(gpu, problem, choice), {
        input,
        filter,
        ...(scale === "channel" ? { scale: Float32Array.of(0.5, 0.5, 0.25, 0.001) } : {}),
      });
      // Halves: -2.5 is -2, -1.5 is -2, -0.5 is 0, 0.5 is 0, 1.5 is 2, 2.5 is 2.
      const first = [...result].filter((_, i) => i % 4 === 0);
      assert.deepEqual(first, [-64, -64, -2, -2, -1, 0, 0, 0, 1, 2, 2, 63, 64]);
      const last = [...result].filter((_, i) => i % 4 === 3);
      assert.deepEqual([last[0], last.at(-1)], scale === 0.5 ? [-128, 127] : [-16, 16]);
    }
  }
});

const problems = randomSizes({
  axes: randomAxes({ more: 7, stride: 3, dilation: 3 }),
  batch: fc.integer({ min: 1, max: 3 }),
  groups: fc.constantFrom(1, 1, 2, 3),
  groupIn: fc.constantFrom(1, 3, 4, 5, 8, 12, 16, 20, 32, 36, 64),
  groupOut: fc.constantFrom(1, 3, 4, 7, 8, 12, 36),
});

const STREAMED = { schedule: { balance: "stream-k" }, device: ONE_WORKGROUP } as const;

test("random int8 problems equal the reference bit for bit", async (gpu) => {
  const traits = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom<AlgorithmName>("implicit-gemm", "implicit-gemm", "direct"),
      fc.record({ bias: fc.boolean(), activation: fc.constantFrom("none", "relu") }),
      fc.constantFrom(undefined, 0.0005, "channel" as const),
      fc.constantFrom<Partial<PlanRequest>>(
        {},
        { schedule: { splits: 2 } },
        { schedule: { splits: 3 } },
        STREAMED,
      ),
      fc.constantFrom({}, { packedFilter: true }),
      sizeModes,
      async (init, algorithm, ending, scale, cut, variant, sizes) => {
        const implicit = algorithm === "implicit-gemm"
          ? { ...cut, schedule: { policy: "tiny", ...variant, ...cut.schedule } }
          : {};
        const { plan } = await conv(gpu, convProblem(init), {
          algorithm,
          sizes,
          ...implicit,
          ...(scale === undefined
            ? { epilogue: ending as Epilogue }
            : { outDtype: "i8", epilogue: { ...ending, scale } as Epilogue }),
        });
        for (const { kernel } of plan.passes) {
          for (const trait of ["pack_bytes", "quantize", "krsc4d", "b4_", "reduce_tiles", "or4"]) {
            if (kernel.name.includes(trait)) traits.add(trait);
          }
        }
      },
    ),
    { numRuns: full ? 1000 : 150, seed: 20261122 },
  );
  assert.equal(traits.size, 6, [...traits].join());
});

test("int8 tensors in several bindings give the same", async (gpu) => {
  const limits = { ...gpu.limits, maxStorageBufferBindingSize: 2048 };
  for (const inChannels of [16, 6]) {
    const problem = convProblem({ ...GOLDEN, inChannels, inputSize: [13, 12], outChannels: 6 });
    for (const algorithm of ["direct", "implicit-gemm"] as const) {
      for (const outDtype of ["i32", "i8"] as const) {
        const scaled = outDtype === "i8" ? { scale: 0.0005 } : {};
        const { plan } = await conv(gpu, problem, {
          algorithm,
          outDtype,
          limits: { ...limits, maxStorageBuffersPerShaderStage: 10 },
          epilogue: { ...NO_EPILOGUE, ...scaled },
        });
        assert.match(plan.passes.map(({ kernel }) => kernel.name).join(), /_parts/);
      }
    }
  }
});

Deno.test("channels of whole words take no pass before the product but the filter's", () => {
  const problem = parseDescriptor("mb8ic64ih56oc64kh3");
  for (const outDtype of ["i32", "i8"] as const) {
    const scaled = outDtype === "i8" ? { scale: 0.01 } : {};
    const plan = planConv(convRequest({ limits: DEFAULT_LIMITS }, problem, {
      algorithm: "implicit-gemm",
      dtype: "i8",
      outDtype,
      layout: "nhwc",
      epilogue: { ...NO_EPILOGUE, ...scaled },
    }));
    const names = plan.passes.map(({ kernel }) => kernel.name);
    assert.ok(names.every((name) => /^implicit_gemm_fwd|^pack_strided/.test(name)), names.join());
    assert.match(plan.kernel, /b4_or4/);
  }
});

test("taps of few channels, as matrix units read them, lie beside each other with zeros around", async (gpu) => {
  const shapes: readonly ConvProblemInit[] = [
    { batch: 2, inChannels: 3, inputSize: [9, 13], filterSize: [7, 7], stride: [2, 2] },
    // Taps that do not follow each other, and one axis.
    { batch: 3, inChannels: 5, inputSize: [31], filterSize: [3], dilation: [4] },
    { batch: 2, inChannels: 1, inputSize: [4, 5, 17], filterSize: [1, 2, 5], stride: [1, 1, 3] },
  ].map((shape) => ({
    ...shape,
    op: "fwd",
    outChannels: 64,
    paddingBegin: shape.filterSize.map((taps) => Math.floor(taps / 2)),
  }));
  for (
    const [init, sizes] of shapes.flatMap((one) => [[one, "constant"], [one, "uniform"]] as const)
  ) {
    const problem = convProblem(init);
    const request = convRequest(gpu, problem, {
      algorithm: "implicit-gemm",
      dtype: "i8",
      layout: "nhwc",
      sizes,
      limits: H200_LIMITS,
      matrixUnits: H200_UNITS,
    });
    const plan = planConv(request);
    const [first] = plan.passes;
    assert.match(first!.kernel.name, /^unfold_i8/, plan.notes.join("; "));
    const words = plan.buffers.find(({ name }) => name === "input in words")!;
    const alone = {
      ...plan,
      passes: [first!],
      buffers: plan.buffers.map((one) =>
        one === words
          ? { ...one, role: "output" as const }
          : one.role === "output"
          ? { ...one, role: "workspace" as const }
          : one
      ),
    };
    const { input } = fillOperands(convSubject(request), "int8", 5);
    const spec = { role: "output", dtype: "i8", shape: [words.bytes] } as const;
    const { result } = await runPlan(gpu, alone, { input: input! }, spec, 1);
    const channels = problem.inChannels, size = problem.inputSize.at(-1)!;
    const places = problem.outputSize.at(-1)!, taps = problem.filterSize.at(-1)!;
    const [step, pad, apart] = [problem.stride, problem.paddingBegin, problem.dilation]
      .map((each) => each.at(-1)!) as [number, number, number];
    const whole = Math.ceil(taps * channels / 16) * 16;
    const rows = input!.length / size / channels;
    const expected = new Int8Array(rows * places * whole);
    for (let row = 0; row < rows; row++) {
      for (let place = 0; place < places; place++) {
        for (let tap = 0; tap < taps; tap++) {
          const x = place * step + tap * apart - pad;
          if (x < 0 || x >= size) continue;
          for (let c = 0; c < channels; c++) {
            expected[(row * places + place) * whole + tap * channels + c] =
              input![(row * size + x) * channels + c]!;
          }
        }
      }
    }
    assert.deepEqual(result.subarray(0, expected.length), expected, JSON.stringify(init));
  }
});
