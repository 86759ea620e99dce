import { InputRangeError, UnsupportedError } from "../errors.ts";

/**
 * Why there is no plan. `problem`: the algorithm, or an option, does not go with the problem; `limit`: the device cannot;
 * `workspace`: it takes more than is allowed; `accuracy`: it errs more than is allowed.
 */
export type RefusalKind = "problem" | "limit" | "workspace" | "accuracy";

/** Planning that came to no plan. */
export interface Refusal {
  /** What stands in the way. */
  readonly kind: RefusalKind;
  /** A clause that can follow a colon. */
  readonly text: string;
}

/** What planning makes, or why it makes none. Bugs are thrown and never are a refusal. */
export type Planned<T> = T | Refusal;

/** Makes a refusal. */
export function refusal(kind: RefusalKind, text: string): Refusal {
  return { kind, text };
}

/**
 * Whether planning came to nothing.
 * @example
 * ```ts
 * import { DEFAULT_LIMITS, isRefusal, NO_EPILOGUE, parseDescriptor, tryPlanConv } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const planned = tryPlanConv({
 *   problem: parseDescriptor("mb1ic3ih8oc4kh3"),
 *   dtype: "f32",
 *   layout: "nchw",
 *   filterLayout: "kcrs",
 *   epilogue: NO_EPILOGUE,
 *   algorithm: "winrs",
 *   limits: DEFAULT_LIMITS,
 * });
 * assert.ok(isRefusal(planned));
 * assert.match(planned.text, /winrs/);
 * ```
 */
export function isRefusal(planned: unknown): planned is Refusal {
  return typeof planned === "object" && planned !== null && "kind" in planned && "text" in planned;
}

/**
 * What was planned: for the edge, where a refusal ends what a user asked for.
 *
 * @throws {UnsupportedError} where the device cannot, {RangeError} for other refusals.
 */
export function expectPlanned<T>(planned: Planned<T>): T {
  if (!isRefusal(planned)) return planned;
  const message = `Cannot plan: ${planned.text}`;
  throw planned.kind === "limit" ? new UnsupportedError(message) : new InputRangeError(message);
}

/** More chunks than this take seconds to plan, and longer to run than their products. */
export const MOST_CHUNKS = 1024;

/** Refuses more chunks than are planned. */
export function manyChunks(algorithm: string, chunks: number): Refusal {
  return refusal(
    "workspace",
    `${algorithm} takes ${chunks} chunks of the batch to keep within the workspace, ` +
      `at most ${MOST_CHUNKS} are planned`,
  );
}
