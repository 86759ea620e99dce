import { directFlops, tensorBytes } from "../../problem/conv_problem.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime, productTime } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes } from "../tensors.ts";
import { depthwiseFilterShape, depthwiseShape, packsFilter } from "./geometry.ts";

/** Microseconds of one filter a channel or of small groups: its tensors once through memory, or its products; passes beside it are short. */
export function depthwiseTime(request: PlanRequest): number {
  const device = deviceOf(request);
  const { problem, layout } = request;
  const rates = device.rates[problem.op === "bwd-filter" ? "depthwiseGradient" : "depthwise"];
  const taps = loadedTaps(request);
  const share = taps / (taps + device.shares.depthwiseTaps);
  const rate = share * rates[layout === "nhwc" ? "along" : "across"];
  const product = productTime(directFlops(problem) / 2, rate);
  const movement = moveTime(tensorBytes(problem, operandBytes(request)), device.rates.stream);
  return passTime(product, movement, device) + shortPasses(request) * device.times.dispatch;
}

/** What a place that is loaded is worth: the taps of a run, of each channel that a thread takes. */
function loadedTaps(request: PlanRequest): number {
  if (request.problem.op !== "bwd-filter") {
    const { axes, run, own } = depthwiseShape(request, "uniform");
    return own * axes[run]!.taps;
  }
  const { axes, run } = depthwiseFilterShape(request, "uniform").shape;
  return axes[run]!.taps;
}

/** Passes that order a filter or sum segments. */
function shortPasses(request: PlanRequest): number {
  if (request.problem.op !== "bwd-filter") return packsFilter(request) ? 1 : 0;
  const { shape: { segments }, grouped } = depthwiseFilterShape(request, "constant");
  return segments === 1 ? 0 : grouped === 1 ? 1 : 2;
}
