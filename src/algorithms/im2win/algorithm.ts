import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { planIm2winFused } from "./fused.ts";
import { windowGeometry, windowReason } from "./geometry.ts";
import { planIm2win } from "./plan.ts";
import { im2winFusedTime, im2winTime } from "./price.ts";

/** The input in window order, then a product. */
export const im2win: Algorithm = {
  name: "im2win",
  options: ["policy", "splits", "variant"],
  dtypes: FLOAT_DTYPES,
  refuse: windowReason,
  price: im2winTime,
  plan: planIm2win,
};

/** The same with windows built on the way. */
export const im2winFused: Algorithm = {
  name: "im2win-fused",
  options: ["policy", "splits", "variant"],
  dtypes: FLOAT_DTYPES,
  refuse: windowReason,
  // Where four images are a vector: single ones are gathered as implicit GEMM does.
  candidates(request) {
    const candidate = { algorithm: "im2win-fused", amplification: 1 } as const;
    const reason = windowReason(request) ??
      (windowGeometry(request).interleave === 4 ? undefined : "it would take single images");
    return [reason === undefined ? candidate : { ...candidate, reason }];
  },
  price: im2winFusedTime,
  plan: planIm2winFused,
};
