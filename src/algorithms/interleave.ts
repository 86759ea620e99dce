import { elementCount } from "../tensor/tensor.ts";
import type { PlanRequest } from "./request.ts";

/** Depth up to which storing four images one by one takes longer than loading four at once saves. */
const SHALLOW_DEPTH = 64;

/**
 * Whether columns of a forward product count single images although four could be interleaved: with few products
 * a result and images' places together, four places leave in one store. An H200 then does cv7 of the im2win paper
 * (27 products a result) in 0.64 (fused) to 0.78 of the time.
 */
export function prefersSingleImages({ problem, layout }: PlanRequest): boolean {
  const depth = problem.inChannels / problem.groups * elementCount(problem.filterSize);
  return problem.op === "fwd" && layout === "nchw" && depth <= SHALLOW_DEPTH &&
    elementCount(problem.outputSize) % 4 === 0;
}

/** Rows up to which loads of a gathered product take longer than its stores. */
const NARROW_ROWS = 16;

/**
 * Whether columns of a gathered product of so many rows a group take four images at one place in turn, where places alone would
 * leave one by one: neighbouring threads then store neighbouring places. Few rows rather load neighbours. Of nine layers with
 * odd numbers of places an H200 then does eight forward in 0.57 to 1.00 of the time.
 */
export function prefersInterleaved(
  { problem, layout }: Pick<PlanRequest, "problem" | "layout">,
  rows: number,
): boolean {
  const places = problem.op === "fwd" ? problem.outputSize : problem.inputSize;
  return layout === "nchw" && problem.batch % 4 === 0 && elementCount(places) % 4 !== 0 &&
    rows > NARROW_ROWS;
}
