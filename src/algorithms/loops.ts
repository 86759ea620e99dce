import { UnsupportedError } from "../errors.ts";
import { canonicalName } from "../kernels/kernel.ts";
import type { Plan } from "./plan.ts";

/**
 * Iterations that a thread may run on a software device. lavapipe stops after 65,535 without a word, counting those of all
 * loops of a kernel together; others are held to the same.
 */
export const MOST_ITERATIONS = 65_000;

/** Iterations of the pass of a plan that runs most of them, on one thread. */
export function longestLoops({ passes }: Pick<Plan, "passes">): number {
  return passes.reduce((most, { iterations = 0 }) => Math.max(most, iterations), 0);
}

/**
 * Refuses a plan whose loops a software device may cut short.
 *
 * @throws {UnsupportedError} that names the kernel.
 */
export function refuseLongLoops({ passes }: Pick<Plan, "passes">): void {
  for (const { kernel, iterations = 0 } of passes) {
    if (iterations <= MOST_ITERATIONS) continue;
    throw new UnsupportedError(
      `Cannot plan: ${
        canonicalName(kernel)
      } loops ${iterations} times, a software device may stop ` +
        `after ${MOST_ITERATIONS}; more splits make loops shorter, a GPU has no such limit`,
    );
  }
}
