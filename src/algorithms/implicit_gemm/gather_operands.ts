import { elementsOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import type { Axis, Direction } from "../../kernels/axes.ts";
import { loadedTensor, VECTOR_BYTES } from "../../kernels/loader.ts";
import {
  gatherLoader,
  type GatherWalk,
  rowTrait,
  type WalkedRow,
  walkedRow,
} from "../../kernels/loaders/gather.ts";
import { packedLoader } from "../../kernels/loaders/matrix.ts";
import { unitScalar } from "../../kernels/matrix_units.ts";
import type { PackShape } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { type ConvProblem, operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import type { Layout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { tapDepth } from "../conv_product.ts";
import {
  ceilTo,
  groupOf,
  packedShape,
  prefersInterleaved,
  spatialAxes,
  stridesOf,
} from "../geometry.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import {
  type Access,
  accessVector,
  type FilterOperand,
  filterOperands,
  layoutTrait,
  loadVector,
  type Operands,
} from "./access.ts";

/**
 * Forward, and backward-data with stride 1: filter times gathered image, the filter packed or as it lies; tap by tap, and by rows of
 * taps where there are such.
 *
 * @param results How the results lie.
 */
export function gatherOperands(
  request: PlanRequest,
  results: Layout,
): readonly [Operands, ...Operands[]] {
  const [first, ...others] = gathered(request, results, undefined);
  const row = walkedTaps(request, results);
  return [first, ...others, ...(row === undefined ? [] : gathered(request, results, row))];
}

/** Taps of a row that a step has matrices for. */
const MOST_ROW_TAPS = 7;

/**
 * The rows of taps by which matrix units may walk: of f16 and int8 images whose channels are whole vectors of 16 bytes, and whose results
 * leave as whole vectors of channels. Undefined where they may not.
 */
function walkedTaps(request: PlanRequest, results: Layout): WalkedRow | undefined {
  const { problem, layout } = request;
  const unit = productUnit(request);
  if (unit === undefined || unit.split) return undefined;
  if (layout !== "nhwc" || results !== "nhwc" || problem.stride.at(-1) !== 1) return undefined;
  const { inputs, outputs } = groupOf(request);
  const [rows, channels] = problem.op === "fwd" ? [outputs, inputs] : [inputs, outputs];
  const axis = gatheredAxes(request).at(-1)!;
  const vector = VECTOR_BYTES / scalarBytes(unitScalar(unit.unit));
  const whole = [rows, stridesOf(request, resultTensor(problem.op)).at(-1)!];
  if (
    axis.taps === 1 || axis.taps > MOST_ROW_TAPS || channels % vector !== 0 ||
    whole.some((channels) => channels % 4 !== 0)
  ) {
    return undefined;
  }
  return walkedRow(axis, directionOf(problem));
}

/** Which way places of the results meet the gathered image. */
function directionOf({ op }: ConvProblem): Direction {
  return op === "fwd" ? "forward" : "backward";
}

function gatheredAxes(request: PlanRequest): Axis[] {
  const { problem } = request;
  const source = stridesOf(request, operandTensors(problem.op)[0]);
  return spatialAxes(problem, directionOf(problem), source);
}

/** The operands of one walk: by rows of taps, or tap by tap. */
function gathered(
  request: PlanRequest,
  results: Layout,
  row: WalkedRow | undefined,
): readonly [Operands, ...Operands[]] {
  const { problem, layout } = request;
  const { op, batch, groups } = problem;
  const elements = elementsOf(request);
  const forward = op === "fwd";
  const { inputs, outputs } = groupOf(request);
  const [rows, channels] = forward ? [outputs, inputs] : [inputs, outputs];
  const [source] = operandTensors(op);
  const sourceStrides = stridesOf(request, source);
  const target = stridesOf(request, resultTensor(op), results) as [number, number];
  const places = forward ? problem.outputSize : problem.inputSize;
  const taps = elementCount(problem.filterSize);
  const spots = elementCount(places);
  const batchInner = layout === "chwn";
  const access = { value: elements.tile, gathered: true };
  const b: Access = layout === "nhwc"
    ? {
      ...access,
      along: "depth",
      vector: loadVector(channels),
      steps: [channels],
      pitch: sourceStrides.at(-1)! * (forward ? problem.stride.at(-1)! : 1),
      ...(row && { sharedTaps: { kind: "row", taps: row.taps, dilation: row.dilation } }),
    }
    : { ...access, along: "place", vector: batchInner ? loadVector(batch) : 1, steps: [batch] };
  const axes = gatheredAxes(request);
  const walkOf = ({ depth }: TilePolicy): GatherWalk => {
    if (row !== undefined) return row;
    const whole = tapDepth(channels, depth) % depth === 0;
    // Along places one tap a step, although there is but one, is as fast or faster on an H200.
    if (taps === 1 && (b.along === "depth" || !whole)) return "point";
    return whole ? "tap" : "linear";
  };
  const spotStride = target.at(-1)!;
  const interleave = row === undefined && prefersInterleaved({ problem, layout: results }, rows)
    ? 4
    : 1;
  // Channels of a step, and of a tap with their padding.
  const deep = ({ depth }: TilePolicy) => Math.ceil(depth / (row?.taps ?? 1));
  const padded = (policy: TilePolicy) =>
    row === undefined ? tapDepth(channels, policy.depth) : ceilTo(channels, deep(policy));
  const pack = (policy: TilePolicy): PackShape => ({
    ...packedShape(request, policy, padded(policy)),
    ...(row && { tapRows: { taps: row.taps, channels: deep(policy), reversed: !forward } }),
  });
  const filters = filterOperands(request, {
    pack,
    taps: problem.filterSize,
    packed: (module, tensor, { paddedRows: places, depth }, policy, vector) =>
      packedLoader(module, "a", tensor, { places, depth, tileDepth: policy.depth, vector }),
    lying: (_, policy) => {
      const walk = walkOf(policy);
      return walk === "linear" ? {} : { tap: (d) => walk === "point" ? "0u" : `b_tap${d}` };
    },
  });
  const withFilter = (filter: FilterOperand): Operands => ({
    rows,
    columns: batch * (row === undefined ? spots : elementCount(places.slice(0, -1)) * row.places),
    batches: groups,
    a: filter.access,
    b,
    left: "filter",
    depth: (policy) => taps * padded(policy),
    pack: filter.pack,
    loaders(module, policy, split) {
      const a = filter.loader(module, policy, split("a"));
      const vector = accessVector(policy, b);
      const image = loadedTensor(module, source, vector, split("b"), elements);
      return [
        a,
        gatherLoader(module, image, {
          direction: directionOf(problem),
          axes,
          source: {
            batch,
            channels,
            batchStride: sourceStrides[0]!,
            channelStride: sourceStrides[1]!,
            pitch: b.pitch,
          },
          paddedChannels: padded(policy),
          batchInner,
          interleave,
          along: b.along,
          vector,
          tileDepth: policy.depth,
          walk: walkOf(policy),
        }),
      ];
    },
    result: {
      row: target[1],
      group: rows * target[1],
      inner: spotStride,
      ...(row !== undefined
        ? { period: row.places, outer: places.at(-1)! * spotStride, results: places.at(-1)! }
        : batchInner
        ? { period: batch, outer: spotStride, inner: target[0] }
        : interleave === 4
        ? { period: 4 * spots, outer: 4 * target[0], interleave: target[0] }
        : { period: spots, outer: target[0] }),
    },
    crossesTaps: (policy) => walkOf(policy) === "linear",
    trait(policy) {
      const walk = walkOf(policy);
      return `${layoutTrait(request, results)}_${places.length}d_${
        typeof walk === "string" ? walk : rowTrait(walk)
      }_${filter.trait(policy)}b${accessVector(policy, b)}${interleave === 4 ? "i4" : ""}`;
    },
  });
  const [first, ...others] = filters;
  return [withFilter(first), ...others.map(withFilter)];
}
