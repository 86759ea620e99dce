import { DEFAULT_LIMITS, type DeviceLimits } from "../../../src/algorithms/plan.ts";
import { planConv } from "../../../src/algorithms/planner.ts";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { convProblem } from "../../../src/problem/conv_problem.ts";
import type { IntegerOperands } from "../../../src/problem/conv_elements.ts";

const OPERANDS: readonly IntegerOperands[] = [
  { inputDtype: "u8", inputZeroPoint: 3, filterZeroPoint: -5 },
  { inputZeroPoint: -128, filterDtype: "u8", filterZeroPoint: "channel" },
  { inputDtype: "u8", inputZeroPoint: 128 },
];

/** Of u8 operands and zero points: what is written before a product and after it, of one and of two bindings a tensor. */
export function integerKernels(): Kernel[] {
  const small: DeviceLimits = {
    ...DEFAULT_LIMITS,
    maxStorageBufferBindingSize: 2048,
    maxStorageBuffersPerShaderStage: 10,
  };
  return [3, 8].flatMap((channels) =>
    OPERANDS.flatMap((integers) =>
      [DEFAULT_LIMITS, small].flatMap((limits) =>
        (["i32", "u8"] as const).flatMap((outDtype) => {
          const problem = convProblem({
            batch: 1,
            inChannels: channels,
            outChannels: channels,
            inputSize: limits === small ? [13, 13] : [7],
            filterSize: limits === small ? [3, 3] : [3],
            padding: "same",
          });
          const quantized = outDtype === "i32" ? {} : { scale: "channel" as const, zeroPoint: 7 };
          return planConv({
            problem,
            dtype: "i8",
            outDtype,
            layout: "nhwc",
            filterLayout: "krsc",
            epilogue: { bias: true, activation: "relu", ...quantized },
            integers,
            algorithm: "direct",
            limits,
          }).passes.map(({ kernel }) => kernel);
        })
      )
    )
  );
}
