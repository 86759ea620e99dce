import { deviceOf } from "../device/h200.ts";
import { CONV_DTYPES, directFlops } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { passTime, productTime } from "../device/model.ts";
import { planDirect } from "./plan.ts";

/** One thread a result: the oracle on the GPU, and the last resort, since it needs no workspace. */
export const direct: Algorithm = {
  name: "direct",
  options: [],
  dtypes: CONV_DTYPES,
  refuse: () => undefined,
  price(request) {
    const device = deviceOf(request);
    return passTime(productTime(directFlops(request.problem) / 2, device.rates.direct), 0, device);
  },
  plan: planDirect,
};
