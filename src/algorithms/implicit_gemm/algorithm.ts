import { CONV_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { planInMath } from "../halves.ts";
import { isRefusal } from "../refusal.ts";
import { inMath, refuseHalves, timeInMath } from "./halves.ts";
import { planHalves } from "./halves_plan.ts";
import { planImplicitGemm } from "./plan.ts";

/** The convolution as one product whose operands are gathered on the way. */
export const implicitGemm: Algorithm = {
  name: "implicit-gemm",
  options: ["policy", "splits", "variant", "math"],
  dtypes: CONV_DTYPES,
  refuse: (request) => request.math === "f16x3" ? refuseHalves(request) : undefined,
  candidates: () => [{ algorithm: "implicit-gemm", amplification: 1 }],
  price: (asked) => {
    const request = inMath(asked);
    return isRefusal(request) ? request : timeInMath(request);
  },
  plan: (asked, mode) =>
    planInMath(
      asked,
      inMath(asked),
      (request) => (request.math === "f16x3" ? planHalves : planImplicitGemm)(request, mode),
    ),
};
