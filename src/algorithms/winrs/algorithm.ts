import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { winrsCandidates } from "./candidates.ts";
import { planWinrs, winrsReason } from "./plan.ts";
import { pairWithin, winrsBound, winrsTime } from "./price.ts";

/** Backward-filter by one-dimensional Winograd in segments. */
export const winrs: Algorithm = {
  name: "winrs",
  options: ["policy", "splits", "pair", "variant"],
  dtypes: FLOAT_DTYPES,
  refuse: winrsReason,
  candidates: winrsCandidates,
  // Segments take longer to choose than all else: not where no choice of them could win.
  atLeast: (request, { amplification }) => winrsBound(request, pairWithin(request, amplification)),
  price: winrsTime,
  plan: planWinrs,
};
