import { CONV_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { groupOf } from "./geometry.ts";
import { planDepthwise } from "./plan.ts";
import { depthwiseTime } from "./price.ts";

/** Squares of strides are counted in 32 bits. */
const MOST_STRIDE = 65_535;

/** Channels of a group that the kernels take one after the other. */
const MOST_CHANNELS = 32;

/** One filter a channel, or a few in small groups: nothing is multiplied as a matrix, tensors pass once. */
export const depthwise: Algorithm = {
  name: "depthwise",
  heeds: [],
  dtypes: CONV_DTYPES,
  refuse(request) {
    const { problem: { groups, stride } } = request;
    const { inputs, outputs } = groupOf(request);
    // One output a channel of one input is depthwise, whatever the multiplier.
    if (inputs !== 1 && (groups === 1 || inputs > MOST_CHANNELS || outputs > MOST_CHANNELS)) {
      return `it takes groups of one input channel, and several groups of up to ${MOST_CHANNELS}`;
    }
    return stride.some((one) => one > MOST_STRIDE)
      ? `it takes strides up to ${MOST_STRIDE}`
      : undefined;
  },
  // Groups of few rows are its own without a comparison.
  candidates: (request) =>
    request.problem.groups > 1 && groupOf(request).inputs > 1
      ? [{ algorithm: "depthwise", amplification: 1 }]
      : [],
  price: depthwiseTime,
  plan: planDepthwise,
};
