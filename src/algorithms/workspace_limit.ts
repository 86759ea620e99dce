import { tensorBytes } from "../problem/conv_problem.ts";
import type { PlanRequest } from "./request.ts";
import { operandBytes, resultBytes } from "./tensors.ts";

/** The request with its share of the tensors as bytes, or fewer where it allows fewer. */
export function withWorkspaceBytes(request: PlanRequest): PlanRequest {
  const { maxWorkspaceShare, maxWorkspaceBytes = Infinity, ...free } = request;
  if (maxWorkspaceShare === undefined) return request;
  const tensors = tensorBytes(request.problem, operandBytes(request), resultBytes(request));
  const allowed = Math.floor(maxWorkspaceShare * tensors);
  return { ...free, maxWorkspaceBytes: Math.min(maxWorkspaceBytes, allowed) };
}
