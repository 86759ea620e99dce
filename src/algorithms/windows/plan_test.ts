import assert from "#assert";
import { request as planRequest } from "../../../tests/plan_request.ts";
import { join } from "node:path";
import { readSuite } from "../../bench/suite_files.ts";
import { matrixElements } from "../../kernels/im2col.ts";
import { windowElements } from "../../kernels/im2win.ts";
import { type ConvProblem, convProblem, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { planMemory } from "../tensors.ts";
import { im2colGeometry, windowGeometry, windowMatrix, windowShape } from "./geometry.ts";

/** What an H200 can hold. */
const H200 = {
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupsPerDimension: 65_535,
  maxStorageBufferBindingSize: 2_147_483_644,
  maxBufferSize: 4_292_870_144,
  maxStorageBuffersPerShaderStage: 524_288,
};
const SUITES = join(import.meta.dirname!, "..", "..", "..", "bench", "suites");
const LAYERS = readSuite(join(SUITES, "im2win12.txt"));

const request = (problem: ConvProblem, more: Partial<PlanRequest> = {}) =>
  planRequest(problem, { algorithm: "im2win", limits: H200, ...more });

/** Bytes of the three tensors, of the whole batch in window order, and as an im2col matrix. */
function formulas(problem: ConvProblem) {
  const { batch, inChannels } = problem;
  const [height, width] = problem.filterSize as [number, number];
  const [places] = problem.outputSize as [number];
  const bytes = (which: "input" | "filter" | "output") =>
    4 * elementCount(tensorShape(problem, which));
  return {
    tensors: bytes("input") + bytes("filter") + bytes("output"),
    windows: 4 * batch * inChannels * places * problem.inputSize[1]! * height,
    matrix: 4 * batch * inChannels * elementCount(problem.outputSize) * height * width,
  };
}

Deno.test("the paper's example has 36 elements in window order and 48 as a matrix", () => {
  const example = request(convProblem({
    batch: 1,
    inChannels: 3,
    outChannels: 1,
    inputSize: [3, 3],
    filterSize: [2, 2],
  }));
  assert.equal(windowElements(windowShape(example, windowGeometry(example), 1, false)), 36);
  assert.equal(matrixElements(windowMatrix(example, im2colGeometry(example), 1, false)), 48);
});

Deno.test("the twelve layers take 46.9 % less in window order than as matrices", () => {
  assert.equal(LAYERS.length, 12);
  const saved = LAYERS.map((problem) => {
    const { tensors, windows, matrix } = formulas(problem);
    return 1 - (tensors + windows) / (tensors + matrix);
  });
  const mean = saved.reduce((sum, one) => sum + one, 0) / saved.length;
  assert.ok(mean > 0.469 && mean < 0.47, `${mean}`);
});

for (const algorithm of ["im2win", "im2col"] as const) {
  Deno.test(`${algorithm} allocates the tensors and what is transformed, to the byte`, () => {
    for (const problem of LAYERS) {
      for (const splits of [1, undefined]) {
        const plan = planConv(
          request(problem, {
            algorithm,
            schedule: { ...(splits === undefined ? {} : { splits }) },
          }),
        );
        const { tensors, windows, matrix } = formulas(problem);
        const named = (name: RegExp) =>
          plan.buffers.filter((buffer) => name.test(buffer.name))
            .reduce((sum, { bytes }) => sum + bytes, 0);
        const whole = algorithm === "im2win" ? windows : matrix;
        const transformed = named(/window order|matrix/) - named(/filter in/);
        const filter = named(/^(packed filter|filter in window order)$/);
        const partials = named(/partial/);
        const { inputs, output, workspace, peak } = planMemory(plan, "fwd");
        assert.equal(inputs + output, tensors);
        assert.equal(workspace, transformed + filter + partials);
        assert.equal(peak, tensors + workspace);
        if (splits === 1) assert.equal(partials, 0);
        const chunked = plan.passes.some(({ kernel }) => /_chunk/.test(kernel.name));
        if (chunked) {
          // Chunks are whole fours of the batch of 128.
          assert.equal(transformed % (whole / 32), 0);
          assert.ok(transformed < whole);
        } else {
          assert.equal(transformed, whole, problem.name);
        }
        // The packed filter: its own bytes, rounded up to tiles.
        assert.ok(filter >= named(/^filter$/) && filter <= 1.7 * named(/^filter$/), problem.name);
      }
    }
  });
}

Deno.test("the fourth layer is cut into chunks that the device can hold", () => {
  const layer = LAYERS.find(({ name }) => name === "cv4")!;
  assert.equal(formulas(layer).matrix / 2 ** 30 > 17.7, true);
  for (const [algorithm, passes] of [["im2col", 23], ["im2win", 7]] as const) {
    const plan = planConv(request(layer, { algorithm }));
    assert.equal(plan.passes.length, passes, algorithm);
    for (const { name, bytes } of plan.buffers) {
      assert.ok(bytes <= H200.maxStorageBufferBindingSize, name);
    }
  }
});

Deno.test("a limit of the workspace makes chunks, and is refused where one is too much", () => {
  const layer = LAYERS.find(({ name }) => name === "cv9")!;
  for (const algorithm of ["im2col", "im2win", "im2win-fused", "implicit-gemm"] as const) {
    const maxWorkspaceBytes = 64e6;
    const plan = planConv(request(layer, { algorithm, maxWorkspaceBytes }));
    assert.ok(plan.workspaceBytes <= maxWorkspaceBytes, `${algorithm} ${plan.workspaceBytes}`);
  }
  assert.throws(
    () => planConv(request(layer, { algorithm: "im2col", maxWorkspaceBytes: 1000 })),
    /^RangeError: Cannot plan: im2col takes at least \d+ bytes of workspace, at most 1000 are/,
  );
  assert.throws(
    () => planConv(request(layer, { maxWorkspaceBytes: 1000, algorithm: "im2win-fused" })),
    /^RangeError: Cannot plan: im2win-fused takes \d+ bytes of workspace, at most 1000 are allowed/,
  );
});

Deno.test("what they take at least is what a plan takes, in whole words", () => {
  for (const dtype of ["f32", "f16"] as const) {
    for (const algorithm of ["im2win", "im2col"] as const) {
      for (const inputSize of [[5, 7], [3, 3], [9, 4]] as const) {
        const problem = convProblem({
          batch: 3,
          inChannels: 3,
          outChannels: 5,
          inputSize,
          filterSize: [3, 3],
        });
        const of = (maxWorkspaceBytes: number) =>
          tryPlanConv(request(problem, { algorithm, dtype, maxWorkspaceBytes }));
        const refused = of(1);
        const text = isRefusal(refused) ? refused.text : "";
        const least = Number(/at least (\d+) bytes/.exec(text)![1]);
        const plan = of(least);
        const taken = isRefusal(plan) ? plan.text : plan.workspaceBytes;
        assert.ok(Number(taken) <= least, `${dtype} ${algorithm} ${inputSize}: ${taken}`);
      }
    }
  }
});

Deno.test("single images are chunks where four exceed the limit of the workspace", () => {
  const layer = LAYERS.find(({ name }) => name === "cv4")!;
  for (const [algorithm, most] of [["im2win", 64e6], ["im2col", 256e6]] as const) {
    const plan = planConv(request(layer, { algorithm, maxWorkspaceBytes: most }));
    assert.ok(plan.workspaceBytes <= most);
    assert.match(plan.notes[0]!, /in 128 chunks of the batch$/);
    const four = planConv(request(layer, { algorithm, maxWorkspaceBytes: 1e9 }));
    assert.match(four.kernel, /_oi1_chunk$/);
  }
  assert.throws(
    () => planConv(request(layer, { maxWorkspaceBytes: 32e6 })),
    /^RangeError: Cannot plan: im2win takes at least \d+ bytes of workspace, at most 32000000 are/,
  );
});

Deno.test("whatever more workspace is allowed, what was planned with less is planned", () => {
  const problem = convProblem({
    batch: 128,
    inChannels: 16,
    outChannels: 16,
    inputSize: [28, 28],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
  for (const algorithm of ["im2col", "im2win"] as const) {
    let planned = 0;
    for (let maxWorkspaceBytes = 1e5; maxWorkspaceBytes < 1e8; maxWorkspaceBytes *= 1.15) {
      const asked = request(problem, { algorithm, maxWorkspaceBytes });
      try {
        assert.ok(planConv(asked).workspaceBytes <= maxWorkspaceBytes);
        planned++;
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        assert.equal(planned, 0, `${algorithm} ${maxWorkspaceBytes}: ${error.message}`);
      }
    }
    assert.ok(planned > 20);
  }
});
