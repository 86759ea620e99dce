import { CONV_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { planDepthwise } from "./plan.ts";
import { depthwiseTime } from "./price.ts";

/** Squares of strides are counted in 32 bits. */
const MOST_STRIDE = 65_535;

/** One filter a channel: nothing is multiplied as a matrix, tensors pass once. */
export const depthwise: Algorithm = {
  name: "depthwise",
  heeds: [],
  dtypes: CONV_DTYPES,
  refuse({ problem: { inChannels, groups, stride } }) {
    if (inChannels !== groups) return "it takes groups of one input channel";
    return stride.some((one) => one > MOST_STRIDE)
      ? `it takes strides up to ${MOST_STRIDE}`
      : undefined;
  },
  price: depthwiseTime,
  plan: planDepthwise,
};
