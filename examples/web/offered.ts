import {
  type AlgorithmName,
  type ConvProblem,
  convProblem,
  type DeviceLimits,
  isRefusal,
  NO_EPILOGUE,
  planConv,
  supportedAlgorithms,
  tryPlanConv,
} from "../../web.ts";
import type { Kernel } from "./filters.ts";
import type { PageDType, PageLayout } from "./operands.ts";

/** Red, green and blue. */
export const CHANNELS = 3;

/** What a user may choose. */
export type Choice = AlgorithmName | "auto";

/** A filter over a picture, whose size the result keeps. */
export function pictureProblem(kernel: Kernel, width: number, height: number): ConvProblem {
  const padding = (kernel.length - 1) / 2;
  return convProblem({
    batch: 1,
    inChannels: CHANNELS,
    outChannels: CHANNELS,
    inputSize: [height, width],
    filterSize: [kernel.length, kernel.length],
    paddingBegin: [padding, padding],
  });
}

/** How a layer is computed on the page. */
interface How {
  readonly dtype: PageDType;
  readonly layout: PageLayout;
}

const PICTURE: How = { dtype: "f32", layout: "nhwc" };

/** What the planner is asked for. */
function requestOf(problem: ConvProblem, limits: DeviceLimits, { dtype, layout }: How) {
  return {
    problem,
    dtype,
    layout,
    filterLayout: layout === "nhwc" ? "krsc" : "kcrs",
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    limits,
  } as const;
}

/** `auto` and the algorithms that a device of such limits can solve a problem by. */
export function offeredChoices(
  problem: ConvProblem,
  limits: DeviceLimits,
  how: How = PICTURE,
): Choice[] {
  const request = requestOf(problem, limits, how);
  const names = supportedAlgorithms(request).map(({ name }) => name);
  const plans = (algorithm: Choice) => !isRefusal(tryPlanConv({ ...request, algorithm }));
  return ["auto", ...names.filter(plans)];
}

/** The algorithm that `auto` takes. */
export function autoChoice(problem: ConvProblem, limits: DeviceLimits, how: How): AlgorithmName {
  return planConv(requestOf(problem, limits, how)).algorithm;
}
