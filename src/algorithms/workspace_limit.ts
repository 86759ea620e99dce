import { type ConvTensor, resultTensor, tensorShape } from "../problem/conv_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { PlanRequest } from "./request.ts";
import { operandBytes, resultBytes } from "./tensors.ts";

/** Bytes of the problem's tensors. */
export function tensorBytes(request: PlanRequest): number {
  const { problem } = request;
  const bytes = (which: ConvTensor) =>
    elementCount(tensorShape(problem, which)) *
    (which === resultTensor(problem.op) ? resultBytes(request) : operandBytes(request));
  return bytes("input") + bytes("filter") + bytes("output");
}

/** The request with its share of the tensors as bytes, or fewer where it allows fewer. */
export function withWorkspaceBytes(request: PlanRequest): PlanRequest {
  const { maxWorkspaceShare, maxWorkspaceBytes = Infinity, ...free } = request;
  if (maxWorkspaceShare === undefined) return request;
  const allowed = Math.floor(maxWorkspaceShare * tensorBytes(request));
  return { ...free, maxWorkspaceBytes: Math.min(maxWorkspaceBytes, allowed) };
}
