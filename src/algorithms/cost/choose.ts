import { directFlops } from "../../problem/conv_problem.ts";
import type { Plan } from "../plan.ts";
import { H200 } from "../device/h200.ts";
import { type DeviceModel, passTime, productTime } from "../device/model.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { ALGORITHM_NAMES, type AlgorithmName } from "../names.ts";
import { allowedAmplification } from "./accuracy.ts";
import { candidatesOf } from "./candidates.ts";
import type { Candidate, Rival } from "../rival.ts";
import { fusedTime } from "./fused.ts";
import { nonfusedTime } from "./nonfused.ts";
import { im2colTime, im2winFusedTime, im2winTime, implicitTime, planTime } from "./products.ts";
import { pairWithin, winrsBound, winrsTime } from "./winrs.ts";

/** Of candidates predicted to take so little more than the fastest, the one that enlarges errors least is taken. */
const SLACK = 1.03;
/** The same of one that enlarges none: what the model errs by is no reason for larger errors. */
const EXACT_SLACK = 1.1;

/** Predicted milliseconds of an algorithm with the request's tile or pair; undefined where there is no model of it. */
export function predictMs(
  request: PlanRequest,
  algorithm: AlgorithmName,
): Planned<number> | undefined {
  const time = predictTime(request, algorithm, request.device ?? H200);
  return typeof time === "number" ? time / 1e3 : time;
}

/**
 * Predicted milliseconds of a plan: by the model of its algorithm, or pass by pass; undefined on software devices, which
 * nothing predicts.
 */
export function predictPlanMs(request: PlanRequest, plan: Plan): number | undefined {
  if (plan.predictedMs !== undefined) return plan.predictedMs;
  if (plan.passes.length === 0 || isSoftware(request)) return undefined;
  const algorithm = ALGORITHM_NAMES.find((name) => name === plan.algorithm);
  const modelled = algorithm === undefined ? undefined : predictMs(request, algorithm);
  return typeof modelled === "number" ? modelled : planTime(plan, request.device ?? H200) / 1e3;
}

function predictTime(
  request: PlanRequest,
  algorithm: AlgorithmName,
  device: DeviceModel,
): Planned<number> | undefined {
  switch (algorithm) {
    case "implicit-gemm":
      return implicitTime(request, device);
    case "im2win-fused":
      return im2winFusedTime(request, device);
    case "im2win":
      return im2winTime(request, device);
    case "im2col":
      return request.problem.op === "fwd" ? im2colTime(request, device) : undefined;
    case "winograd2d-nonfused":
      return nonfusedTime(request, device);
    case "winograd2d":
      return fusedTime(request, device, 2);
    case "winograd1d":
      return fusedTime(request, device, 1);
    case "winrs":
      return winrsTime(request, device);
    case "direct":
      return directTime(request, device);
    default:
      return undefined;
  }
}

/** The request with a candidate's algorithm, tile and pair. */
export function requestFor(
  request: PlanRequest,
  { algorithm, tile, pair }: Candidate,
): PlanRequest {
  return {
    ...request,
    algorithm,
    ...(tile === undefined ? {} : { tile }),
    ...(pair === undefined ? {} : { pair }),
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
  const close = rivals.filter((rival) =>
    order(rival) <= (rival.amplification > 1 ? SLACK : EXACT_SLACK) * fastest
  );
  const best = close.sort((a, b) => a.amplification - b.amplification || order(a) - order(b))[0];
  const first = best === undefined ? rivals : [best, ...rivals.filter((rival) => rival !== best)];
  return request.tile === undefined ? [...first, lastResort(request)] : first;
}

/** What needs neither workspace nor tiles: where nothing else fits. */
function lastResort(request: PlanRequest): Rival {
  return {
    algorithm: "direct",
    amplification: 1,
    predictedMs: directTime(request, request.device ?? H200) / 1e3,
  };
}

function priced(
  request: PlanRequest,
  candidate: Candidate,
  fastest: number,
): Rival {
  if (candidate.reason !== undefined) return candidate;
  const named = requestFor(request, candidate);
  if (candidate.algorithm === "winrs") {
    // Segments take longer to choose than all else here: not where no choice of them could win.
    const bound = winrsBound(named, pairWithin(request, candidate.amplification)) / 1e3;
    if (bound > fastest) return { ...candidate, reason: `it takes ${figure(bound)} ms at least` };
  }
  const predictedMs = predictMs(named, candidate.algorithm);
  if (predictedMs === undefined) return candidate;
  return isRefusal(predictedMs)
    ? { ...candidate, reason: predictedMs.text }
    : { ...candidate, predictedMs };
}

function directTime({ problem }: PlanRequest, device: DeviceModel): number {
  return passTime(productTime(directFlops(problem) / 2, device.rates.direct), 0, device);
}

function figure(ms: number): string {
  return ms.toPrecision(3);
}
