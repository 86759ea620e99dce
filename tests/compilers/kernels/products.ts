import assert from "#assert";
import { H200 } from "../../../src/algorithms/device/h200.ts";
import { softwareDevice } from "../../../src/algorithms/device/software.ts";
import { planGemm } from "../../../src/algorithms/gemm/plan.ts";
import { convRequest } from "../../checked_plan.ts";
import { planConv } from "../../../src/algorithms/planner.ts";
import { TILE_POLICIES } from "../../../src/kernels/policy.ts";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { convProblem, OPERATIONS } from "../../../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../../../src/problem/activations.ts";
import { gemmProblem, TRANSPOSES } from "../../../src/problem/gemm_problem.ts";
import { LAYOUTS } from "../../../src/tensor/layout.ts";
import { ONE_WORKGROUP } from "../../support/one_workgroup.ts";
import { WGSL_LIMITS as limits } from "./limits.ts";
import { request } from "../../plan_request.ts";

/** Operands' and results' types of 16 bits. */
const SHORT = [["f16", "f16"], ["f16", "f32"], ["f32", "f16"], ["bf16", "bf16"]] as const;

/** Implicit GEMM, `direct` and im2col of every operation, layout, rank, element and activation; each policy once. */
export function implicitKernels(): Kernel[] {
  const found = new Map<string, Kernel>();
  const add = (
    rank: number,
    channels: number,
    { schedule, ...more }: Partial<Parameters<typeof planConv>[0]> & {
      op: typeof OPERATIONS[number];
    },
  ) => {
    const cut = { schedule: { policy: "tiny", ...schedule } };
    const problem = convProblem({
      op: more.op,
      batch: 4,
      inChannels: channels,
      outChannels: channels,
      inputSize: new Array(rank).fill(5),
      filterSize: new Array(rank).fill(3),
      paddingBegin: new Array(rank).fill(1),
    });
    const plan = planConv(request(problem, {
      ...{ algorithm: "implicit-gemm", sizes: "uniform", limits },
      // One thread a result has no tiles.
      ...(more.algorithm === "direct" ? {} : cut),
      ...more,
    }));
    for (const { kernel } of plan.passes) found.set(kernel.name, kernel);
  };
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const rank of [1, 2, 3]) {
        add(rank, 5, { op, layout, algorithm: "direct" });
        for (const channels of [5, 16]) {
          for (const splits of [1, 2]) {
            add(rank, channels, { op, layout, schedule: { splits } });
            add(rank, channels, { op, layout, schedule: { splits }, sizes: "constant" });
          }
        }
      }
    }
    for (const layout of LAYOUTS) {
      for (const sizes of ["constant", "uniform"] as const) {
        add(2, 80, { op, layout, sizes, schedule: { balance: "stream-k" }, device: ONE_WORKGROUP });
      }
    }
    for (const layout of LAYOUTS) {
      for (const algorithm of ["direct", "implicit-gemm", "im2col"] as const) {
        if (algorithm === "im2col" && op !== "fwd") continue;
        for (const [dtype, outDtype] of SHORT) {
          for (const splits of [1, 2]) {
            const half = { op, layout, algorithm, dtype, outDtype, schedule: { splits } } as const;
            add(2, 5, half);
            add(2, 16, { ...half, sizes: "constant" });
          }
        }
      }
    }
    for (const { name } of TILE_POLICIES) add(2, 16, { op, schedule: { policy: name } });
    add(2, 16, { op, limits: { ...limits, maxStorageBufferBindingSize: 5120 } });
  }
  for (const algorithm of ["direct", "implicit-gemm"] as const) {
    for (const channels of [5, 16, 64]) {
      for (const rank of [1, 2, 3]) {
        for (const splits of [1, 2]) {
          for (const sizes of ["constant", "uniform"] as const) {
            const int8 = {
              op: "fwd",
              layout: "nhwc",
              dtype: "i8",
              algorithm,
              schedule: { splits },
              sizes,
            } as const;
            add(rank, channels, { ...int8, epilogue: { bias: true, activation: "relu" } });
            for (const scale of [0.25, "channel"] as const) {
              const epilogue = { bias: true, activation: "relu", scale } as const;
              add(rank, channels, { ...int8, outDtype: "i8", epilogue });
            }
          }
        }
      }
    }
  }
  for (const activation of ACTIVATIONS) {
    for (const splits of [1, 2]) {
      add(2, 16, { op: "fwd", schedule: { splits }, epilogue: { bias: true, activation } });
      add(2, 16, {
        op: "fwd",
        schedule: { splits },
        layout: "nhwc",
        epilogue: { bias: false, activation },
      });
    }
  }
  return [...found.values()];
}

/** Backward-data by classes of strides, with a tile for each and as rows, of every layout, rank and element. */
export function strideKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const shapes = [
    { inChannels: 64, filterSize: [3], stride: [2] },
    { inChannels: 64, filterSize: [3, 2], stride: [2, 3] },
    { inChannels: 64, filterSize: [3, 1, 2], stride: [2, 1, 4], dilation: [2, 1, 3] },
    { inChannels: 3, filterSize: [4, 4], stride: [4, 4], even: true },
    { inChannels: 3, filterSize: [4], stride: [2] },
    { inChannels: 3, filterSize: [2, 2], stride: [2, 2], even: true },
    { inChannels: 16, filterSize: [3, 3], stride: [2, 2] },
    { inChannels: 3, filterSize: [2, 4, 4], stride: [1, 2, 2] },
  ];
  for (const { even = false, ...shape } of shapes) {
    for (const layout of LAYOUTS) {
      for (const sizes of ["constant", "uniform"] as const) {
        const problem = convProblem({
          ...shape,
          op: "bwd-data",
          batch: 4,
          outChannels: 20,
          inputSize: shape.filterSize.map(() => even ? 12 : 9),
          paddingBegin: shape.filterSize.map(() => even ? 0 : 1),
        });
        const request = convRequest({ limits }, problem, {
          layout,
          epilogue: { bias: false, activation: "none" },
          algorithm: "implicit-gemm",
          schedule: { policy: "tiny" },
          sizes,
          device: softwareDevice(2),
        });
        const variant = { packedFilter: true };
        const plans = [
          planConv(request),
          planConv({ ...request, dtype: "f16" }),
          planConv({ ...request, dtype: "bf16", schedule: { ...request.schedule, ...variant } }),
          planConv({ ...request, schedule: { ...request.schedule, ...variant } }),
          planConv({ ...request, schedule: { ...request.schedule, splits: 2, ...variant } }),
          planConv({
            ...request,
            schedule: { ...request.schedule, balance: "stream-k", ...variant },
            device: ONE_WORKGROUP,
          }),
          planConv({ ...request, dtype: "f16", schedule: { ...request.schedule, ...variant } }),
        ];
        for (const { kernel } of plans.flatMap(({ passes }) => passes)) kernels.push(kernel);
      }
    }
  }
  for (const trait of ["_r_", "_t_", "_rr_", "_tt_", "_rt_", "_rrr_", "_trt_", "_r4", "_p4"]) {
    assert.ok(kernels.some(({ name }) => name.includes(trait)), trait);
  }
  return kernels;
}

/** Products of every transpose, as vectors and as single elements, split and packed, with every epilogue. */
export function gemmKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const epilogues = [
    {},
    { alpha: 0.5, beta: -2, bias: "row", activation: "gelu", residual: true },
    { bias: "column", activation: "relu" },
  ] as const;
  for (const transpose of TRANSPOSES) {
    for (const size of [33, 64, 2049]) {
      for (const splits of [1, 2]) {
        for (const epilogue of epilogues) {
          const problem = gemmProblem({ m: size, n: size, k: size, transpose, ...epilogue });
          const plan = planGemm({
            problem,
            dtype: "f32",
            schedule: { policy: "tiny", splits },
            limits,
          });
          kernels.push(...plan.passes.map(({ kernel }) => kernel));
        }
      }
    }
  }
  return kernels;
}

/** Matrices times one vector and more, of every transpose, vectors and single elements, split and not, on a GPU and a CPU. */
export function gemvKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const epilogues = [
    {},
    { alpha: 2, beta: -2, bias: "row", activation: "relu", residual: true },
    { bias: "column", activation: "relu" },
  ] as const;
  let turn = 0;
  for (const dtype of ["f32", "f16", "bf16", "i8"] as const) {
    for (const transpose of TRANSPOSES) {
      for (const [m, n] of [[1, 64], [33, 1], [3, 68], [64, 5], [16, 1001]] as const) {
        for (const k of [33, 512]) {
          for (const splits of [1, 2]) {
            const epilogue = epilogues[turn++ % epilogues.length];
            const problem = gemmProblem({ m, n, k, transpose, ...epilogue });
            const sizes = turn % 2 === 0 ? "constant" : "uniform";
            const device = turn % 5 === 0 ? softwareDevice(4) : H200;
            const plan = planGemm({
              problem,
              dtype,
              schedule: { policy: "gemv", splits },
              limits,
              sizes,
              device,
            });
            kernels.push(...plan.passes.map(({ kernel }) => kernel));
          }
        }
      }
    }
  }
  assert.ok(kernels.some(({ workgroupBytes }) => workgroupBytes === 0));
  return kernels;
}
