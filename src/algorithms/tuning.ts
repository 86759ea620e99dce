import { allowedAmplification } from "./cost/accuracy.ts";
import { elementsOf, elementsTrait } from "../elements/elements.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { Plan } from "./plan.ts";
import { isRefusal, type Planned } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";
import type { TunedChoice } from "./tuned_choice.ts";

/** Problems that differ in nothing but a similar batch are of one class. */
export function problemClass(
  { problem, dtype, outDtype, layout, filterLayout }: Pick<
    PlanRequest,
    "problem" | "dtype" | "outDtype" | "layout" | "filterLayout"
  >,
): string {
  const { op, batch, groups, inChannels, outChannels, inputSize, filterSize } = problem;
  const { stride, paddingBegin, paddingEnd, dilation } = problem;
  const octave = Math.round(Math.log2(Math.max(1, batch)));
  const sizes = [inputSize, filterSize, stride, paddingBegin, paddingEnd, dilation];
  return [
    op,
    elementsTrait(elementsOf({ dtype, ...(outDtype && { outDtype }) })),
    layout,
    filterLayout,
    octave,
    groups,
    inChannels,
    outChannels,
    ...sizes,
  ]
    .join("|");
}

/** Names of a plan's kernels. */
export function kernelNames(plan: Plan): string[] {
  return plan.passes.map(({ kernel }) => kernel.name);
}

/** Note of a plan that could not take what was measured: kernels are not those any more. */
export const OUTDATED_TUNING =
  "wgconv tune measured other kernels for this, they count no more: run it again";

/** The kernels that a choice stands for now, whatever a request allows; undefined where it stands for none. */
function measuredKernels(
  { exact: _, ...request }: PlanRequest,
  { problem }: TunedChoice,
  tryPlanConv: (request: PlanRequest) => Planned<Plan>,
): string | undefined {
  const measured = { ...request, problem, epilogue: NO_EPILOGUE, maxBoundRatio: Infinity };
  const plan = tryPlanConv(measured);
  return isRefusal(plan) ? undefined : kernelNames(plan).join();
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
  const { math = "auto", policy, splits, balance, flush, tile, pair, variant } = request;
  // What was measured without matrix units is of f32.
  if (math === "f16x3" || math === "f32" && request.matrixUnits !== undefined) return undefined;
  const said = [policy, splits, balance, flush, tile, pair, variant];
  if (said.some((choice) => choice !== undefined)) return undefined;
  const choice = request.tuning?.get(problemClass(request));
  if (choice === undefined) return undefined;
  const { tuning: _, maxWorkspaceBytes, ...free } = request;
  const named = {
    ...free,
    algorithm: choice.algorithm,
    ...(choice.policy === undefined ? {} : { policy: choice.policy }),
    ...(choice.tile === undefined ? {} : { tile: choice.tile }),
    ...(choice.pair === undefined ? {} : { pair: choice.pair }),
    ...(choice.segments === undefined ? {} : { splits: choice.segments }),
  };
  const measured = measuredKernels(named, choice, tryPlanConv);
  if (measured !== choice.kernels.join()) return OUTDATED_TUNING;
  const plan = tryPlanConv({
    ...named,
    ...(maxWorkspaceBytes === undefined ? {} : { maxWorkspaceBytes }),
  });
  if (isRefusal(plan) || (plan.amplification ?? 1) > allowedAmplification(request)) {
    return undefined;
  }
  const note = "measured to be the fastest on this device (wgconv tune)";
  return { ...plan, notes: [...plan.notes, note] };
}
