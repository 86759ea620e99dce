import { type ConvProblem, resultTensor, tensorShape } from "../problem/conv_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { GemmJob } from "./gemm_kernel.ts";
import { columnCount, type GemmPlan } from "./gemm_plan.ts";
import type { Geometry } from "./geometry.ts";
import type { ProjectionJob } from "./projection_kernel.ts";
import { randomStream, samplePlaces } from "./sample.ts";

/** Results computed one by one: places `start` to `end` of the list, or of the whole result. */
interface DirectJob {
  readonly start: number;
  readonly end: number;
}

/** What is to be computed, cut into pieces that may run in any order, each on one core. */
export interface Work {
  readonly direct: readonly DirectJob[];
  readonly gemm: readonly GemmJob[];
  readonly projection?: readonly ProjectionJob[];
  /** Canonical flat index of each value; absent: all, in order. */
  readonly indices?: Float64Array;
  /** How many values come out. */
  readonly count: number;
  /** Multiply-adds, a rough measure of the time needed. */
  readonly multiplications: number;
}

/** Rows a block keeps packed: 256 x 256 doubles stay in a core's L2 cache. */
const BLOCK_ROWS = 256;
const BLOCK_COLUMNS = 128;
/** Narrower blocks would spend their time packing rows. */
const FEWEST_COLUMNS = 8;
const PIECES_PER_CORE = 4;
/** Sampled filter gradients: so many output channels share their (c, r, s), 64 bytes of an NHWC pixel. */
const SHARED_ROWS = 16;
/** Below so many rows the 4x4 kernel wastes more than packing gains. */
const FEWEST_ROWS = 3;

/** All of the result, in some pieces for each of `cores`. */
export function wholeWork(
  g: Geometry,
  plans: readonly GemmPlan[],
  count: number,
  cores: number,
): Work {
  const depth = averageDepth(g);
  const work = { count, multiplications: count * depth };
  if (plans.every((plan) => plan.rows < FEWEST_ROWS)) {
    return { ...work, gemm: [], direct: directJobs(count, depth) };
  }
  const gemm = plans.flatMap((plan, at) => {
    const columns = columnCount(plan);
    const bands = ranges(plan.rows, BLOCK_ROWS).length * g.groups * plans.length;
    // Few columns, as small pictures and filter gradients have, still make work for every core.
    const share = Math.ceil((columns * bands) / (PIECES_PER_CORE * Math.max(1, cores)));
    const width = Math.min(BLOCK_COLUMNS, Math.max(FEWEST_COLUMNS, (share + 3) & ~3));
    return ranges(plan.rows, BLOCK_ROWS).flatMap(([rowStart, rowEnd]) =>
      ranges(columns, width).flatMap(([columnStart, columnEnd]) =>
        Array.from(
          { length: g.groups },
          (_, group) => ({ plan: at, group, rowStart, rowEnd, columnStart, columnEnd }),
        )
      )
    );
  });
  return { ...work, gemm, direct: [] };
}

/**
 * A sample with equally many places in every output channel (axis 1 of activations, axis 0 of filters),
 * at least `sample.count` in all.
 */
export function sampledWork(
  problem: ConvProblem,
  g: Geometry,
  sample: { count: number; seed: number },
): Work {
  const shape = tensorShape(problem, resultTensor(problem.op));
  const random = randomStream(sample.seed);
  const channelAxis = problem.op === "bwd-filter" ? 0 : 1;
  const channels = shape[channelAxis]!;
  const spatial = shape.slice(2);
  const grid = [shape[1 - channelAxis]!, ...spatial];
  const perChannel = Math.ceil(sample.count / channels);
  const pitch = Math.min(perChannel, elementCount(grid));
  const indices = new Float64Array(channels * pitch);
  const depth = averageDepth(g);
  const work = {
    indices,
    count: indices.length,
    multiplications: indices.length * depth,
  };
  const area = elementCount(spatial);
  if (problem.op !== "bwd-filter") {
    for (let channel = 0; channel < channels; channel++) {
      const places = samplePlaces(grid, pitch, channels - 1 - channel, random);
      places.forEach((place, i) => {
        const outer = Math.floor(place / area);
        indices[channel * pitch + i] = (outer * channels + channel) * area + place % area;
      });
    }
    return { ...work, gemm: [], direct: directJobs(indices.length, depth) };
  }
  // Each value sums N·P·Q products: channels share their places, so that what is read serves them all.
  const gemm: GemmJob[] = [];
  for (let group = 0; group < g.groups; group++) {
    for (const [rowStart, rowEnd] of ranges(g.outChannels, SHARED_ROWS)) {
      const places = samplePlaces(grid, pitch, Math.floor((channels - 1) / SHARED_ROWS), random);
      const first = (group * g.outChannels + rowStart) * pitch;
      for (let row = rowStart; row < rowEnd; row++) {
        const channel = group * g.outChannels + row;
        places.forEach((place, i) => {
          indices[channel * pitch + i] = channel * elementCount(grid) + place;
        });
      }
      const columns = Int32Array.from(
        places,
        (place) => (place % area) * g.inChannels + Math.floor(place / area),
      );
      gemm.push({
        plan: 0,
        group,
        rowStart,
        rowEnd,
        columnStart: 0,
        columnEnd: 0,
        list: { columns, target: first, pitch },
      });
    }
  }
  if (g.outChannels < FEWEST_ROWS) {
    return { ...work, gemm: [], direct: directJobs(indices.length, depth) };
  }
  return { ...work, gemm, direct: [] };
}

/** The results at a list of canonical flat indices. */
export function listedWork(g: Geometry, indices: Float64Array): Work {
  const count = indices.length;
  const depth = averageDepth(g);
  const multiplications = count * depth;
  return { indices, count, multiplications, gemm: [], direct: directJobs(count, depth) };
}

/** All of a convolution with one filter a group, some milliseconds a piece. */
export function projectedWork(g: Geometry, plans: readonly GemmPlan[], count: number): Work {
  const projection = plans.flatMap((plan, at) => {
    const [g0, g1, g2] = plan.grid;
    const alongBatch = plan.gatherStrides[0] === 1 && plan.batch >= FEWEST_COLUMNS;
    const [lines, length] = alongBatch ? [g0 * g1 * g2, plan.batch] : [plan.batch * g0 * g1, g2];
    const depth = length * plan.channels * plan.taps.length / 3;
    return ranges(lines, Math.ceil(2 ** 21 / Math.max(depth, 16))).flatMap(
      ([lineStart, lineEnd]) =>
        Array.from(
          { length: g.groups },
          (_, group) => ({ plan: at, group, alongBatch, lineStart, lineEnd }),
        ),
    );
  });
  const multiplications = count * averageDepth(g);
  return { count, multiplications, direct: [], gemm: [], projection };
}

/** Products per result, rows and columns that meet padding counted; strided backward-data meets fewer. */
function averageDepth(g: Geometry): number {
  const product = (sizes: readonly number[]) => sizes.reduce((all, size) => all * size, 1);
  if (g.op === "fwd") return g.inChannels * product(g.filterSize);
  if (g.op === "bwd-filter") return g.batch * product(g.outputSize);
  return g.outChannels * Math.max(1, product(g.filterSize) / product(g.stride));
}

/** About a million multiply-adds a job: some milliseconds. */
function directJobs(count: number, depth: number): DirectJob[] {
  const size = Math.max(1, Math.ceil(2 ** 20 / Math.max(depth, 16)));
  return ranges(count, size).map(([start, end]) => ({ start, end }));
}

function ranges(count: number, size: number): [number, number][] {
  const parts: [number, number][] = [];
  for (let start = 0; start < count; start += size) {
    parts.push([start, Math.min(count, start + size)]);
  }
  return parts;
}
