import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import { fusedCandidates } from "./candidates.ts";
import { unsupportedReason } from "./geometry.ts";
import { planWinogradFused } from "./plan.ts";
import { fusedTime } from "./price.ts";

function winogradFused(name: Algorithm["name"], axes: 1 | 2): Algorithm {
  return {
    name,
    options: ["policy", "splits", "tile", "output-layout", "slice-loop"],
    dtypes: FLOAT_DTYPES,
    refuse: (request) => unsupportedReason(request, axes),
    candidates: (request) => fusedCandidates(request, axes),
    price: (request) => fusedTime(request, axes),
    plan: planWinogradFused(axes),
  };
}

/** Winograd in one kernel along the last two axes. */
export const winograd2d = winogradFused("winograd2d", 2);

/** The same along the last one. */
export const winograd1d = winogradFused("winograd1d", 1);
