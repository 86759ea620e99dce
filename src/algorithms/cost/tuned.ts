/** What was measured to be the fastest: how it is named, found and taken. */
import { elementsOf, elementsTrait } from "../../elements/elements.ts";
import { defined } from "../../defined.ts";
import type { GemmProblem } from "../../problem/gemm_problem.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { allowedAmplification } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import { sizedModel } from "../device/known.ts";
import type { GemmRequest } from "../gemm/operands.ts";
import type { Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest, TunedChoice } from "../request.ts";

/** Batches within a power of two of each other. */
function octave(batch: number): number {
  return Math.round(Math.log2(Math.max(1, batch)));
}

/** Problems that differ in nothing but a similar batch are of one class. */
export function problemClass({ problem, dtype, outDtype, layout, filterLayout }: Pick<
  PlanRequest,
  "problem" | "dtype" | "outDtype" | "layout" | "filterLayout"
>): string {
  const { op, batch, groups, inChannels, outChannels, inputSize, filterSize } = problem;
  const { stride, paddingBegin, paddingEnd, dilation } = problem;
  const elements = elementsTrait(elementsOf({ dtype, ...(outDtype && { outDtype }) }));
  const channels = [octave(batch), groups, inChannels, outChannels];
  const sizes = [inputSize, filterSize, stride, paddingBegin, paddingEnd, dilation];
  return [op, elements, layout, filterLayout, ...channels, ...sizes].join("|");
}

/** The same of products, whatever follows their sums. */
export function productClass(
  request: Pick<GemmRequest, "problem" | "dtype" | "accumulate" | "outDtype">,
): string {
  const { m, n, k, batch, transpose } = request.problem;
  return ["gemm", elementsTrait(elementsOf(request)), transpose, octave(batch), m, n, k].join("|");
}

/** A product without anything that follows its sums. */
export function plainProduct(problem: GemmProblem): GemmProblem {
  return {
    ...problem,
    ...{ alpha: 1, beta: 0, bias: "none", activation: "none", residual: false },
  };
}

export function kernelNames(plan: Plan): string[] {
  return plan.passes.map(({ kernel }) => kernel.name);
}

/** Note of a plan that could not take what was measured: kernels are not those any more. */
export const OUTDATED_TUNING =
  "wgconv tune measured other kernels for this, they count no more: run it again";

/** Whether a request leaves to the planner all that a measured choice decides. */
export function leavesChoice(
  request: Omit<Partial<PlanRequest>, "problem" | "dtype" | "outDtype" | "layout">,
): boolean {
  const { math = "auto", tile, pair, schedule = {} } = request;
  // What was measured without matrix units is of f32.
  if (math === "f16x3" || math === "f32" && request.matrixUnits !== undefined) return false;
  return [...Object.values(schedule), tile, pair].every((said) => said === undefined);
}

/** The device that a choice is planned for. */
export function deviceFor(
  request: Pick<PlanRequest, "device">,
  { multiprocessors }: Pick<TunedChoice, "multiprocessors">,
): Pick<PlanRequest, "device"> {
  return multiprocessors === undefined
    ? {}
    : { device: sizedModel(deviceOf(request), multiprocessors) };
}

/**
 * What was measured, taken for a request, as long as what was measured then has the same kernels now.
 *
 * @param named The request with what was measured to be fastest.
 * @param measured The request that was measured.
 */
function planChoice<Request>(
  { kernels }: TunedChoice,
  tryPlan: (request: Request) => Planned<Plan>,
  named: Request,
  measured: Request,
): Plan | typeof OUTDATED_TUNING | undefined {
  const then = tryPlan(measured);
  if (isRefusal(then) || kernelNames(then).join() !== kernels.join()) return OUTDATED_TUNING;
  const plan = tryPlan(named);
  if (isRefusal(plan)) return undefined;
  const notes = [...plan.notes, "measured to be the fastest on this device"];
  return { ...plan, measured: true, notes };
}

/**
 * The plan of what was measured to be fastest; undefined where nothing was, where the request says otherwise, or where it
 * enlarges rounding errors more than `auto` may; {@linkcode OUTDATED_TUNING} where the kernels are not those that were
 * measured any more.
 */
export function planTuned(
  request: PlanRequest,
  tryPlanConv: (request: PlanRequest) => Planned<Plan>,
): Plan | typeof OUTDATED_TUNING | undefined {
  const choice = leavesChoice(request) ? request.tuning?.get(problemClass(request)) : undefined;
  if (choice === undefined || "m" in choice.problem) return undefined;
  const { tuning: _, ...free } = request;
  const { algorithm, policy, tile, pair, segments: splits, problem } = choice;
  const own = { algorithm, ...defined({ tile, pair }), schedule: defined({ policy, splits }) };
  const named = { ...free, ...own, ...deviceFor(request, choice) };
  // The kernels that the choice stands for, whatever the request allows.
  const limits = { exact: false, maxBoundRatio: Infinity, maxWorkspaceBytes: Infinity };
  const measured = { ...named, ...limits, problem, epilogue: NO_EPILOGUE };
  const plan = planChoice<PlanRequest>(choice, tryPlanConv, named, measured);
  const enlarged = typeof plan === "object" ? plan.amplification ?? 1 : 1;
  return enlarged > allowedAmplification(request) ? undefined : plan;
}

/** {@linkcode planTuned} of a product. */
export function planTunedProduct(
  request: GemmRequest,
  tryPlan: (request: GemmRequest) => Planned<Plan>,
): Plan | typeof OUTDATED_TUNING | undefined {
  const choice = leavesChoice(request) ? request.tuning?.get(productClass(request)) : undefined;
  if (choice === undefined || !("m" in choice.problem)) return undefined;
  const { tuning: _, ...free } = request;
  const { policy, splits, balance, problem } = choice;
  const schedule = defined({ policy, splits, balance });
  const named = { ...free, schedule, ...deviceFor(request, choice) };
  return planChoice<GemmRequest>(choice, tryPlan, named, { ...named, problem });
}
