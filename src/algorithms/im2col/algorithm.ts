import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { planIm2col } from "./plan.ts";
import { im2colTime } from "./price.ts";

/** An explicit matrix and a product, forward. */
export const im2col: Algorithm = {
  name: "im2col",
  options: ["policy", "splits", "variant"],
  dtypes: FLOAT_DTYPES,
  refuse: ({ problem: { op } }) =>
    op === "fwd" ? undefined : "it is forward only, implicit-gemm multiplies gradients",
  price: im2colTime,
  plan: planIm2col,
};
