import type { Geometry, Triple } from "./geometry.ts";

/**
 * One operation, or one residue class of a strided backward-data, as a matrix product per group. Rows are
 * the channels of the dense operand. The gathered operand is read at `position·step + tap`, and is zero
 * outside its sizes.
 *
 * - `pixels` columns (fwd, bwd-data): result(row, position) = Σ over taps and channels of
 *   dense(row, channel, tap) · gathered(channel, position, tap).
 * - `taps` columns (bwd-filter): result(row, channel, tap) = Σ over positions of
 *   dense(row, position) · gathered(channel, position, tap).
 */
export interface GemmPlan {
  readonly columns: "pixels" | "taps";
  /** Rows, and channels of the gathered operand, of one group. */
  readonly rows: number;
  readonly channels: number;
  readonly batch: number;
  /** Positions along the three spatial axes. */
  readonly grid: Triple;
  readonly step: Triple;
  /** Sizes of the gathered operand along the three axes. */
  readonly limit: Triple;
  /** Batch, channel and spatial strides of the gathered operand. */
  readonly gatherStrides: readonly number[];
  /** Three coordinates a tap. */
  readonly taps: Int32Array;
  /** Dense operand: step from group to group and row to row, then to the other two or four axes. */
  readonly denseGroup: number;
  readonly denseRow: number;
  readonly denseChannel: number;
  /** `pixels`: offset of each tap in the dense operand. */
  readonly denseTaps: Float64Array;
  /** `taps`: batch and spatial strides of the dense operand. */
  readonly densePositions: readonly number[];
  /** Result, canonical order: steps and, for `taps`, the place of each tap. */
  readonly resultGroup: number;
  readonly resultRow: number;
  readonly resultChannel: number;
  readonly resultTaps: Float64Array;
  readonly resultOrigin: number;
  /** `pixels`: batch and spatial strides of the result. */
  readonly resultPositions: readonly number[];
}

/** The matrix products that make up `g`; `result` are the canonical strides of its result. */
export function gemmPlans(g: Geometry, result: readonly number[]): GemmPlan[] {
  const [batch = 0, channel = 0, ...spatial] = result;
  const filterTap = (tap: Triple) =>
    tap.reduce((sum, at, axis) => sum + at * g.filterStrides[axis + 2]!, 0);
  const taps = allTaps(g.filterSize);
  const inputGather = {
    channels: g.inChannels,
    batch: g.batch,
    grid: g.outputSize,
    step: g.stride,
    limit: g.inputSize,
    gatherStrides: g.inputStrides,
    taps: Int32Array.from(
      taps.flatMap((tap) => tap.map((at, axis) => at * g.dilation[axis]! - g.padding[axis]!)),
    ),
  };
  if (g.op === "fwd") {
    return [{
      ...inputGather,
      columns: "pixels",
      rows: g.outChannels,
      denseGroup: g.outChannels * g.filterStrides[0]!,
      denseRow: g.filterStrides[0]!,
      denseChannel: g.filterStrides[1]!,
      denseTaps: Float64Array.from(taps, filterTap),
      densePositions: [],
      resultGroup: g.outChannels * channel,
      resultRow: channel,
      resultChannel: 0,
      resultTaps: new Float64Array(0),
      resultOrigin: 0,
      resultPositions: [batch, ...spatial],
    }];
  }
  if (g.op === "bwd-filter") {
    return [{
      ...inputGather,
      columns: "taps",
      rows: g.outChannels,
      denseGroup: g.outChannels * g.outputStrides[1]!,
      denseRow: g.outputStrides[1]!,
      denseChannel: 0,
      denseTaps: new Float64Array(0),
      densePositions: [g.outputStrides[0]!, ...g.outputStrides.slice(2)],
      resultGroup: g.outChannels * batch,
      resultRow: batch,
      resultChannel: channel,
      resultTaps: Float64Array.from(taps, (_, tap) => tap),
      resultOrigin: 0,
      resultPositions: [],
    }];
  }
  return residues(g).map((first) => {
    // Input rows first, first + s, ... meet the same taps; output coordinate = position + tap.
    const meeting = taps.filter((tap) =>
      tap.every((at, axis) =>
        (first[axis]! + g.padding[axis]! - at * g.dilation[axis]!) % g.stride[axis]! === 0
      )
    );
    return {
      columns: "pixels",
      rows: g.inChannels,
      channels: g.outChannels,
      batch: g.batch,
      grid: map3((axis) => Math.ceil((g.inputSize[axis]! - first[axis]!) / g.stride[axis]!)),
      step: [1, 1, 1],
      limit: g.outputSize,
      gatherStrides: g.outputStrides,
      taps: Int32Array.from(
        meeting.flatMap((tap) =>
          map3((axis) =>
            (first[axis]! + g.padding[axis]! - tap[axis]! * g.dilation[axis]!) / g.stride[axis]!
          )
        ),
      ),
      denseGroup: g.outChannels * g.filterStrides[0]!,
      denseRow: g.filterStrides[1]!,
      denseChannel: g.filterStrides[0]!,
      denseTaps: Float64Array.from(meeting, filterTap),
      densePositions: [],
      resultGroup: g.inChannels * channel,
      resultRow: channel,
      resultChannel: 0,
      resultTaps: new Float64Array(0),
      resultOrigin: first.reduce((sum, at, axis) => sum + at * spatial[axis]!, 0),
      resultPositions: [batch, ...spatial.map((stride, axis) => stride * g.stride[axis]!)],
    };
  });
}

/** Columns of one group of `plan`. */
export function columnCount(plan: GemmPlan): number {
  return plan.columns === "pixels"
    ? plan.batch * plan.grid[0] * plan.grid[1] * plan.grid[2]
    : plan.channels * (plan.taps.length / 3);
}

function allTaps(size: Triple): Triple[] {
  const taps: Triple[] = [];
  for (let t = 0; t < size[0]; t++) {
    for (let r = 0; r < size[1]; r++) {
      for (let s = 0; s < size[2]; s++) taps.push([t, r, s]);
    }
  }
  return taps;
}

/** First input position of every residue class modulo the stride. */
function residues(g: Geometry): Triple[] {
  return allTaps(map3((axis) => Math.min(g.stride[axis]!, g.inputSize[axis]!)));
}

function map3(value: (axis: number) => number): Triple {
  return [value(0), value(1), value(2)];
}
