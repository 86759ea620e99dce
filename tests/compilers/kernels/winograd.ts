import assert from "#assert";
import { convRequest } from "../../checked_plan.ts";
import { planConv } from "../../../src/algorithms/planner.ts";
import { omegaName, OMEGAS, slicesOf } from "../../../src/algorithms/winrs/omega.ts";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { convProblem, OPERATIONS } from "../../../src/problem/conv_problem.ts";
import { LAYOUTS } from "../../../src/tensor/layout.ts";
import { FEW_WORKGROUPS } from "../../support/few_workgroups.ts";
import { WGSL_LIMITS as limits } from "./limits.ts";

/** Results of f16 operands, by another option that has two values. */
const outDtypes = { 1: "f16", 2: "f32" } as const;

/** Non-fused Winograd of one and two axes and every layout, in chunks of the batch, split and stored by fours; of f16 too. */
export function nonfusedKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const sizes of ["constant", "uniform"] as const) {
        for (const [inputSize, splits] of [[[8, 12], 1], [[9, 7], 2], [[16], 1]] as const) {
          const problem = convProblem({
            op,
            batch: 32,
            inChannels: 12,
            outChannels: 10,
            groups: 2,
            inputSize,
            filterSize: inputSize.map(() => 3),
            paddingBegin: inputSize.map(() => 1),
          });
          const request = convRequest({ limits }, problem, {
            layout,
            epilogue: { bias: op === "fwd", activation: op === "fwd" ? "silu" : "none" },
            algorithm: "winograd2d-nonfused",
            schedule: { policy: "tiny", splits },
            sizes,
          });
          const whole = planConv(request);
          const chunks = planConv({ ...request, maxWorkspaceBytes: whole.workspaceBytes - 4 });
          const half = planConv({ ...request, dtype: "f16", outDtype: outDtypes[splits] });
          const brain = planConv({ ...request, dtype: "bf16" });
          for (const { passes } of [whole, chunks, half, brain]) {
            for (const { kernel } of passes) kernels.push(kernel);
          }
        }
      }
    }
  }
  return kernels;
}

/**
 * Fused Winograd of one and two tiled axes and every layout: with outer axes, pieces of the filter, remainders, stores
 * by fours, sums in parts, tensors in parts, the papers' layouts of sums and every policy that is taken by itself.
 */
export function fusedKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const shapes = [
    { algorithm: "winograd1d", inputSize: [16], filter: 3, schedule: { flush: 8 } },
    { algorithm: "winograd1d", inputSize: [9, 13], filter: 5, tile: "F(2,3)", stride: [2, 1] },
    {
      algorithm: "winograd1d",
      inputSize: [3, 9, 8],
      filter: 3,
      schedule: { policy: "16x8x4_4x4" },
    },
    { algorithm: "winograd1d", inputSize: [9, 16], filter: 9, schedule: { policy: "8x8x4_4x4" } },
    {
      algorithm: "winograd1d",
      inputSize: [9, 16],
      filter: 3,
      schedule: { policy: "32x32x3_4x4a" },
    },
    {
      algorithm: "winograd1d",
      inputSize: [9, 13],
      filter: 3,
      schedule: { policy: "16x16x4_4x4a", flush: 8 },
    },
    { algorithm: "winograd2d", inputSize: [9, 7], filter: 3, schedule: { flush: 4 } },
    { algorithm: "winograd2d", inputSize: [9, 8], filter: 4, tile: "F(4x2,2x4)" },
    { algorithm: "winograd2d", inputSize: [4, 9, 8], filter: 5, schedule: { policy: "8x8x2_4x4" } },
  ] as const;
  for (
    const { inputSize, filter, stride, ...more } of shapes.map((shape) => ({
      stride: undefined,
      ...shape,
    }))
  ) {
    for (const op of ["fwd", "bwd-data"] as const) {
      for (const layout of LAYOUTS) {
        const problem = convProblem({
          op,
          batch: 4,
          inChannels: 24,
          outChannels: 16,
          groups: 2,
          inputSize: [...inputSize],
          filterSize: inputSize.map(() => filter),
          paddingBegin: inputSize.map(() => 2),
          ...(stride === undefined || op === "bwd-data" ? {} : { stride: [...stride] }),
        });
        const request = convRequest({ limits }, problem, {
          layout,
          epilogue: { bias: op === "fwd", activation: op === "fwd" ? "gelu" : "none" },
          sizes: op === "fwd" ? "constant" : "uniform",
          ...more,
        });
        const { flush: _, ...schedule } = request.schedule ?? {};
        const whole = { ...request, schedule };
        const half = { ...whole, dtype: "f16", outDtype: op === "fwd" ? "f16" : "f32" } as const;
        const brain = { ...whole, dtype: "bf16" } as const;
        for (const { passes } of [request, half, brain].map(planConv)) {
          kernels.push(...passes.map(({ kernel }) => kernel));
        }
        if (filter !== 9) continue;
        const parts = { ...limits, maxStorageBufferBindingSize: 49_152 };
        const divided = planConv({ ...request, limits: parts });
        assert.match(divided.kernel, /_parts/);
        kernels.push(...divided.passes.map(({ kernel }) => kernel));
      }
    }
  }
  const problem = convProblem({
    ...{ batch: 6, inChannels: 20, outChannels: 10 },
    ...{ inputSize: [6, 7], filterSize: [3, 3], paddingBegin: [1, 1] },
  });
  for (const layout of LAYOUTS) {
    for (const sizes of ["constant", "uniform"] as const) {
      const tail = {
        algorithm: "winograd1d",
        tile: "F(6,3)",
        schedule: { policy: "8x8x4_4x4" },
      } as const;
      const { kernel, passes } = planConv(
        convRequest({ limits }, problem, { ...tail, layout, sizes, device: FEW_WORKGROUPS }),
      );
      assert.match(kernel, /_tail$/);
      kernels.push(...passes.map(({ kernel }) => kernel));
    }
  }
  return kernels;
}

/**
 * Every kernel of WinRS and every layout, of the largest one each: with and without buckets, added to another's, stored in parts, of one to three
 * axes and every policy that is taken by itself.
 */
export function winrsKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const few = { ...limits, maxComputeWorkgroupStorageSize: 16_384 };
  const shapes = [
    {
      inputSize: [40],
      filterSize: [9],
      pair: "a16n9r8,a8n3r6",
      schedule: { splits: 1 },
      layouts: LAYOUTS,
    },
    {
      inputSize: [5, 9, 8],
      filterSize: [2, 3, 3],
      pair: "a8n3r6,a4n3r2",
      schedule: { splits: 4, flush: 8 },
      layouts: LAYOUTS,
    },
    ...OMEGAS.map((omega, i) => ({
      inputSize: [9, 24],
      filterSize: [omega.rows?.n ?? 3, omega.n],
      pair: omegaName(omega),
      schedule: { splits: 3, flush: 16 },
      ...(omega.n % 2 === 0 ? { limits: few } : {}),
      // The largest take long to compile: one layout each.
      layouts: slicesOf(omega) >= 16 ? [LAYOUTS[i % LAYOUTS.length]!] : LAYOUTS,
    })),
  ];
  for (const { inputSize, filterSize, layouts, ...more } of shapes) {
    for (const layout of layouts) {
      const problem = convProblem({
        op: "bwd-filter",
        batch: 8,
        inChannels: 24,
        outChannels: 16,
        groups: 2,
        inputSize,
        filterSize,
        paddingBegin: inputSize.map(() => 1),
      });
      const request = convRequest({ limits }, problem, {
        layout,
        algorithm: "winrs",
        epilogue: { bias: false, activation: "none" },
        // The large ones take long to compile: each layout in one of the two ways.
        sizes: layout === "nchw" ? "uniform" : "constant",
        ...more,
      });
      kernels.push(...planConv(request).passes.map(({ kernel }) => kernel));
      // Nested kernels are in f32 alone.
      if ("pair" in more && more.pair.includes("x")) continue;
      const variant = { halfTile: true };
      const tiles = planConv({
        ...request,
        dtype: "f16",
        schedule: { ...request.schedule, ...variant },
        maxBoundRatio: 1e9,
      });
      kernels.push(...tiles.passes.map(({ kernel }) => kernel));
      if (inputSize.length === 2) continue;
      const short = [["f16", "f16"], ["f16", "f32"], ["bf16", "bf16"]] as const;
      for (const [dtype, outDtype] of short) {
        const half = planConv({ ...request, dtype, outDtype });
        kernels.push(...half.passes.map(({ kernel }) => kernel));
      }
      if (inputSize.length > 1) continue;
      // Buckets in several bindings are added to what they lie in.
      const parts = {
        ...limits,
        maxStorageBufferBindingSize: 4096,
        maxStorageBuffersPerShaderStage: 32,
      };
      const divided = planConv({
        ...request,
        limits: parts,
        schedule: { ...request.schedule, splits: 3 },
      });
      kernels.push(...divided.passes.map(({ kernel }) => kernel));
    }
  }
  return kernels;
}
