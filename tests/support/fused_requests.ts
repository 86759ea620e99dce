/** What tests of fused Winograd's plans share. */
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { ConvProblem } from "../../src/problem/conv_problem.ts";
import { parseDescriptors } from "../../src/problem/descriptor.ts";
import { request as planRequest } from "../plan_request.ts";

const SUITE = new URL("../../bench/suites/resnet3x3.txt", import.meta.url);
/** ResNet's layers of 32 images, then of 64 and more. */
export const resnet = Deno.readTextFileSync(SUITE).split("\n").filter((line) =>
  line.startsWith("mb")
)
  .flatMap((line) => parseDescriptors(line));

/** A request of `winograd2d` in nchw on an H200, where `more` says nothing else. */
export function request(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
  return planRequest(problem, { algorithm: "winograd2d", ...more });
}
