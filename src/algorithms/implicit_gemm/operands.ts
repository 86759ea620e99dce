import { elementsOf } from "../../elements/elements.ts";
import { placesLoader, shiftedInputLoader } from "../../kernels/loaders/correlation.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import {
  gatherLoader,
  type GatherWalk,
  type WalkedRow,
  walkedRow,
} from "../../kernels/loaders/gather.ts";
import { packedLoader } from "../../kernels/loaders/packed.ts";
import type { PackShape } from "../../kernels/pack_strided.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import type { Axis } from "../../kernels/axes.ts";
import type { ConvProblem, ConvTensor } from "../../problem/conv_problem.ts";
import type { Layout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { tapDepth } from "../conv_product.ts";
import { productUnit } from "../product.ts";
import { prefersInterleaved } from "../interleave.ts";
import type { PlanRequest } from "../request.ts";
import {
  type Access,
  groupChannels,
  layoutTrait,
  loadVector,
  type Operands,
  stridesOf,
} from "./access.ts";
import { type FilterOperand, filterOperands } from "./filter_operand.ts";

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
  const row = tapRow(request, results);
  return [first, ...others, ...(row === undefined ? [] : gathered(request, results, row))];
}

/** Taps of a row that a step has matrices for. */
const MOST_ROW_TAPS = 4;

/**
 * The rows of taps by which matrix units may walk: of f16 images whose channels lie in eights, and whose results leave as whole vectors of
 * channels. Undefined where they may not.
 */
function tapRow(request: PlanRequest, results: Layout): WalkedRow | undefined {
  const { problem, layout } = request;
  const unit = productUnit(request);
  if (unit?.unit.component !== "f16" || unit.split) return undefined;
  if (layout !== "nhwc" || results !== "nhwc" || problem.stride.at(-1) !== 1) return undefined;
  const forward = problem.op === "fwd";
  const { input, output } = groupChannels(problem);
  const [rows, channels] = forward ? [output, input] : [input, output];
  const axis = gatheredAxes(request).at(-1)!;
  if (axis.taps === 1 || axis.taps > MOST_ROW_TAPS || channels % 8 !== 0 || rows % 4 !== 0) {
    return undefined;
  }
  return walkedRow(axis, forward ? "forward" : "backward");
}

/** The axes between the places of the results, the filter's taps and the gathered image. */
function gatheredAxes(request: PlanRequest): Axis[] {
  const { problem } = request;
  const forward = problem.op === "fwd";
  const strides = stridesOf(request, forward ? "input" : "output");
  const [places, sizes] = forward
    ? [problem.outputSize, problem.inputSize]
    : [problem.inputSize, problem.outputSize];
  return places.map((_, d): Axis => ({
    places: places[d]!,
    taps: problem.filterSize[d]!,
    size: sizes[d]!,
    stride: problem.stride[d]!,
    padding: problem.paddingBegin[d]!,
    dilation: problem.dilation[d]!,
    sourceStride: strides[2 + d]!,
  }));
}

/** `tap`, `row3`, `row3x2`: a walk as it stands in kernel names, rows with their taps and dilation. */
function walkTrait(walk: GatherWalk): string {
  if (typeof walk === "string") return walk;
  return `row${walk.taps}${walk.dilation === 1 ? "" : `x${walk.dilation}`}`;
}

/** The operands of one walk: by rows of taps, or tap by tap. */
function gathered(
  request: PlanRequest,
  results: Layout,
  row: WalkedRow | undefined,
): readonly [Operands, ...Operands[]] {
  const { problem, layout } = request;
  const elements = elementsOf(request);
  const { tile } = elements;
  const four = loadVector(request);
  const forward = problem.op === "fwd";
  const group = groupChannels(problem);
  const rows = forward ? group.output : group.input;
  const channels = forward ? group.input : group.output;
  const source: ConvTensor = forward ? "input" : "output";
  const target: ConvTensor = forward ? "output" : "input";
  const sourceStrides = stridesOf(request, source);
  const targetStrides = stridesOf(request, target, results);
  const filterStrides = stridesOf(request, "filter");
  const places = forward ? problem.outputSize : problem.inputSize;
  const taps = elementCount(problem.filterSize);
  const spots = elementCount(places);
  const batchInner = layout === "chwn";
  const b: Access = layout === "nhwc"
    ? {
      along: "depth",
      vector: four(channels),
      value: tile,
      gathered: true,
      steps: [channels],
      ...(row && { tapRow: { taps: row.taps, dilation: row.dilation } }),
    }
    : {
      along: "place",
      vector: batchInner ? four(problem.batch) : 1,
      value: tile,
      gathered: true,
      steps: [problem.batch],
    };
  const axes = gatheredAxes(request);
  const walkOf = ({ depth }: TilePolicy): GatherWalk => {
    if (row !== undefined) return row;
    const whole = tapDepth(channels, depth) % depth === 0;
    // Along places one tap a step, although there is but one, is measured faster or alike (`one_tap.jsonl`).
    if (taps === 1 && (b.along === "depth" || !whole)) return "point";
    return whole ? "tap" : "linear";
  };
  const spotStride = targetStrides.at(-1)!;
  const interleave = row === undefined && prefersInterleaved({ problem, layout: results }, rows)
    ? 4
    : 1;
  // Channels of a step, and of a tap with their padding.
  const deep = ({ depth }: TilePolicy) => Math.ceil(depth / (row?.taps ?? 1));
  const padded = (policy: TilePolicy) =>
    row === undefined
      ? tapDepth(channels, policy.depth)
      : Math.ceil(channels / deep(policy)) * deep(policy);
  const depthOf = (policy: TilePolicy) => taps * padded(policy);
  const pack = (policy: TilePolicy): PackShape => ({
    groups: problem.groups,
    rows,
    paddedRows: Math.ceil(rows / policy.rows) * policy.rows,
    channels,
    paddedChannels: padded(policy),
    taps,
    depth: Math.ceil(depthOf(policy) / policy.depth) * policy.depth,
    ...(row && { tapRows: { taps: row.taps, channels: deep(policy), reversed: !forward } }),
    groupStride: group.output * filterStrides[0]!,
    rowStride: filterStrides[forward ? 0 : 1]!,
    channelStride: filterStrides[forward ? 1 : 0]!,
    tapStride: filterStrides.at(-1)!,
  });
  const filters = filterOperands(request, {
    pack,
    taps: problem.filterSize,
    packed: (module, tensor, { paddedRows: places, depth }, policy, vector) =>
      packedLoader(module, "a", tensor, { places, depth, tileDepth: policy.depth, vector }),
    // Rows of taps are in order in a packed one alone.
    lying: row === undefined
      ? (_, policy) => {
        const walk = walkOf(policy);
        return walk === "linear" ? {} : { tap: (d) => walk === "point" ? "0u" : `b_tap${d}` };
      }
      : undefined,
  });
  const vectorOf = (policy: TilePolicy) => policyVector(policy, b.vector, b.steps ?? []);
  const withFilter = (filter: FilterOperand): Operands => ({
    rows,
    columns: problem.batch *
      (row === undefined ? spots : elementCount(places.slice(0, -1)) * row.places),
    batches: problem.groups,
    a: filter.access,
    b,
    left: "filter",
    depth: depthOf,
    pack: filter.pack,
    loaders(module, policy, split) {
      const a = filter.loader(module, policy, split("a"));
      const vector = vectorOf(policy);
      const image = loadedTensor(module, source, vector, split("b"), elements);
      return [
        a,
        gatherLoader(module, image, {
          direction: forward ? "forward" : "backward",
          axes,
          batch: problem.batch,
          channels,
          paddedChannels: padded(policy),
          batchStride: sourceStrides[0]!,
          channelStride: sourceStrides[1]!,
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
      row: targetStrides[1]!,
      group: rows * targetStrides[1]!,
      ...(row !== undefined
        ? {
          period: row.places,
          outer: places.at(-1)! * spotStride,
          inner: spotStride,
          results: places.at(-1)!,
        }
        : batchInner
        ? { period: problem.batch, outer: spotStride, inner: targetStrides[0]! }
        : interleave === 4
        ? {
          period: 4 * spots,
          outer: 4 * targetStrides[0]!,
          inner: spotStride,
          interleave: targetStrides[0]!,
        }
        : { period: spots, outer: targetStrides[0]!, inner: spotStride }),
    },
    linear: (policy) => walkOf(policy) === "linear",
    trait: (policy) =>
      `${layoutTrait(request, results)}_${places.length}d_${walkTrait(walkOf(policy))}_${
        filter.trait(policy)
      }b${vectorOf(policy)}${interleave === 4 ? "i4" : ""}`,
  });
  const [first, ...others] = filters;
  return [withFilter(first), ...others.map(withFilter)];
}

/** Backward-filter: output gradient times shifted input, deep along images and places. */
export function correlationOperands(request: PlanRequest): Operands {
  const { problem, layout, filterLayout } = request;
  const elements = elementsOf(request);
  const { tile } = elements;
  const four = loadVector(request);
  const group = groupChannels(problem);
  const inputStrides = stridesOf(request, "input");
  const gradientStrides = stridesOf(request, "output");
  const filterStrides = stridesOf(request, "filter");
  const taps = elementCount(problem.filterSize);
  const spots = elementCount(problem.outputSize);
  const batchInner = layout === "chwn";
  const channelsInner = layout === "nhwc" || filterLayout === "krsc" || taps === 1;
  const still = meetsPlaces(problem);
  const alongDepth = four(batchInner ? problem.batch : spots);
  const innermost = [batchInner ? problem.batch : spots];
  const a: Access = layout === "nhwc"
    ? { along: "place", vector: four(group.output), value: tile, steps: [group.output] }
    : { along: "depth", vector: alongDepth, value: tile, steps: innermost };
  const b: Access = layout === "nhwc"
    ? { along: "place", vector: four(group.input), value: tile, steps: [group.input] }
    : {
      along: "depth",
      vector: still || batchInner ? alongDepth : 1,
      value: tile,
      steps: innermost,
    };
  const depth = problem.batch * spots;
  const vectorOf = (policy: TilePolicy, { vector, steps = [] }: Access) =>
    policyVector(policy, vector, steps);
  return {
    rows: group.output,
    columns: group.input * taps,
    batches: problem.groups,
    a,
    b,
    left: "output",
    depth: () => depth,
    pack: () => undefined,
    loaders(module, policy, split) {
      const vectors = {
        a: vectorOf(policy, a),
        b: vectorOf(policy, b),
      };
      const gradient = loadedTensor(module, "output", vectors.a, split("a"), elements);
      const input = loadedTensor(module, "input", vectors.b, split("b"), elements);
      // Places of all images follow each other in both operands.
      const flat = still && layout === "nhwc";
      const correlation = {
        batch: flat ? 1 : problem.batch,
        places: flat ? [depth] : problem.outputSize,
        batchInner,
        tileDepth: policy.depth,
      };
      return [
        placesLoader(module, "a", gradient, correlation, {
          channels: group.output,
          channelStride: gradientStrides[1]!,
          batchStride: gradientStrides[0]!,
          placeStride: gradientStrides.at(-1)!,
          along: a.along,
          vector: vectors.a,
        }),
        still
          ? placesLoader(module, "b", input, correlation, {
            channels: group.input,
            channelStride: inputStrides[1]!,
            batchStride: inputStrides[0]!,
            placeStride: inputStrides.at(-1)!,
            along: b.along,
            vector: vectors.b,
          })
          : shiftedInputLoader(module, input, correlation, {
            axes: problem.filterSize.map((taps, d) => ({
              places: problem.outputSize[d]!,
              taps,
              size: problem.inputSize[d]!,
              stride: problem.stride[d]!,
              padding: problem.paddingBegin[d]!,
              dilation: problem.dilation[d]!,
              sourceStride: inputStrides[2 + d]!,
            })),
            channels: group.input,
            channelStride: inputStrides[1]!,
            batchStride: inputStrides[0]!,
            channelsInner,
            along: b.along,
            vector: vectors.b,
          }),
      ];
    },
    result: {
      row: filterStrides[0]!,
      group: group.output * filterStrides[0]!,
      ...(channelsInner
        ? {
          period: group.input,
          outer: taps > 1 ? filterStrides.at(-1)! : 0,
          inner: filterStrides[1]!,
        }
        : { period: taps, outer: filterStrides[1]!, inner: filterStrides.at(-1)! }),
    },
    linear: () => false,
    trait: (policy) =>
      `${layout}_${problem.filterSize.length}d_${
        still ? "point" : channelsInner ? "rsc" : "crs"
      }_a${vectorOf(policy, a)}b${vectorOf(policy, b)}`,
  };
}

/** Whether every output place meets the input's same place and no other: one tap, stride 1, no padding. */
function meetsPlaces({ filterSize, stride, inputSize, outputSize }: ConvProblem): boolean {
  return filterSize.every((taps, d) =>
    taps === 1 && stride[d] === 1 && inputSize[d] === outputSize[d]
  );
}
