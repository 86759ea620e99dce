import { deviceOf } from "../device/h200.ts";
import { sizedModel } from "../device/known.ts";
import type { Plan, Rival } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { predictPlanMs, rankRivals, requestFor } from "./auto.ts";

/** A way to compute a problem that is worth timing. */
export interface Entrant {
  /** The request that names it. */
  readonly request: PlanRequest;
  /** What runs. */
  readonly plan: Plan;
}

/** Rivals predicted to take more than so many times the fastest are not worth timing. */
const HOPELESS = 4;
/** A device nobody measured may be so many times as large as its model: products are then split further. */
const LARGER = 4;

/**
 * The ways to compute a problem that are most likely to hold the fastest on a device whose figures are guesses, the planner's choice
 * first: then the best of other algorithms, and its own choice as for a larger device, which fills more multiprocessors.
 *
 * @param tryPlan Plans a request that names its algorithm.
 */
export function shortlist(
  request: PlanRequest,
  count: number,
  tryPlan: (request: PlanRequest) => Planned<Plan>,
): Entrant[] {
  const asked: PlanRequest = { ...request, algorithm: "auto" };
  const chosen = tryPlan(asked);
  if (isRefusal(chosen)) return [];
  const device = deviceOf(request);
  const larger = sizedModel(device, LARGER * device.multiprocessors);
  const ranked = rankRivals(request).filter(({ reason }) => reason === undefined);
  const fastest = Math.min(
    predictPlanMs(asked, chosen) ?? Infinity,
    ...ranked.map(({ predictedMs = Infinity }) => predictedMs),
  );
  const near = ranked.filter(({ predictedMs = 0 }) => predictedMs <= HOPELESS * fastest);
  const kinds = firsts(near, ({ algorithm }) => algorithm);
  const others = near.filter((one) => !kinds.includes(one));
  const named = (rivals: readonly Rival[]) => rivals.map((rival) => requestFor(request, rival));
  const [first, second, ...rest] = named(kinds);
  const [wider, ...widest] = named(kinds).map((one) => ({ ...one, device: larger }));
  const order = [asked, first, second, wider, ...rest, ...widest, ...named(others)];
  const entrants = new Map<string, Entrant>();
  for (const one of order) {
    if (entrants.size === count) break;
    if (one === undefined) continue;
    const plan = tryPlan(one);
    if (isRefusal(plan) || plan.passes.length === 0) continue;
    const key = planKey(plan);
    if (!entrants.has(key)) entrants.set(key, { request: one, plan });
  }
  return [...entrants.values()];
}

/** What tells plans apart. */
export function planKey({ passes }: Plan): string {
  return passes.map(({ kernel, grid }) => `${kernel.name} ${grid}`).join();
}

function firsts(rivals: readonly Rival[], kind: (rival: Rival) => string): Rival[] {
  return [...new Map(rivals.toReversed().map((one) => [kind(one), one])).values()].toReversed();
}
