import type { Plan } from "../../../src/algorithms/plan.ts";
import type { HostData, HostOperands, Subject } from "../../../src/run/subject.ts";

/** A module of a library, whose types are not fetched. */
// deno-lint-ignore no-explicit-any
export type Library = any;

/** A library that computes with WebGPU. */
export interface Peer {
  readonly version?: string;
  /** Brings operands to the device and compiles; a result is as the subject's lies in memory. */
  prepare(one: Case): Promise<Prepared> | Prepared;
  /** Submits what calls have left unsubmitted. */
  flush?(): void;
  /** Waits for all calls, of a peer whose queue is out of reach. */
  finish?(): Promise<unknown>;
}

interface Prepared {
  /** Of ours, which says how sums are judged. */
  readonly plan?: Plan;
  call(): unknown;
  result(): Promise<HostData>;
  dispose(): unknown;
}
export type Case = ReturnType<typeof caseOf>;

/** The convolution or product of a subject, and its operands in its order. */
export function caseOf({ asked, traits, operands, result }: Subject, data: HostOperands) {
  const { problem: conv, layout } = "conv" in asked ? asked.conv : {};
  if (conv?.paddingEnd.some((pad) => pad < 0)) unsupported("negative padding");
  return {
    ...{ conv, gemm: "gemm" in asked ? asked.gemm : undefined, layout, shape: result.shape },
    half: traits.dtype === "f16",
    operands: operands.map(({ role, shape }) => ({ role, shape, data: data[role as "a"]! })),
  };
}

/** Ends a case that a library has no operation for. */
export function unsupported(why: string): never {
  throw Object.assign(new Error(why), { name: "Unsupported" });
}
