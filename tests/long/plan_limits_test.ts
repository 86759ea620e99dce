/** What is planned within limits, and what is refused. */
import assert from "#assert";
import { tryPlanGemm } from "../../src/algorithms/gemm/plan.ts";
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { planConv, supportedAlgorithms, tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal } from "../../src/algorithms/refusal.ts";
import { UnsupportedError } from "../../src/errors.ts";
import { MATRIX_POLICY_NAMES } from "../../src/kernels/matrix_policies.ts";
import type { MatrixUnit } from "../../src/kernels/matrix_units.ts";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { gemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { filterLayoutFor, LAYOUTS } from "../../src/tensor/layout.ts";
import { conv2, h200, request } from "../plan_request.ts";

Deno.test("planConv() fits WebGPU's least limits, splitting tensors over bindings", () => {
  const problem = { ...conv2, batch: 240 };
  const sized = convProblem(problem);
  const plan = planConv(request(sized, { limits: DEFAULT_LIMITS, algorithm: "implicit-gemm" }));
  assert.ok(plan.passes.every(({ kernel }) => kernel.workgroupBytes <= 16_384));
  assert.equal(plan.passes.at(-1)!.bindings.length, 5);
});

Deno.test("planConv() refuses what no buffer of the device can hold", () => {
  const large = convProblem({ ...conv2, batch: 4096 });
  assert.throws(
    () => planConv(request(large, { limits: DEFAULT_LIMITS })),
    (error: Error) =>
      error instanceof UnsupportedError && /input takes 3288334336 bytes/.test(error.message),
  );
});

Deno.test("planConv() refuses with the reason and with what auto takes", () => {
  const strided = convProblem({ ...conv2, outputSize: [28, 28], stride: [2, 2] });
  assert.throws(
    () => planConv(request(strided, { algorithm: "winograd2d", tile: "F(2x2,3x3)" })),
    {
      name: "RangeError",
      message: "Cannot plan: winograd2d does not support this problem: stride 2 is not 1 " +
        "(implicit-gemm does)",
    },
  );
  const filter = { ...conv2, op: "bwd-filter" } as const;
  const taken = planConv(request(filter)).algorithm;
  assert.throws(
    () => planConv(request(filter, { algorithm: "im2win" })),
    new RegExp(`\\(${taken} does\\)$`),
  );
});

Deno.test("planConv() refuses a named algorithm that enlarges errors more than is allowed", () => {
  const winograd = request(conv2, { algorithm: "winograd2d", tile: "F(2x2,3x3)" });
  assert.ok(planConv(winograd).passes.length > 0);
  assert.throws(
    () => planConv({ ...winograd, exact: true }),
    /^RangeError: Cannot plan: winograd2d is no exact algorithm$/,
  );
  assert.throws(
    () => planConv({ ...winograd, maxBoundRatio: 1 }),
    /winograd2d enlarges rounding errors [\d.]+ times, 1 are allowed$/,
  );
  assert.ok(planConv({ ...winograd, maxBoundRatio: 1e6 }).passes.length > 0);
  const exact = planConv(request(conv2, { algorithm: "implicit-gemm", exact: true }));
  assert.ok(exact.passes.length > 0);
});

Deno.test("planConv() plans or refuses problems of absurd sizes without counting through them", () => {
  const huge = 2 ** 53 - 1;
  const limits = { ...h200, maxBufferSize: huge, maxStorageBufferBindingSize: huge };
  let calls = 0;
  for (
    const sizes of [
      { batch: huge },
      { inChannels: huge },
      { outChannels: huge },
      { inputSize: [huge, 3] },
      { batch: 2 ** 31, inChannels: 1, outChannels: 1, inputSize: [1, 1], filterSize: [1, 1] },
      { batch: 1, inChannels: 1, outChannels: 1, inputSize: [1, 2 ** 31], filterSize: [1, 3] },
      { batch: 1, inChannels: 1, outChannels: 1, inputSize: [60_000, 60_000] },
    ]
  ) {
    for (const op of OPERATIONS) {
      for (const { name } of supportedAlgorithms(request(conv2))) {
        for (const more of [{}, { maxWorkspaceBytes: 4096 }, { limits }]) {
          const shape = { batch: 1, inChannels: 1, outChannels: 1, inputSize: [3, 3] };
          const problem = convProblem({ ...shape, filterSize: [3, 3], ...sizes, op });
          try {
            const { passes } = planConv(request(problem, { algorithm: name, ...more }));
            assert(passes.length <= 4 * 1024 + 2, `${name} ${op}: ${passes.length} passes`);
          } catch (error) {
            const refused = error instanceof RangeError || error instanceof UnsupportedError;
            assert(refused && error.message.startsWith("Cannot "), `${name} ${op}: ${error}`);
          }
          calls++;
        }
      }
    }
  }
  assert.equal(calls, 7 * 3 * 10 * 3);
});

Deno.test("a batch is cut into at most 1024 chunks", () => {
  const problem = convProblem({
    ...{ batch: 1_000_000, inChannels: 1, outChannels: 1, inputSize: [3, 3], filterSize: [3, 3] },
  });
  for (const algorithm of ["im2col", "im2win", "winograd2d-nonfused"] as const) {
    const maxWorkspaceBytes = algorithm === "winograd2d-nonfused" ? 150_000 : 1024;
    assert.throws(() => planConv(request(problem, { algorithm, maxWorkspaceBytes })), {
      name: "RangeError",
      message:
        /^Cannot plan: \S+ takes \d+ chunks of the batch to keep within the workspace, at most 1024/,
    }, algorithm);
  }
});

Deno.test("partial results that 32 bits cannot count are refused", () => {
  const limits = { ...h200, maxBufferSize: 2 ** 38, maxStorageBufferBindingSize: 2 ** 32 };
  for (
    const [descriptor, op] of [["mb1ic40ih10000oc8kh1", "fwd"], [
      "g1048576mb1ic8388608ih3oc8388608kh3",
      "bwd-filter",
    ]] as const
  ) {
    const asked = { algorithm: "depthwise", limits, schedule: { splits: 70 } } as const;
    const plan = tryPlanConv(request(parseDescriptor(descriptor, op), asked));
    assert.ok(isRefusal(plan) && /count up to 2\^32/.test(plan.text), descriptor);
  }
});

Deno.test("f16 results keep within any workspace, or are refused for it, and bind whole words", () => {
  for (const descriptor of ["mb8ic64ih14oc64kh3ph1", "mb5ic33ih8oc5kh3pw1", "mb9ic1iw9oc2kw3pw1"]) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        const problem = parseDescriptor(descriptor, op);
        const all = {
          problem,
          dtype: "f16",
          layout,
          filterLayout: filterLayoutFor(layout),
        } as const;
        for (const { name: algorithm, reason } of supportedAlgorithms(request(problem, all))) {
          if (reason !== undefined) continue;
          const most = planConv(request(problem, { ...all, algorithm })).workspaceBytes;
          for (const share of [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]) {
            const maxWorkspaceBytes = Math.floor(share * most);
            const plan = tryPlanConv(request(problem, { ...all, algorithm, maxWorkspaceBytes }));
            if (isRefusal(plan)) {
              assert.equal(plan.kind, "workspace", plan.text);
              continue;
            }
            assert.ok(plan.workspaceBytes <= maxWorkspaceBytes, algorithm);
            for (const { offset, size } of plan.passes.flatMap(({ bindings }) => bindings)) {
              assert.ok(offset % 256 === 0 && size % 4 === 0, `${algorithm} ${offset} ${size}`);
            }
          }
        }
      }
    }
  }
});

Deno.test("tiles on matrix units fit workgroup memory without vector loads too, or are refused", () => {
  const limits = { ...h200, maxComputeWorkgroupStorageSize: 32_768 };
  const units: readonly MatrixUnit[] = [
    { component: "i8", result: "i32", m: 16, n: 8, k: 32 },
    { component: "f16", result: "f32", m: 16, n: 16, k: 16 },
  ];
  let planned = 0, refused = 0;
  for (const unit of units) {
    for (const transpose of TRANSPOSES) {
      for (const policy of MATRIX_POLICY_NAMES) {
        const problem = gemmProblem({ m: 1001, n: 97, k: 4097, transpose });
        const plan = tryPlanGemm({
          problem,
          dtype: unit.component,
          schedule: { policy },
          limits,
          matrixUnits: { lanes: 32, units: [unit] },
        });
        if (isRefusal(plan)) {
          refused++;
          continue;
        }
        planned++;
        for (const { kernel } of plan.passes) {
          assert.ok(kernel.workgroupBytes <= 32_768, `${kernel.name} ${kernel.workgroupBytes}`);
        }
      }
    }
  }
  assert.ok(planned > 15 && refused > 50, `${planned} planned, ${refused} refused`);
});
