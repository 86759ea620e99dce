import assert from "#assert";
import { UnsupportedError } from "../errors.ts";
import {
  type ConvProblem,
  convProblem,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { filterLayoutFor, LAYOUTS } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { chooseCut } from "./cut.ts";
import { H200, softwareDevice } from "./device/h200.ts";
import { DEFAULT_LIMITS } from "./plan.ts";
import { planConv, supportedAlgorithms, tryPlanConv } from "./planner.ts";
import { expectPlanned, isRefusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

const conv2 = convProblem({
  batch: 64,
  inChannels: 64,
  outChannels: 64,
  inputSize: [56, 56],
  filterSize: [3, 3],
  paddingBegin: [1, 1],
});

const h200 = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 32,
};

function request(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
  const layout = more.layout ?? "nchw";
  return {
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    limits: h200,
    ...more,
  };
}

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
  const plan = planConv(request(conv2, { policy: "huge", splits: 3 }));
  assert.match(plan.kernel, /^implicit_gemm_fwd_f32_128x128x16_.*_split$/);
  assert.throws(() => planConv(request(conv2, { policy: "enormous" })), RangeError);
  assert.throws(
    () => planConv(request(conv2, { policy: "huge", layout: "nhwc", limits: DEFAULT_LIMITS })),
    UnsupportedError,
  );
});

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

Deno.test("planConv() keeps bias and activation to the forward operation", () => {
  const epilogue = { bias: true, activation: "relu" } as const;
  assert.throws(() => planConv(request({ ...conv2, op: "bwd-data" }, { epilogue })), RangeError);
  const plan = planConv(request(conv2, { epilogue, algorithm: "implicit-gemm" }));
  assert.match(plan.kernel, /_bias_relu$/);
});

Deno.test("planConv() leaves an empty result without passes", () => {
  assert.deepEqual(planConv(request(convProblem({ ...conv2, batch: 0 }))).passes, []);
});

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

Deno.test("auto says why it compares no times, and takes direct on a CPU where implicit GEMM does not fit", () => {
  const software = request(conv2, { device: softwareDevice(4) });
  assert.match(planConv(software).notes.at(-1)!, /^auto: implicit-gemm, since nothing predicts/);
  const small = planConv({ ...software, maxWorkspaceBytes: 0 });
  assert.equal(small.algorithm, "direct");
  assert.match(small.notes.at(-1)!, /^auto: direct, implicit-gemm takes more than 0 bytes/);
  const asked = { ...software, maxWorkspaceBytes: 0, policy: "small" };
  assert.throws(() => planConv(asked), /bytes of workspace, at most 0 are allowed/);
  assert.match(planConv(request(conv2, { policy: "small" })).notes.at(-1)!, /^auto: a policy/);
});

const FLAT = { along: "place" } as const;

Deno.test("chooseCut() never makes a split without steps, and honours a forced one", () => {
  const product = {
    rows: 64,
    columns: 64,
    batches: 1,
    steps: () => 10,
    elements: 4096,
    a: FLAT,
    b: FLAT,
  };
  for (const multiprocessors of [1, 8, 132]) {
    const { splits } = chooseCut(product, { limits: h200, device: { ...H200, multiprocessors } })!;
    assert.ok(Math.ceil(10 / splits) * (splits - 1) < 10, `${splits} splits`);
  }
  assert.equal(chooseCut(product, { limits: h200, device: H200, splits: 4 })!.splits, 4);
  assert.equal(chooseCut(product, { limits: h200, device: H200, splits: 99 })!.splits, 10);
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

Deno.test("one channel to one channel is depthwise's, not a product of one row", () => {
  for (const op of OPERATIONS) {
    const problem = parseDescriptor("mb1ic1ih540oc1kh5ph2", op);
    assert.equal(planConv(request(problem)).algorithm, "depthwise", op);
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
    const asked = { algorithm: "depthwise", limits, splits: 70 } as const;
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

Deno.test("auto takes what computes f16, on a GPU's figures as on a software device's", () => {
  const limits = { ...DEFAULT_LIMITS, maxStorageBufferBindingSize: 2 ** 31 - 4 };
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (
        const descriptor of ["mb32ic64ih56oc64kh3ph1", "mb4ic16ih14oc24kh5ph2", "g8mb2ic8ih9oc8kh3"]
      ) {
        for (const device of [H200, softwareDevice(64)]) {
          const problem = parseDescriptor(descriptor, op);
          const half = {
            problem,
            dtype: "f16",
            layout,
            filterLayout: filterLayoutFor(layout),
            epilogue: NO_EPILOGUE,
            limits,
            device,
          } as const;
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
  assert.ok(isRefusal(refused) && refused.text === "dtype f64 is none of f32, f16");
  for (
    const [wrong, text] of [
      [{ layout: "xyz" }, /^layout xyz is none of nchw, nhwc, chwn$/],
      [{ outDtype: "i8" }, /^outDtype i8 is none of f32, f16$/],
      [{ splits: -1 }, /^-1 splits are no whole number from 1 on$/],
      [{ splits: 1.5, algorithm: "winrs" }, /^1.5 splits are no whole number from 1 on$/],
    ] as const
  ) {
    const asked = { ...unknown, dtype: "f32", ...wrong };
    const answer = tryPlanConv(asked as unknown as Parameters<typeof tryPlanConv>[0]);
    assert.ok(isRefusal(answer) && text.test(answer.text), JSON.stringify(answer));
  }
});
