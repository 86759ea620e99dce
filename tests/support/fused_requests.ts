/** What tests of fused Winograd's plans share. */
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { ConvProblem } from "../../src/problem/conv_problem.ts";
import { parseDescriptors } from "../../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { filterLayoutFor } from "../../src/tensor/layout.ts";

/** The limits that an NVIDIA H200 has, in round numbers. */
export const h200 = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 32,
};
const SUITE = new URL("../../bench/suites/resnet3x3.txt", import.meta.url);
/** ResNet's layers of 32 images, then of 64 and more. */
export const resnet = Deno.readTextFileSync(SUITE).split("\n").filter((line) =>
  line.startsWith("mb")
)
  .flatMap((line) => parseDescriptors(line));

/** A request of `winograd2d` in nchw on an H200, where `more` says nothing else. */
export function request(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
  const layout = more.layout ?? "nchw";
  return {
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "winograd2d",
    limits: h200,
    ...more,
  };
}
