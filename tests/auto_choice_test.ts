/** What `auto` takes. */
import assert from "#assert";
import { H200 } from "../src/algorithms/device/h200.ts";
import { softwareDevice } from "../src/algorithms/device/software.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { planConv, supportedAlgorithms, tryPlanConv } from "../src/algorithms/planner.ts";
import { expectPlanned, isRefusal } from "../src/algorithms/refusal.ts";
import { convProblem, type Operation, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { type Layout, LAYOUTS } from "../src/tensor/layout.ts";
import { conv2, request } from "./plan_request.ts";

Deno.test("auto takes depthwise where a group's rows would leave a tile empty, and direct where strides are huge", () => {
  assert.equal(planConv(request(convProblem({ ...conv2, groups: 32 }))).algorithm, "depthwise");
  const wide = { ...conv2, inChannels: 128, outChannels: 8, groups: 2 };
  assert.equal(planConv(request(convProblem(wide))).algorithm, "depthwise");
  const { outputSize: _, ...free } = wide;
  const far = convProblem({ ...free, stride: [70_000, 1] });
  assert.equal(planConv(request(far)).algorithm, "direct");
  const depthwise = convProblem({ ...conv2, groups: 64 });
  const plan = planConv(request({ ...depthwise, op: "bwd-filter" }));
  assert.equal(plan.algorithm, "depthwise");
  assert.ok(plan.workspaceBytes > 0);
  // Of what workspace there is it takes fewer segments.
  for (const share of [0, 0.1, 0.9]) {
    const maxWorkspaceBytes = Math.floor(share * plan.workspaceBytes);
    const less = planConv(request({ ...depthwise, op: "bwd-filter" }, { maxWorkspaceBytes }));
    assert.equal(less.algorithm, "depthwise");
    assert.ok(less.workspaceBytes <= maxWorkspaceBytes);
  }
  const reasons = new Map(
    supportedAlgorithms(request(depthwise)).map(({ name, reason }) => [name, reason]),
  );
  for (const name of ["direct", "depthwise", "implicit-gemm", "im2col", "im2win"] as const) {
    assert.ok(reasons.has(name) && reasons.get(name) === undefined, name);
  }
});

Deno.test("auto takes on a CPU what its driver is fast at, and nothing that takes seconds to compile", () => {
  const taken = (adapter: string, problem: string, op: Operation, layout: Layout = "nchw") => {
    const device = softwareDevice(4, adapter);
    const plan = planConv(request(parseDescriptor(problem, op), { device, layout }));
    for (const { algorithm, reason } of plan.rivals!) {
      const slow = ["winograd1d", "winrs"].includes(algorithm);
      assert.ok(!slow || reason !== undefined, algorithm);
    }
    return plan.algorithm;
  };
  const [lavapipe, swiftshader] = [
    "llvmpipe (LLVM 15.0.6, 256 bits)",
    "SwiftShader Device (Subzero)",
  ];
  for (const adapter of [lavapipe, swiftshader]) {
    assert.equal(taken(adapter, "mb1ic3ih64oc8kh5sh2ph2", "fwd", "nhwc"), "depthwise");
    assert.equal(taken(adapter, "mb1ic64ih28oc64kh1", "fwd"), "implicit-gemm");
    assert.equal(taken(adapter, "mb2ic16ih28oc16kh3ph1", "bwd-filter"), "winograd2d-nonfused");
  }
  // Transforms are slow on SwiftShader.
  assert.equal(taken(lavapipe, "mb4ic8iw256oc16kw5pw2", "fwd"), "winograd2d-nonfused");
  assert.equal(taken(swiftshader, "mb4ic8iw256oc16kw5pw2", "fwd"), "implicit-gemm");
});

Deno.test("auto says why it compares no times, and takes direct on a CPU where nothing else fits", () => {
  const software = request(conv2, { device: softwareDevice(4) });
  const small = planConv({ ...software, maxWorkspaceBytes: 0 });
  assert.equal(small.algorithm, "direct");
  const asked = {
    ...software,
    maxWorkspaceBytes: 0,
    schedule: { ...software.schedule, policy: "small" },
  };
  assert.throws(() => planConv(asked), /bytes of workspace, at most 0 are allowed/);
  assert.match(
    planConv(request(conv2, { schedule: { policy: "small" } })).notes.at(-1)!,
    /^auto: a policy/,
  );
});

Deno.test("one channel to one channel is depthwise's, not a product of one row", () => {
  for (const op of OPERATIONS) {
    const problem = parseDescriptor("mb1ic1ih540oc1kh5ph2", op);
    assert.equal(planConv(request(problem)).algorithm, "depthwise", op);
  }
});

Deno.test("auto takes what computes f16, on a GPU's figures as on a software device's", () => {
  const limits = { ...DEFAULT_LIMITS, maxStorageBufferBindingSize: 2 ** 31 - 4 };
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (
        const descriptor of ["mb32ic64ih56oc64kh3ph1", "mb4ic16ih14oc24kh5ph2", "g8mb2ic8ih9oc8kh3"]
      ) {
        for (const device of [H200, softwareDevice(64)]) {
          const problem = parseDescriptor(descriptor, op);
          const half = request(problem, { dtype: "f16", layout, limits, device });
          const plan = expectPlanned(tryPlanConv({ ...half, algorithm: "auto" }));
          assert.ok(plan.passes.length > 0);
          const other = op === "bwd-filter" ? "winograd2d" : "winrs";
          const named = tryPlanConv({ ...half, algorithm: other });
          assert.ok(
            isRefusal(named) && / does not support this problem: .* \(\S+ does\)$/.test(named.text),
          );
        }
      }
    }
  }
  const unknown = {
    problem: parseDescriptor("mb1ic4ih8oc4kh3", "fwd"),
    layout: "nchw",
    filterLayout: "kcrs",
    epilogue: NO_EPILOGUE,
    limits,
    algorithm: "auto",
    dtype: "f64",
  };
  const refused = tryPlanConv(unknown as unknown as Parameters<typeof tryPlanConv>[0]);
  assert.ok(isRefusal(refused) && refused.text === "dtype f64 is none of f32, f16, bf16, i8");
  for (
    const [wrong, text] of [
      [{ layout: "xyz" }, /^layout xyz is none of nchw, nhwc, chwn$/],
      [{ outDtype: "i8" }, /^outDtype i8 is none of f32, f16$/],
      [{ schedule: { splits: -1 } }, /^-1 splits are no whole number from 1 on$/],
      [
        { schedule: { splits: 1.5 }, algorithm: "winrs" },
        /^1.5 splits are no whole number from 1 on$/,
      ],
    ] as const
  ) {
    const asked = { ...unknown, dtype: "f32", ...wrong };
    const answer = tryPlanConv(asked as unknown as Parameters<typeof tryPlanConv>[0]);
    assert.ok(isRefusal(answer) && text.test(answer.text), JSON.stringify(answer));
  }
});
