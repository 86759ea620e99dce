import { depthOfValue, type Elements } from "../../elements/elements.ts";
import {
  gemmOperands,
  type GemmProblem,
  gemmShape,
  type GemmTensor,
} from "../../problem/gemm_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import type { DeviceLimits } from "../plan.ts";
import { BufferList } from "../tensors.ts";

/** A product's tensors as the first buffers of a plan, the result last. */
export function gemmBuffers(
  problem: GemmProblem,
  types: Elements,
  limits: DeviceLimits,
): { buffers: BufferList; place: Partial<Record<GemmTensor, number>> } {
  const buffers = new BufferList(limits);
  const place: Partial<Record<GemmTensor, number>> = {};
  for (const which of [...gemmOperands(problem), "output"] as const) {
    const count = elementCount(gemmShape(problem, which));
    place[which] = which === "a" || which === "b"
      ? buffers.add(which, which, Math.ceil(count / depthOfValue(types)), types.storage)
      : buffers.add(which, which, count, types.result);
  }
  return { buffers, place };
}
