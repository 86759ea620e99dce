import { type Scalar, scalarBytes, typeName, zeroOf } from "../elements/scalar.ts";
import { compensationText } from "./compensation.ts";
import { loopIterations } from "./module.ts";

/** Threads of a workgroup that sums partial results. */
const THREADS = 256;
/** Threads that hide a device's latency: with fewer vectors than that several threads share the splits of one. */
const ENOUGH = 1 << 15;
/** So that neighbours still read whole lines. */
const MOST_LANES = 32;
/** Partial results that a thread loads at once. */
const AT_ONCE = 4;

/** Threads that share the splits of each of so many vectors of results. */
export function splitLanes(vectors: number, splits: number): number {
  let lanes = 1;
  while (lanes < MOST_LANES && lanes * vectors < ENOUGH && lanes * AT_ONCE < splits) lanes *= 2;
  return lanes;
}

/** Workgroups of the pass. */
export function sumWorkgroups(vectors: number, splits: number): number {
  return Math.ceil(vectors * splitLanes(vectors, splits) / THREADS);
}

/** What the template of the pass asks of so many vectors of partial results, and what it takes. */
export function splitSum(vectors: number, splits: number, sum: Scalar, width: 1 | 4) {
  const lanes = splitLanes(vectors, splits);
  const exact = sum === "i32";
  return {
    trait: lanes === 1 ? "" : `_l${lanes}`,
    values: {
      lanes,
      across: THREADS / lanes,
      type: typeName(sum, width),
      none: zeroOf(sum, width),
      exact,
      compensation: exact ? "" : compensationText(sum, width),
    },
    workgroupBytes: lanes === 1 ? 0 : (exact ? 1 : 2) * THREADS * width * scalarBytes(sum),
    iterations: loopIterations(Math.ceil(splits / (AT_ONCE * lanes))) +
      (lanes === 1 ? 0 : loopIterations(lanes - 1)),
  };
}
