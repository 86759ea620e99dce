import { CONV_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { planDepthwise } from "./plan.ts";
import { depthwiseTime } from "./price.ts";

/** One filter a channel: nothing is multiplied as a matrix, tensors pass once. */
export const depthwise: Algorithm = {
  name: "depthwise",
  heeds: [],
  dtypes: CONV_DTYPES,
  refuse: ({ problem: { inChannels, groups } }) =>
    inChannels === groups ? undefined : "its groups have one input channel",
  price: depthwiseTime,
  plan: planDepthwise,
};
