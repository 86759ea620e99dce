import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { planIm2col } from "./plan.ts";
import { im2colTime } from "./price.ts";

/** Explicit matrices and a product. */
export const im2col: Algorithm = {
  name: "im2col",
  heeds: ["policy", "splits", "variant"],
  dtypes: FLOAT_DTYPES,
  refuse: () => undefined,
  price: (request) => request.problem.op === "fwd" ? im2colTime(request) : undefined,
  plan: planIm2col,
};
