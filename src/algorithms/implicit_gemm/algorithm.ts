import { CONV_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { isRefusal } from "../refusal.ts";
import { planImplicitGemm } from "./plan.ts";
import { implicitProduct } from "./product.ts";

/** The convolution as one product whose operands are gathered on the way. */
export const implicitGemm: Algorithm = {
  name: "implicit-gemm",
  heeds: ["policy", "splits", "variant"],
  dtypes: CONV_DTYPES,
  refuse: () => undefined,
  candidates: () => [{ algorithm: "implicit-gemm", amplification: 1 }],
  price: (request) => {
    const product = implicitProduct(request);
    return isRefusal(product) ? product : product.time;
  },
  plan: planImplicitGemm,
};
