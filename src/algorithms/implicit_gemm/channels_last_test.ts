import assert from "#assert";
import { convProblem, type Operation, OPERATIONS } from "../../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";

const matrixUnits = {
  lanes: 32,
  units: [{ component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const],
};

/** ResNet's third layer of 3x3 in nchw, on an H200's matrix units. */
function request(op: Operation, more: Partial<PlanRequest> = {}, channels = 128): PlanRequest {
  return {
    problem: convProblem({
      op,
      batch: 64,
      inChannels: channels,
      outChannels: 128,
      inputSize: [28, 28],
      filterSize: [3, 3],
      paddingBegin: [1, 1],
    }),
    dtype: "f16",
    layout: "nchw",
    filterLayout: "kcrs",
    epilogue: NO_EPILOGUE,
    algorithm: "implicit-gemm",
    matrixUnits,
    limits: {
      ...DEFAULT_LIMITS,
      maxComputeInvocationsPerWorkgroup: 1024,
      maxComputeWorkgroupStorageSize: 49_152,
    },
    ...more,
  };
}

const rewritten = (asked: PlanRequest) =>
  planConv(asked).buffers.filter(({ name }) => name.endsWith("with channels last"));

Deno.test("images of nchw are rewritten for matrix units where that is predicted to pay", () => {
  for (const op of OPERATIONS) {
    const plan = planConv(request(op));
    const images = rewritten(request(op));
    assert.deepEqual(
      images.map(({ name }) => name.split(" ")[0]).sort(),
      { "fwd": ["input"], "bwd-data": ["output"], "bwd-filter": ["filter", "input", "output"] }[op],
    );
    const tensor = plan.buffers.find(({ role }) => role === images[0]!.name.split(" ")[0])!;
    assert.equal(images[0]!.bytes, tensor.bytes);
    assert.ok(plan.notes.some((note) => note.includes("written once with channels innermost")));
    // Results lie as they are asked for.
    assert.match(plan.kernel, op === "bwd-filter" ? /_nhwc_2d_/ : /_nhwc_to_nchw_2d_/);
  }
});

Deno.test("images stay as they lie in f32, in other layouts, and where there is no workspace", () => {
  const nhwc = { layout: "nhwc", filterLayout: "krsc" } as const;
  const { matrixUnits: _, ...plain } = request("fwd");
  const others = [
    plain,
    request("fwd", { dtype: "f32" }),
    request("fwd", nhwc),
    request("fwd", { layout: "chwn", filterLayout: "crsk" }),
    request("fwd", { schedule: { matrixUnits: false } }),
    request("fwd", { maxWorkspaceBytes: 1 << 20 }),
    // 13 bindings of the image as it lies, and as many as it is written, are more than there are.
    request("fwd", {
      problem: { ...request("fwd").problem, outChannels: 16 },
      limits: {
        ...request("fwd").limits,
        maxStorageBufferBindingSize: 1 << 20,
        maxStorageBuffersPerShaderStage: 16,
      },
    }),
  ];
  for (const asked of others) assert.deepEqual(rewritten(asked), [], planConv(asked).kernel);
  // Asked for, they are rewritten of f32 and few channels too.
  const variant = { channelsLast: true };
  assert.equal(rewritten(request("fwd", { dtype: "f32", schedule: { ...variant } }, 3)).length, 1);
  assert.deepEqual(rewritten(request("fwd", { ...nhwc, schedule: { ...variant } })), []);
});

Deno.test("few channels take the taps of the last axis, odd ones are padded", () => {
  const nhwc = { layout: "nhwc", filterLayout: "krsc" } as const;
  const noted = (asked: PlanRequest) =>
    planConv(asked).notes.find((note) => note.includes("written once")) ?? "";
  for (const op of ["fwd", "bwd-filter"] as const) {
    assert.match(noted(request(op, nhwc, 3)), /taps among them: 16$/);
  }
  const few = request("bwd-data", nhwc);
  const problem = { ...few.problem, outChannels: 21 };
  assert.match(noted({ ...few, problem }), /^output and filter .* padded to 128 and 24$/);
});

Deno.test("copies that a device cannot hold or bind, or that are many times the tensor, are not made", () => {
  const nhwc = { layout: "nhwc", filterLayout: "krsc" } as const;
  const stem = (batch: number, size: number, inChannels: number, taps: number) =>
    convProblem({
      batch,
      inChannels,
      outChannels: 8,
      inputSize: [size, size],
      filterSize: [taps, taps],
      paddingBegin: [1, 1],
    });
  const { limits } = request("fwd");
  const large = { ...limits, maxBufferSize: 2 ** 40, maxStorageBufferBindingSize: 2 ** 31 - 4 };
  const small = { ...large, maxStorageBufferBindingSize: 2 ** 27 };
  const tight = { ...limits, maxBufferSize: 2 ** 25 };
  for (
    const [problem, limits] of [
      // More elements than 32 bits count, more bindings than the image has, a larger buffer than there is, 25 times the image.
      [stem(256, 1024, 3, 7), large],
      [stem(24, 1024, 3, 3), small],
      [stem(2, 1024, 3, 3), tight],
      [stem(1, 100, 1, 60), large],
    ] as const
  ) {
    for (const op of ["fwd", "bwd-filter"] as const) {
      const asked = request(op, { ...nhwc, problem: { ...problem, op }, limits });
      const plan = planConv(asked);
      for (const { name, bytes } of rewritten(asked)) {
        const lying = plan.buffers.find(({ role }) => role === name.split(" ")[0])!;
        assert.ok(bytes <= limits.maxBufferSize && bytes <= 8 * lying.bytes, `${name}: ${bytes}`);
      }
      assert.doesNotMatch(plan.notes.join(), /taps among them/);
    }
  }
});

Deno.test("tiles of which a device has no room for are not taken, however results lie", () => {
  const { problem, limits, ...more } = request("bwd-data", {
    layout: "nhwc",
    filterLayout: "krsc",
  });
  let ran = 0;
  for (const room of [16_384, 32_768, 49_152]) {
    for (const outChannels of [3, 5, 12, 20, 36, 100]) {
      for (const op of OPERATIONS) {
        const doubled = { schedule: { policy: "matrix-short", doubleBuffer: true } };
        for (const policy of [{}, { schedule: { policy: "matrix-large" } }, doubled]) {
          const plan = tryPlanConv({
            ...more,
            problem: { ...problem, op, outChannels },
            limits: { ...limits, maxComputeWorkgroupStorageSize: room },
            ...policy,
          });
          if (isRefusal(plan)) {
            assert.match(plan.text, /does not fit/);
            assert.notDeepEqual(policy, {});
            continue;
          }
          ran++;
          for (const { kernel } of plan.passes) {
            assert.ok(kernel.workgroupBytes <= room, `${kernel.name}: ${kernel.workgroupBytes}`);
          }
        }
      }
    }
  }
  // What is planned, and some of what is forced.
  assert.ok(ran > 3 * 6 * OPERATIONS.length, `${ran}`);
});
