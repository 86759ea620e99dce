import type { BufferRole, Plan } from "./plan.ts";

/** Bytes of device memory that a plan takes, uniforms (some tens of bytes a pass) not counted. */
export interface PlanMemory {
  /** Tensors that are read, the bias too. */
  readonly inputs: number;
  readonly output: number;
  /** What is allocated beside the tensors; chunks of the batch share it. */
  readonly workspace: number;
  /** All buffers: they live from the first pass to the last. */
  readonly peak: number;
}

/** What holds the result of an operation, or of `gemm`. */
export function resultRole(op: string): BufferRole {
  return op === "bwd-data" ? "input" : op === "bwd-filter" ? "filter" : "output";
}

/** Adds up a plan's buffers. `op` says which of them is the result. */
export function planMemory({ buffers }: Pick<Plan, "buffers">, op: string): PlanMemory {
  const result = resultRole(op);
  const bytes = (kind: (role: BufferRole) => boolean) =>
    buffers.reduce((sum, { role, bytes }) => kind(role) ? sum + bytes : sum, 0);
  return {
    inputs: bytes((role) => role !== result && role !== "workspace"),
    output: bytes((role) => role === result),
    workspace: bytes((role) => role === "workspace"),
    peak: bytes(() => true),
  };
}
