import { canonicalName } from "../kernels/kernel.ts";
import type { Plan } from "./plan.ts";
import { type Refusal, refusal } from "./refusal.ts";

/**
 * Iterations that a thread may run on a software device. lavapipe stops after 65,535 without a word, counting those of all
 * loops of a kernel together; others are held to the same.
 */
export const MOST_ITERATIONS = 65_000;

/** Iterations of the pass of a plan that runs most of them, on one thread. */
export function longestLoops({ passes }: Pick<Plan, "passes">): number {
  return passes.reduce((most, { iterations = 0 }) => Math.max(most, iterations), 0);
}

/** Refuses a plan whose loops a software device may cut short. */
export function refuseLongLoops({ passes }: Pick<Plan, "passes">): Refusal | undefined {
  const long = passes.find(({ iterations = 0 }) => iterations > MOST_ITERATIONS);
  return long && refusal(
    "limit",
    `${canonicalName(long.kernel)} loops ${long.iterations} times, a software device may stop ` +
      `after ${MOST_ITERATIONS}; more splits make loops shorter, a GPU has no such limit`,
  );
}
