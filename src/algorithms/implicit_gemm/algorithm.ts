import { CONV_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { planImplicitGemm } from "./plan.ts";
import { implicitTime } from "./price.ts";

/** The convolution as one product whose operands are gathered on the way. */
export const implicitGemm: Algorithm = {
  name: "implicit-gemm",
  heeds: ["variant"],
  dtypes: CONV_DTYPES,
  refuse: () => undefined,
  candidates: () => [{ algorithm: "implicit-gemm", amplification: 1 }],
  price: implicitTime,
  plan: planImplicitGemm,
};
