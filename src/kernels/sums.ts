/** How many terms become one sum: in trees, with compensation, by threads that share them. */
import { type Scalar, scalarBytes, typeName, zeroOf } from "../elements/scalar.ts";
import { loopIterations } from "./sized_kernel.ts";

/** WGSL of a sum of terms, halves first. */
export function treeSum(terms: readonly string[]): string {
  if (terms.length === 1) return terms[0]!;
  const half = Math.ceil(terms.length / 2);
  return `(${treeSum(terms.slice(0, half))} + ${treeSum(terms.slice(half))})`;
}

/**
 * The WGSL function `lost_of`: what a compensated (Kahan) sum is to take from its next term. Nothing is lost of a sum that is not
 * finite: infinity less infinity would make NaN of it. Its bits are asked, since compilers may take all numbers for finite.
 */
export function compensationText(scalar: Scalar, width: 1 | 4): string {
  const type = typeName(scalar, width);
  const bits = width === 4 ? "vec4u" : "u32";
  const single = scalar === "f64" ? `${width === 4 ? "vec4f" : "f32"}(next)` : "next";
  return `fn lost_of(sum: ${type}, term: ${type}, next: ${type}) -> ${type} {
  let size = bitcast<${bits}>(${single}) & ${bits}(0x7f800000u);
  return select((next - sum) - term, ${zeroOf(scalar, width)}, size == ${bits}(0x7f800000u));
}`;
}

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

/** How a pass sums the splits of so many vectors of partial results: what its template takes, and what it costs. */
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
    workgroups: Math.ceil(vectors * lanes / THREADS),
    bytes: lanes === 1 ? 0 : (exact ? 1 : 2) * THREADS * width * scalarBytes(sum),
    iterations: loopIterations(Math.ceil(splits / (AT_ONCE * lanes))) +
      (lanes === 1 ? 0 : loopIterations(lanes - 1)),
  };
}
