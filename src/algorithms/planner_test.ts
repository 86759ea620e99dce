import assert from "#assert";
import { DEFAULT_LIMITS } from "./plan.ts";
import { planConv, supportedAlgorithms, tryPlanConv } from "./planner.ts";
import { isRefusal } from "./refusal.ts";
import { algorithmNames } from "./registry.ts";
import type { PlanRequest } from "./request.ts";
import { UnsupportedError } from "../errors.ts";
import {
  type ConvProblem,
  convProblem,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { LAYOUTS } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { conv2, request } from "../../tests/plan_request.ts";

Deno.test("planConv() plans nothing to do for an empty result, by every algorithm", () => {
  const empty: ConvProblem[] = [{ ...conv2, batch: 0 }, { ...conv2, outChannels: 0 }];
  let planned = 0;
  for (
    const problem of [...empty, ...empty.map((one) => ({ ...one, op: "bwd-data" as const })), {
      ...conv2,
      op: "bwd-filter" as const,
      inChannels: 0,
    }]
  ) {
    if (elementCount(tensorShape(problem, resultTensor(problem.op))) > 0) continue;
    for (const { name, reason } of supportedAlgorithms(request(problem))) {
      if (reason !== undefined) continue;
      const plan = planConv(request(problem, { algorithm: name }));
      assert.deepEqual(plan.passes, [], name);
      planned++;
    }
  }
  assert.ok(planned >= 24, `${planned}`);
});

Deno.test("tryPlanConv() plans or refuses problems without elements by every algorithm, whatever workspace may be", () => {
  const limits = [{ maxWorkspaceBytes: 0 }, { maxWorkspaceShare: 0 }, { maxWorkspaceShare: 0.5 }];
  const requests: Partial<PlanRequest>[] = [...limits, { schedule: { splits: 2 } }, {
    pair: "exact",
  }, {}];
  const names = [
    "mb0ic4oc4ih8",
    "mb1ic0oc4ih8",
    "mb1ic4oc0ih8",
    "mb0ic0oc4ih8",
    "mb1ic0oc0ih8",
    "mb0ic0oc0ih8",
    "mb1ic4oc4ih0",
  ];
  let planned = 0;
  for (const name of names) {
    const problem = parseDescriptor(`${name}kh3ph2`);
    for (const op of OPERATIONS) {
      for (const more of requests) {
        for (const algorithm of ["auto", ...algorithmNames()] as const) {
          const plan = tryPlanConv(request({ ...problem, op }, { ...more, algorithm }));
          if (isRefusal(plan)) continue;
          assert.ok(plan.workspaceBytes <= (more.maxWorkspaceBytes ?? Infinity), `${name} ${op}`);
          planned++;
        }
      }
    }
  }
  assert.ok(planned > 300, `${planned}`);
});

Deno.test("planConv() plans every operation and layout, and its bindings lie inside its buffers", () => {
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const algorithm of ["direct", "implicit-gemm"] as const) {
        const plan = planConv(request({ ...conv2, op }, { layout, algorithm }));
        assert.ok(plan.passes.length >= 1);
        for (const { kernel, bindings, grid } of plan.passes) {
          assert.equal(bindings.length, kernel.bindings.length);
          assert.ok(grid.every((size) => size >= 1 && size <= 65_535));
          for (const { buffer, offset, size } of bindings) {
            assert.ok(offset % 256 === 0 && size > 0);
            assert.ok(offset + size <= plan.buffers[buffer]!.bytes);
          }
        }
      }
    }
  }
});

Deno.test("planConv() is a pure function", () => {
  assert.deepEqual(planConv(request(conv2)), planConv(request(conv2)));
});

Deno.test("planConv() counts as workspace what it allocates beyond the problem's tensors", () => {
  const plan = planConv(request({ ...conv2, op: "bwd-filter" }));
  const own = plan.buffers.filter(({ role }) => role === "workspace");
  assert.equal(plan.workspaceBytes, own.reduce((sum, { bytes }) => sum + bytes, 0));
  assert.ok(plan.workspaceBytes > 0);
  assert.equal(planConv(request(conv2, { algorithm: "direct" })).workspaceBytes, 0);
});

Deno.test("planConv() multiplies no less than the definition", () => {
  for (const op of OPERATIONS) {
    const plan = planConv(request({ ...conv2, op }, { algorithm: "implicit-gemm" }));
    assert.ok(plan.multiplications >= 64 * 64 * 64 * 56 * 56 * 9);
  }
});

Deno.test("planConv() splits the depth where tiles are fewer than the device holds", () => {
  const deep = convProblem({
    batch: 1,
    inChannels: 512,
    outChannels: 64,
    inputSize: [7, 7],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
  const plan = planConv(request(deep));
  assert.match(plan.kernel, /_split$/);
  assert.equal(plan.passes.at(-1)!.kernel.name.startsWith("reduce_splits"), true);
  assert.doesNotMatch(planConv(request(conv2)).kernel, /_split/);
});

Deno.test("planConv() takes the policy and the splits it is told", () => {
  const plan = planConv(request(conv2, { schedule: { policy: "huge", splits: 3 } }));
  assert.match(plan.kernel, /^implicit_gemm_fwd_f32_128x128x16_.*_split$/);
  assert.throws(() => planConv(request(conv2, { schedule: { policy: "enormous" } })), RangeError);
  assert.throws(
    () =>
      planConv(
        request(conv2, { schedule: { policy: "huge" }, layout: "nhwc", limits: DEFAULT_LIMITS }),
      ),
    UnsupportedError,
  );
});

Deno.test("planConv() keeps bias and activation to the forward operation", () => {
  const epilogue = { bias: true, activation: "relu" } as const;
  assert.throws(() => planConv(request({ ...conv2, op: "bwd-data" }, { epilogue })), RangeError);
  const plan = planConv(request(conv2, { epilogue, algorithm: "implicit-gemm" }));
  assert.match(plan.kernel, /_bias_relu$/);
});

Deno.test("planConv() leaves an empty result without passes", () => {
  assert.deepEqual(planConv(request(convProblem({ ...conv2, batch: 0 }))).passes, []);
});
