import { MATRIX_POLICY_NAMES } from "../../kernels/matrix_policies.ts";
import { TILE_POLICIES } from "../../kernels/policy.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { defined } from "../../defined.ts";
import { deviceOf } from "../device/h200.ts";
import { cutGemm, mainloopTime } from "../gemm/choose.ts";
import type { GemmRequest } from "../gemm/operands.ts";
import { tryPlanGemm } from "../gemm/plan.ts";
import type { Plan, Rival } from "../plan.ts";
import { tryPlanConv } from "../planner.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest, TunedChoice } from "../request.ts";
import { predictPlanMs, rankRivals, requestFor } from "./auto.ts";
import {
  deviceFor,
  kernelNames,
  leavesChoice,
  plainProduct,
  problemClass,
  productClass,
} from "./tuned.ts";

/** A way to compute a problem that is worth timing. */
export interface Entrant {
  /** Where it is remembered in a `TuningTable`. */
  readonly key: string;
  /** What is remembered. */
  readonly choice: TunedChoice;
  /** What runs, without what follows the sums. */
  readonly plan: Plan;
}

/** What names a way to compute a problem. */
type Way = Omit<TunedChoice, "problem" | "kernels">;

/** What is predicted to take more than so many times the fastest is not worth timing. */
const HOPELESS = 4;
/**
 * Sizes of a device, over its model's, that cut its products otherwise: of one whose size is a guess much larger ones, of others what the
 * model errs by. By 62 cases on an H200 (`bench/planner_unmeasured.ts`), with and without its size.
 */
const GUESSED_SIZES = [3, 8];
const SIZES = [0.5, 2];

/**
 * The ways to compute a problem that are most likely to hold the fastest on a device that was not measured, the planner's choice
 * first: then the best of other algorithms, and its own choice as for devices of other sizes, which splits products otherwise. Nothing
 * where the request leaves no choice.
 */
export function shortlist(request: PlanRequest, count: number): Entrant[] {
  if (request.algorithm !== "auto" || !leavesChoice(request)) return [];
  const { tuning: _, ...free } = request;
  const asked: PlanRequest = { ...free, epilogue: NO_EPILOGUE };
  const chosen = tryPlanConv(asked);
  if (isRefusal(chosen)) return [];
  const own: Rival = chosen.rivals?.[0] ?? { algorithm: chosen.algorithm, amplification: 1 };
  const ranked = rankRivals(asked)
    .filter(({ reason, variant }) => reason === undefined && variant === undefined);
  const fastest = Math.min(
    predictPlanMs(asked, chosen) ?? Infinity,
    ...ranked.map(({ predictedMs = Infinity }) => predictedMs),
  );
  const near = ranked.filter(({ predictedMs = 0 }) => predictedMs <= HOPELESS * fastest);
  const kinds = [own, ...near].filter(({ algorithm }, place, all) =>
    all.findIndex((one) => one.algorithm === algorithm) === place
  );
  const others = near.filter((one) => !kinds.includes(one));
  const resized = otherSizes(asked).map((size) => ({ ...choiceOf(own), multiprocessors: size }));
  const [first, second, ...rest] = [...kinds, ...others].map(choiceOf);
  const next = second === undefined ? [] : [second];
  const choices = deviceOf(asked).guessed
    ? [first!, ...resized, ...next, ...rest]
    : [first!, ...next, ...resized, ...rest];
  // A variant is no part of what is remembered.
  if (own.variant !== undefined) return [];
  return entrants(asked.problem, problemClass(asked), choices, count, (way) =>
    tryPlanConv({
      ...requestFor(asked, { ...way, amplification: 1 }),
      ...deviceFor(asked, way),
    }));
}

/** The same of a product: the planner's choice, as for a larger device, and the best with other tiles. */
export function shortlistProduct(request: GemmRequest, count: number): Entrant[] {
  if (!leavesChoice(request)) return [];
  const { tuning: _, ...free } = request;
  const asked: GemmRequest = { ...free, problem: plainProduct(request.problem) };
  const device = deviceOf(asked);
  const policies = [...TILE_POLICIES.map(({ name }) => name), ...MATRIX_POLICY_NAMES];
  const cuts = policies.flatMap((policy) => {
    const one = { ...asked, schedule: { ...asked.schedule, policy } };
    const cut = cutGemm(one);
    return isRefusal(cut) || device.shares.policies[policy] === 0
      ? []
      : { policy, time: mainloopTime(one, cut) };
  }).toSorted((a, b) => a.time - b.time);
  const near = cuts.filter(({ time }) => time <= HOPELESS * cuts[0]!.time)
    .map(({ policy }) => ({ algorithm: "gemm", policy }));
  const choices = [
    { algorithm: "gemm" },
    ...otherSizes(asked).map((multiprocessors) => ({ algorithm: "gemm", multiprocessors })),
    ...near,
  ];
  return entrants(
    asked.problem,
    productClass(asked),
    choices,
    count,
    ({ policy, ...way }) =>
      tryPlanGemm({ ...asked, schedule: defined({ policy }), ...deviceFor(asked, way) }),
  );
}

/** What tells plans apart. */
export function planKey({ passes }: Plan): string {
  return passes.map(({ kernel, grid }) => `${kernel.name} ${grid}`).join();
}

function choiceOf({ algorithm, tile, pair }: Rival): Way {
  return { algorithm, ...defined({ tile, pair }) };
}

/** Multiprocessors of devices for which products are cut otherwise. */
function otherSizes(request: Pick<PlanRequest, "device">): number[] {
  const { multiprocessors, guessed } = deviceOf(request);
  return (guessed ? GUESSED_SIZES : SIZES).map((size) => Math.ceil(size * multiprocessors));
}

/** The first plans that differ, and run anything. */
function entrants(
  problem: TunedChoice["problem"],
  key: string,
  ways: readonly Way[],
  count: number,
  planWay: (way: Way) => Planned<Plan>,
): Entrant[] {
  const found = new Map<string, Entrant>();
  for (const way of ways) {
    if (found.size === count) break;
    const plan = planWay(way);
    if (isRefusal(plan) || plan.passes.length === 0 || found.has(planKey(plan))) continue;
    const choice = { ...way, problem, kernels: kernelNames(plan) };
    found.set(planKey(plan), { key, choice, plan });
  }
  return [...found.values()];
}
