import type { ConvProblem } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { filterLayoutFor } from "../src/tensor/layout.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";

/** ResNet's second layer. */
export const conv2 = parseDescriptor("mb64ic64ih56oc64kh3ph1");

/** A GPU that large tensors fit. */
export const h200 = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 32,
};

/** A request for what `auto` takes on it, of f32 and nchw where nothing else is said. */
export function request(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
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
