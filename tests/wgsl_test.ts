/** Every generated kernel passes both compilers: Deno's naga, and Dawn's Tint on its null device. */
import assert from "#assert";
import { H200, softwareDevice } from "../src/algorithms/device/h200.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import { omegaName, OMEGAS } from "../src/algorithms/winrs/omega.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { openValidator } from "../src/gpu/validate.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { TILE_POLICIES } from "../src/kernels/policy.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { convProblem, OPERATIONS } from "../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../src/problem/epilogue.ts";
import { gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const limits = { ...DEFAULT_LIMITS, maxComputeWorkgroupStorageSize: 32_768 };

/** Kernels of every algorithm, operation, layout, rank and activation; each policy once. */
function kernels(): Kernel[] {
  const found = new Map<string, Kernel>();
  const add = (
    rank: number,
    channels: number,
    more: Partial<Parameters<typeof planConv>[0]> & { op: typeof OPERATIONS[number] },
  ) => {
    const layout = more.layout ?? "nchw";
    const problem = convProblem({
      op: more.op,
      batch: 4,
      inChannels: channels,
      outChannels: channels,
      inputSize: new Array(rank).fill(5),
      filterSize: new Array(rank).fill(3),
      paddingBegin: new Array(rank).fill(1),
    });
    const plan = planConv({
      problem,
      dtype: "f32",
      layout,
      filterLayout: filterLayoutFor(layout),
      epilogue: { bias: false, activation: "none" },
      algorithm: "implicit-gemm",
      policy: "tiny",
      sizes: "uniform",
      limits,
      ...more,
    });
    for (const { kernel } of plan.passes) found.set(kernel.name, kernel);
  };
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const rank of [1, 2, 3]) {
        add(rank, 5, { op, layout, algorithm: "direct" });
        for (const channels of [5, 16]) {
          for (const splits of [1, 2]) {
            add(rank, channels, { op, layout, splits });
            add(rank, channels, { op, layout, splits, sizes: "constant" });
          }
        }
      }
    }
    for (const layout of LAYOUTS) {
      for (const sizes of ["constant", "uniform"] as const) {
        add(2, 80, { op, layout, sizes, balance: "stream-k", device: softwareDevice(2) });
      }
    }
    for (const layout of LAYOUTS) {
      for (const algorithm of ["direct", "implicit-gemm", "im2col"] as const) {
        for (const [dtype, outDtype] of [["f16", "f16"], ["f16", "f32"], ["f32", "f16"]] as const) {
          for (const splits of [1, 2]) {
            const half = { op, layout, algorithm, dtype, outDtype, splits } as const;
            add(2, 5, half);
            add(2, 16, { ...half, sizes: "constant" });
          }
        }
      }
    }
    for (const { name } of TILE_POLICIES) add(2, 16, { op, policy: name });
    add(2, 16, { op, limits: { ...limits, maxStorageBufferBindingSize: 5120 } });
  }
  for (const activation of ACTIVATIONS) {
    for (const splits of [1, 2]) {
      add(2, 16, { op: "fwd", splits, epilogue: { bias: true, activation } });
      add(2, 16, { op: "fwd", splits, layout: "nhwc", epilogue: { bias: false, activation } });
    }
  }
  for (const kernel of gemmKernels()) found.set(kernel.name, kernel);
  for (const kernel of nonfusedKernels()) found.set(kernel.name, kernel);
  for (const kernel of fusedKernels()) found.set(kernel.name, kernel);
  for (const kernel of winrsKernels()) found.set(kernel.name, kernel);
  for (const kernel of windowKernels()) found.set(kernel.name, kernel);
  for (const kernel of strideKernels()) found.set(kernel.name, kernel);
  for (const kernel of depthwiseKernels()) found.set(kernel.name, kernel);
  return [...found.values()];
}

/** Backward-data by classes of strides, with a tile for each and as rows, of every layout, rank and element. */
function strideKernels(): Kernel[] {
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
        const request = {
          problem,
          dtype: "f32",
          layout,
          filterLayout: filterLayoutFor(layout),
          epilogue: { bias: false, activation: "none" },
          algorithm: "implicit-gemm",
          policy: "tiny",
          sizes,
          limits,
          device: softwareDevice(2),
        } as const;
        const variant = { packedFilter: true };
        const plans = [
          planConv(request),
          planConv({ ...request, dtype: "f16" }),
          planConv({ ...request, variant }),
          planConv({ ...request, splits: 2, variant }),
          planConv({ ...request, balance: "stream-k", variant }),
          planConv({ ...request, dtype: "f16", variant }),
          planConv({ ...request, variant: { ...variant, microKernel: false } }),
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

/** im2col and im2win of every layout and rank, interleaved or not, in chunks of the batch, with every variant. */
function windowKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const runs = [
    ["im2col", OPERATIONS],
    ["im2win", ["fwd"]],
    ["im2win-fused", ["fwd"]],
  ] as const;
  const variants = [
    { microKernel: false },
    { vectorLoads: false },
    { prefetch: false },
    { doubleBuffer: true },
  ];
  for (const [algorithm, ops] of runs) {
    for (const op of ops) {
      for (const layout of LAYOUTS) {
        for (const inputSize of [[9], [9, 7], [5, 6, 7]]) {
          for (const [batch, channels] of [[8, 6], [6, 32]] as const) {
            const problem = convProblem({
              op,
              batch,
              inChannels: channels,
              outChannels: 10,
              groups: 2,
              inputSize,
              filterSize: inputSize.map(() => 3),
              paddingBegin: inputSize.map(() => 1),
              stride: inputSize.map(() => 2),
            });
            const request = {
              problem,
              dtype: "f32",
              layout,
              filterLayout: filterLayoutFor(layout),
              epilogue: { bias: op === "fwd", activation: op === "fwd" ? "silu" : "none" },
              algorithm,
              policy: "tiny",
              splits: 1,
              sizes: batch === 8 ? "uniform" : "constant",
              limits,
            } as const;
            const whole = planConv(request);
            const plans = [whole, planConv({ ...request, splits: 2 })];
            if (algorithm !== "im2win-fused") {
              plans.push(planConv({ ...request, maxWorkspaceBytes: whole.workspaceBytes - 4 }));
            }
            if (inputSize.length === 2) {
              plans.push(...variants.map((variant) => planConv({ ...request, variant })));
            }
            for (const { kernel } of plans.flatMap(({ passes }) => passes)) kernels.push(kernel);
          }
        }
      }
    }
  }
  return kernels;
}

/**
 * One filter a channel of every operation, layout, rank and pair of element types: vectors and single elements, filters
 * in workgroup memory, packed and read as they lie, unrolled and in loops, tensors in parts, segments.
 */
function depthwiseKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const shapes = [
    { inputSize: [40], taps: 5, stride: 1 },
    { inputSize: [9, 11], taps: 3, stride: 2 },
    { inputSize: [5, 9, 8], taps: 3, stride: 1 },
    { inputSize: [15, 14], taps: 13, stride: 1 },
  ];
  const types = [["f32", "f32"], ["f16", "f16"], ["f16", "f32"], ["f32", "f16"]] as const;
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const { inputSize, taps, stride } of shapes) {
        const groups = [[40, 1, 1, 4], [3, 1, 2, 3], [4, 3, 2, 3]] as const;
        for (const [channels, inputs, multiplier, batch] of groups) {
          const problem = convProblem({
            op,
            batch,
            groups: channels,
            inChannels: channels * inputs,
            outChannels: channels * multiplier,
            inputSize,
            filterSize: inputSize.map(() => taps),
            paddingBegin: inputSize.map(() => 1),
            stride: inputSize.map(() => stride),
          });
          for (const [dtype, outDtype] of types) {
            const request = {
              problem,
              dtype,
              outDtype,
              layout,
              filterLayout: filterLayoutFor(layout),
              epilogue: { bias: op === "fwd", activation: op === "fwd" ? "silu" : "none" },
              algorithm: "depthwise",
              sizes: dtype === outDtype ? "uniform" : "constant",
              // Few multiprocessors are filled by few threads, which make long runs.
              device: { ...H200, multiprocessors: dtype === outDtype ? 1 : 132 },
              limits: dtype === "f16"
                ? limits
                : { ...limits, maxStorageBufferBindingSize: 122_880 },
            } as const;
            const plans = [planConv(request)];
            if (op === "bwd-filter") plans.push(planConv({ ...request, splits: 9 }));
            for (const { kernel } of plans.flatMap(({ passes }) => passes)) kernels.push(kernel);
          }
        }
      }
    }
  }
  return kernels;
}

/** Non-fused Winograd of one and two axes and every layout, in chunks of the batch, split and stored by fours. */
function nonfusedKernels(): Kernel[] {
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
          const request = {
            problem,
            dtype: "f32",
            layout,
            filterLayout: filterLayoutFor(layout),
            epilogue: { bias: op === "fwd", activation: op === "fwd" ? "silu" : "none" },
            algorithm: "winograd2d-nonfused",
            policy: "tiny",
            splits,
            sizes,
            limits,
          } as const;
          const whole = planConv(request);
          const chunks = planConv({ ...request, maxWorkspaceBytes: whole.workspaceBytes - 4 });
          for (const { kernel } of [...whole.passes, ...chunks.passes]) kernels.push(kernel);
        }
      }
    }
  }
  return kernels;
}

/**
 * Fused Winograd of one and two tiled axes and every layout: with outer axes, pieces of the filter, remainders, stores
 * by fours, second accumulators, tensors in parts and every policy that is taken by itself.
 */
function fusedKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const shapes = [
    { algorithm: "winograd1d", inputSize: [16], filter: 3, flush: 8 },
    { algorithm: "winograd1d", inputSize: [9, 13], filter: 5, tile: "F(2,3)", stride: [2, 1] },
    { algorithm: "winograd1d", inputSize: [3, 9, 8], filter: 3, policy: "16x8x4_4x4d" },
    { algorithm: "winograd1d", inputSize: [9, 16], filter: 9, policy: "8x8x4_4x4" },
    { algorithm: "winograd2d", inputSize: [9, 7], filter: 3, flush: 4 },
    { algorithm: "winograd2d", inputSize: [9, 8], filter: 4, tile: "F(4x2,2x4)" },
    { algorithm: "winograd2d", inputSize: [4, 9, 8], filter: 5, policy: "8x8x2_4x4" },
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
        const request = {
          problem,
          dtype: "f32",
          layout,
          filterLayout: filterLayoutFor(layout),
          epilogue: { bias: op === "fwd", activation: op === "fwd" ? "gelu" : "none" },
          sizes: op === "fwd" ? "constant" : "uniform",
          limits,
          ...more,
        } as const;
        kernels.push(...planConv(request).passes.map(({ kernel }) => kernel));
        if (filter !== 9) continue;
        const parts = { ...limits, maxStorageBufferBindingSize: 49_152 };
        const divided = planConv({ ...request, limits: parts });
        assert.match(divided.kernel, /_parts/);
        kernels.push(...divided.passes.map(({ kernel }) => kernel));
      }
    }
  }
  return kernels;
}

/**
 * Every kernel of WinRS and every layout: with and without buckets, added to another's, stored in parts, of one to three
 * axes and every policy that is taken by itself.
 */
function winrsKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const few = { ...limits, maxComputeWorkgroupStorageSize: 16_384 };
  const shapes = [
    { inputSize: [40], filterSize: [9], pair: "a16n9r8,a8n3r6", splits: 1 },
    { inputSize: [5, 9, 8], filterSize: [2, 3, 3], pair: "a8n3r6,a4n3r2", splits: 4, flush: 8 },
    ...OMEGAS.map((omega) => ({
      inputSize: [9, 24],
      filterSize: [3, omega.n],
      pair: omegaName(omega),
      splits: 3,
      flush: 16,
      ...(omega.n % 2 === 0 ? { limits: few } : {}),
    })),
  ];
  for (const { inputSize, filterSize, ...more } of shapes) {
    for (const layout of LAYOUTS) {
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
      const request = {
        problem,
        dtype: "f32",
        algorithm: "winrs",
        layout,
        filterLayout: filterLayoutFor(layout),
        epilogue: { bias: false, activation: "none" },
        // The large ones take long to compile: each layout in one of the two ways.
        sizes: layout === "nchw" ? "uniform" : "constant",
        limits,
        ...more,
      } as const;
      kernels.push(...planConv(request).passes.map(({ kernel }) => kernel));
    }
  }
  return kernels;
}

/** Products of every transpose, as vectors and as single elements, split and packed, with every epilogue. */
function gemmKernels(): Kernel[] {
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
          const plan = planGemm({ problem, dtype: "f32", policy: "tiny", splits, limits });
          kernels.push(...plan.passes.map(({ kernel }) => kernel));
        }
      }
    }
  }
  return kernels;
}

for (const backend of BACKENDS) {
  Deno.test(`every kernel is valid WGSL to ${backend}`, async () => {
    using validator = await openValidator(backend);
    const all = kernels();
    assert.ok(all.length > 100, `${all.length} kernels`);
    for (const kernel of all) {
      const messages = await validator.validate(kernel);
      const errors = messages.filter(({ type }) => type === "error");
      assert.deepEqual(errors, [], kernel.name);
    }
  });
}
