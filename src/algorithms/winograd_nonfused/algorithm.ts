import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { nonfusedCandidates } from "./candidates.ts";
import { nonfusedTime } from "./price.ts";
import { planWinogradNonfused } from "./plan.ts";
import { nonfusedReason } from "./tiles.ts";

/** Winograd in separate passes. */
export const winogradNonfused: Algorithm = {
  name: "winograd2d-nonfused",
  options: ["policy", "splits", "tile", "math"],
  dtypes: FLOAT_DTYPES,
  refuse: nonfusedReason,
  candidates: nonfusedCandidates,
  price: nonfusedTime,
  plan: planWinogradNonfused,
};
