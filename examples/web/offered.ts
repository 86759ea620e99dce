import {
  type AlgorithmName,
  type ConvProblem,
  convProblem,
  type DeviceLimits,
  isRefusal,
  NO_EPILOGUE,
  supportedAlgorithms,
  tryPlanConv,
} from "../../web.ts";
import type { Kernel } from "./filters.ts";

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

/** `auto` and the algorithms that a device of such limits can solve a problem by. */
export function offeredChoices(problem: ConvProblem, limits: DeviceLimits): Choice[] {
  const request = {
    problem,
    dtype: "f32",
    layout: "nhwc",
    filterLayout: "krsc",
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    limits,
  } as const;
  const names = supportedAlgorithms(request).map(({ name }) => name);
  const plans = (algorithm: Choice) => !isRefusal(tryPlanConv({ ...request, algorithm }));
  return ["auto", ...names.filter(plans)];
}
