import { H200 } from "../../../src/algorithms/device/h200.ts";
import { planConv } from "../../../src/algorithms/planner.ts";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { convProblem, OPERATIONS } from "../../../src/problem/conv_problem.ts";
import { filterLayoutFor, LAYOUTS } from "../../../src/tensor/layout.ts";
import { WGSL_LIMITS as limits } from "./limits.ts";

/**
 * One filter a channel, and few channels, of every operation, layout and rank, of equal element types and of others in turn: vectors and single
 * elements, filters in workgroup memory, packed and read as they lie, unrolled and in loops, tensors in parts, segments.
 */
export function depthwiseKernels(): Kernel[] {
  const kernels: Kernel[] = [];
  const shapes = [
    { inputSize: [40], taps: 5, stride: 1 },
    { inputSize: [9, 11], taps: 3, stride: 2 },
    { inputSize: [5, 9, 8], taps: 3, stride: 1 },
    { inputSize: [15, 14], taps: 13, stride: 1 },
  ];
  const same = [["f32", "f32"], ["f16", "f16"]] as const;
  const mixed = [["f16", "f32"], ["f32", "f16"], ["bf16", "bf16"], ["bf16", "f32"]] as const;
  let turn = 0;
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      for (const { inputSize, taps, stride } of shapes) {
        const groups = [[40, 1, 1, 4], [3, 1, 2, 3], [4, 3, 2, 3], [1, 8, 4, 4], [
          1,
          1,
          40,
          1,
        ]] as const;
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
          for (const [dtype, outDtype] of [...same, mixed[turn++ % 4]!]) {
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
            if (op === "bwd-filter") plans.push(planConv({ ...request, schedule: { splits: 9 } }));
            for (const { kernel } of plans.flatMap(({ passes }) => passes)) kernels.push(kernel);
          }
        }
      }
    }
  }
  return kernels;
}
