import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import type { PlanRequest } from "../request.ts";
import { groupOf, SMALL_GROUP } from "./geometry.ts";
import { planDepthwise } from "./plan.ts";
import { depthwiseTime } from "./price.ts";

/** Squares of strides are counted in 32 bits. */
const MOST_STRIDE = 65_535;

/** Channels of a group's result, or of one side of a filter, that are few. */
const MOST_FEW = 8;

/**
 * One filter a channel, small groups, and results of few channels: nothing is multiplied as a matrix, a thread holds the sums
 * of a run of places.
 */
export const depthwise: Algorithm = {
  name: "depthwise",
  options: ["splits"],
  dtypes: FLOAT_DTYPES,
  refuse(request) {
    const { problem: { op, groups, stride } } = request;
    const { inputs, outputs } = groupOf(request);
    const small = groups > 1 && Math.max(inputs, outputs) <= SMALL_GROUP;
    const results = op === "fwd" ? outputs : op === "bwd-data" ? inputs : Math.min(inputs, outputs);
    // One output a channel of one input is depthwise, whatever the multiplier.
    if (inputs !== 1 && !small && results > MOST_FEW) {
      return `it is for few channels: up to ${MOST_FEW} on a side, or several groups of up to ${SMALL_GROUP}`;
    }
    return stride.some((one) => one > MOST_STRIDE)
      ? `it takes strides up to ${MOST_STRIDE}`
      : undefined;
  },
  // One filter a channel of several, and groups of few rows, are its own without a comparison.
  candidates: (request) => isWeighed(request) ? [{ algorithm: "depthwise", amplification: 1 }] : [],
  price: depthwiseTime,
  plan: planDepthwise,
};

/** Whether `auto` weighs it: several channels are summed, or there is but one group. */
function isWeighed(request: PlanRequest): boolean {
  return groupOf(request).inputs > 1 || request.problem.groups === 1;
}
