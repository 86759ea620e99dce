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
  const sizes = [inputSize, filterSize, stride, paddingBegin, paddingEnd, dilation];
  return [
    op,
    elementsTrait(elementsOf({ dtype, ...(outDtype && { outDtype }) })),
    layout,
    filterLayout,
    octave(batch),
    groups,
    inChannels,
    outChannels,
    ...sizes,
  ]
    .join("|");
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
  const { math = "auto", policy, splits, balance, flush, tile, pair, variant } = request;
  // What was measured without matrix units is of f32.
  if (math === "f16x3" || math === "f32" && request.matrixUnits !== undefined) return false;
  const said = [policy, splits, balance, flush, tile, pair, variant];
  return said.every((choice) => choice === undefined);
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

function marked(plan: Plan): Plan {
  const note = "measured to be the fastest on this device";
  return { ...plan, measured: true, notes: [...plan.notes, note] };
}

function isAsMeasured(plan: Planned<Plan>, { kernels }: TunedChoice): boolean {
  return !isRefusal(plan) && kernelNames(plan).join() === kernels.join();
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
  const { tuning: _, maxWorkspaceBytes, ...free } = request;
  const { algorithm, policy, tile, pair, segments, problem } = choice;
  const named = {
    ...free,
    algorithm,
    ...defined({ policy, tile, pair, splits: segments }),
    ...deviceFor(request, choice),
  };
  // The kernels that the choice stands for now, whatever the request allows.
  const { exact: __, ...any } = named;
  const asMeasured = { ...any, problem, epilogue: NO_EPILOGUE, maxBoundRatio: Infinity };
  if (!isAsMeasured(tryPlanConv(asMeasured), choice)) return OUTDATED_TUNING;
  const plan = tryPlanConv({ ...named, ...defined({ maxWorkspaceBytes }) });
  if (isRefusal(plan) || (plan.amplification ?? 1) > allowedAmplification(request)) {
    return undefined;
  }
  return marked(plan);
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
  const named = {
    ...free,
    ...defined({ policy, splits, balance }),
    ...deviceFor(request, choice),
  };
  if (!isAsMeasured(tryPlan({ ...named, problem }), choice)) return OUTDATED_TUNING;
  const plan = tryPlan(named);
  return isRefusal(plan) ? undefined : marked(plan);
}
