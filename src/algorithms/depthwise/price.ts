import { directFlops, tensorBytes } from "../../problem/conv_problem.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime, productTime } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes } from "../tensors.ts";
import { packsFilter } from "./geometry.ts";

/** Microseconds of one filter a channel: its tensors once through memory, or its products. */
export function depthwiseTime(request: PlanRequest): number {
  const device = deviceOf(request);
  const { problem, layout } = request;
  const rate = device.rates.depthwise[layout === "nhwc" ? "along" : "across"];
  const product = productTime(directFlops(problem) / 2, rate);
  const movement = moveTime(tensorBytes(problem, operandBytes(request)), device.rates.stream);
  return passTime(product, movement, device) + (packsFilter(request) ? device.times.dispatch : 0);
}
