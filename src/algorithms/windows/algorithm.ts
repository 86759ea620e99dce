import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import type { PlanRequest } from "../request.ts";
import { im2winFusedTime, planIm2winFused } from "./fused.ts";
import { windowGeometry } from "./geometry.ts";
import { IM2COL, IM2WIN, planTransformed, transformedTime } from "./transformed.ts";

const ALIKE = { options: ["policy", "splits", "variant"], dtypes: FLOAT_DTYPES } as const;

/** Share of a rate at which the input is written. */
function writingRate(request: PlanRequest, written: "matrices" | "windows"): number {
  const { rates, shares } = deviceOf(request);
  return shares[written][request.layout === "nhwc" ? "along" : "across"] * rates.stream;
}

/** An explicit matrix and a product, forward. */
export const im2col: Algorithm = {
  name: "im2col",
  ...ALIKE,
  refuse: ({ problem: { op } }) =>
    op === "fwd" ? undefined : "it is forward only, implicit-gemm multiplies gradients",
  price: (request) => transformedTime(request, IM2COL, writingRate(request, "matrices")),
  plan: (request, mode) => planTransformed(request, mode, IM2COL),
};

/** Why a problem cannot be done by windows, or undefined if it can. */
function refuseWindows({ problem: { op } }: PlanRequest): string | undefined {
  return op === "fwd" ? undefined : `windows are of the input of fwd, ${op} sums over other ones`;
}

/** The input in window order, then a product. */
export const im2win: Algorithm = {
  name: "im2win",
  ...ALIKE,
  refuse: refuseWindows,
  price: (request) => transformedTime(request, IM2WIN, writingRate(request, "windows")),
  plan: (request, mode) => planTransformed(request, mode, IM2WIN),
};

/** The same with windows built on the way. */
export const im2winFused: Algorithm = {
  name: "im2win-fused",
  ...ALIKE,
  refuse: refuseWindows,
  // Where four images are a vector: single ones are gathered as implicit GEMM does.
  candidates(request) {
    const candidate = { algorithm: "im2win-fused", amplification: 1 } as const;
    const reason = refuseWindows(request) ??
      (windowGeometry(request).interleave === 4 ? undefined : "it would take single images");
    return [reason === undefined ? candidate : { ...candidate, reason }];
  },
  price: im2winFusedTime,
  plan: planIm2winFused,
};
