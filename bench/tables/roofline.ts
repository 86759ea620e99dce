/** The least time that a convolution's way could take on an NVIDIA H200. */
import { type ConvProblem, tensorBytes } from "../../src/problem/conv_problem.ts";
import { elementCount } from "../../src/tensor/tensor.ts";
import { type Case, problemOf } from "./read.ts";

/** FP32, data sheet: 132 multiprocessors, 128 multiply-adds a clock, 1.98 GHz. */
export const FLOPS = 67e12;
/** Bytes a second of a copy, reads and writes together, measured. */
const BYTES = 4.3e12;

/** Microseconds at least: of its multiplications, and of what its passes read and write. */
export interface Floor {
  readonly arithmetic: number;
  readonly memory: number;
}

/** Of a case of ours: the multiplications that it recorded, padding of tiles included. */
export function floorOf(one: Case): Floor {
  const bytes = tensorBytes(problemOf(one), 4) + 2 * transformedBytes(one);
  return {
    arithmetic: 2e6 * (one.multiplications ?? NaN) / FLOPS,
    memory: 1e6 * bytes / BYTES,
  };
}

/** The larger of the two, in microseconds. */
export function floorTime({ arithmetic, memory }: Floor): number {
  return Math.max(arithmetic, memory);
}

/**
 * Bytes of a non-fused plan's transformed tensors, over all chunks of the batch, each written once and read once;
 * partial sums of split depth are not counted. 0 of other algorithms.
 */
function transformedBytes(one: Case): number {
  const tile = /_m(\d+)x(\d+)r(\d+)x(\d+)_/.exec(one.kernel ?? "")?.slice(1).map(Number);
  if (tile === undefined) return 0;
  const problem = problemOf(one);
  const [m0, m1, r0, r1] = tile as [number, number, number, number];
  const points = (m0 + r0 - 1) * (m1 + r1 - 1);
  const { batch, inChannels, outChannels } = problem;
  const filter = inChannels * outChannels;
  // Backward-filter: results are the filter, tiles lie on dY; else tiles lie on the result.
  const [image, cut] = one.op === "bwd-filter"
    ? [problem.outputSize, [r0, r1]]
    : [resultSize(problem, one.op), [m0, m1]];
  const tiles = batch * elementCount(image.map((size, axis) => Math.ceil(size / cut[axis]!)));
  return 4 * points * (tiles * (inChannels + outChannels) + filter);
}

function resultSize(problem: ConvProblem, op: Case["op"]): readonly number[] {
  return op === "bwd-data" ? problem.inputSize : problem.outputSize;
}
