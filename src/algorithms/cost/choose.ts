import type { Plan } from "../plan.ts";
import { deviceOf } from "../device/h200.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import type { AlgorithmName } from "../names.ts";
import { allowedAmplification } from "./accuracy.ts";
import { algorithmOf } from "../registry.ts";
import { candidatesOf } from "./candidates.ts";
import { planTime } from "./plan_time.ts";
import type { Candidate, Rival } from "../rival.ts";

/** Of candidates predicted to take so little more than the fastest, the one that enlarges errors least is taken. */
const SLACK = 1.03;
/** The same of one that enlarges none: what the model errs by is no reason for larger errors. */
const EXACT_SLACK = 1.05;
/** Where it enlarges errors to this share of the fastest's at most: F(4x4,3x3) may stand for F(6x6,3x3), F(5x5,3x3) not. */
const CLEARLY_LESS = 0.7;

/** Predicted milliseconds of an algorithm with the request's tile or pair; undefined where there is no model of it. */
export function predictMs(
  request: PlanRequest,
  algorithm: AlgorithmName,
): Planned<number> | undefined {
  const time = algorithmOf(algorithm)?.price?.(request);
  return typeof time === "number" ? time / 1e3 : time;
}

/** Predicted milliseconds of a plan: by the model of its algorithm, or pass by pass. */
export function predictPlanMs(request: PlanRequest, plan: Plan): number | undefined {
  if (plan.predictedMs !== undefined) return plan.predictedMs;
  if (plan.passes.length === 0) return undefined;
  const modelled = predictMs(request, plan.algorithm);
  return typeof modelled === "number" ? modelled : planTime(plan, deviceOf(request)) / 1e3;
}

/** The request with a candidate's algorithm, tile, pair and variant. */
export function requestFor(
  request: PlanRequest,
  { algorithm, tile, pair, variant }: Candidate,
): PlanRequest {
  return {
    ...request,
    algorithm,
    ...(tile === undefined ? {} : { tile }),
    ...(pair === undefined ? {} : { pair }),
    ...(variant === undefined ? {} : { variant }),
  };
}

/**
 * What `auto` may take, in the order in which it should be tried, and, with reasons, what it may not; `direct` last. Nothing
 * is planned: a candidate may still turn out not to fit the device.
 */
export function rankRivals(request: PlanRequest): Rival[] {
  const rivals: Rival[] = [];
  let fastest = Infinity;
  for (const candidate of candidatesOf(request, allowedAmplification(request))) {
    const rival = priced(request, candidate, fastest);
    fastest = Math.min(fastest, rival.predictedMs ?? Infinity);
    rivals.push(rival);
  }
  const order = ({ predictedMs = Infinity }: Rival) => predictedMs;
  rivals.sort((a, b) => order(a) === order(b) ? 0 : order(a) - order(b));
  const quickest = rivals[0]?.amplification ?? 1;
  const close = rivals.filter(({ amplification, predictedMs = Infinity }, i) =>
    predictedMs <= (amplification > 1 ? SLACK : EXACT_SLACK) * fastest &&
    (i === 0 || amplification === 1 || amplification <= CLEARLY_LESS * quickest)
  );
  const best = close.sort((a, b) => a.amplification - b.amplification || order(a) - order(b))[0];
  const first = best === undefined ? rivals : [best, ...rivals.filter((rival) => rival !== best)];
  const free = request.tile === undefined && request.math !== "f16x3";
  return free ? [...first, lastResort(request)] : first;
}

/** What needs neither workspace nor tiles: where nothing else fits. */
function lastResort(request: PlanRequest): Rival {
  const time = algorithmOf("direct")!.price!(request) as number;
  return { algorithm: "direct", amplification: 1, predictedMs: time / 1e3 };
}

function priced(
  request: PlanRequest,
  candidate: Candidate,
  fastest: number,
): Rival {
  if (candidate.reason !== undefined) return candidate;
  const named = requestFor(request, candidate);
  const least = (algorithmOf(candidate.algorithm)?.atLeast?.(named, candidate) ?? 0) / 1e3;
  if (least > fastest) return { ...candidate, reason: `it takes ${figure(least)} ms at least` };
  const predictedMs = predictMs(named, candidate.algorithm);
  if (predictedMs === undefined) return candidate;
  return isRefusal(predictedMs)
    ? { ...candidate, reason: predictedMs.text }
    : { ...candidate, predictedMs };
}

function figure(ms: number): string {
  return ms.toPrecision(3);
}
