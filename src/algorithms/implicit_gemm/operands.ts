import { elementsOf } from "../../elements/elements.ts";
import type { Scalar } from "../../elements/scalar.ts";
import type { TileLoader } from "../../kernels/loader.ts";
import { gradientLoader, shiftedInputLoader } from "../../kernels/loaders/correlation.ts";
import { gatherLoader } from "../../kernels/loaders/gather.ts";
import { packedLoader } from "../../kernels/loaders/packed.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import type { ModuleBuilder, TensorSplit } from "../../kernels/module.ts";
import type { PackShape } from "../../kernels/pack_strided.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { tapDepth } from "../conv_product.ts";
import type { PlanRequest } from "../request.ts";

type Along = TileLoader["along"];
interface Access {
  readonly along: Along;
  readonly value: Scalar;
  readonly vector: 1 | 4;
}

/** The product a problem becomes, and how its operands and result lie in memory. */
export interface Operands {
  readonly rows: number;
  readonly columns: number;
  readonly a: Access;
  readonly b: Access;
  /** Products that a result sums, padding of the taps included. */
  depth(policy: TilePolicy): number;
  /** The filter's packed form, which forward and backward-data read in place of the filter. */
  pack(policy: TilePolicy): PackShape | undefined;
  loaders(
    module: ModuleBuilder,
    policy: TilePolicy,
    split: (operand: "a" | "b") => TensorSplit,
  ): [TileLoader, TileLoader];
  readonly result: {
    readonly row: number;
    readonly outer: number;
    readonly inner: number;
    readonly period: number;
    /** Offset from one group to the next. */
    readonly group: number;
  };
  /** Whether a step may reach into several taps, so that every load finds its own. */
  linear(policy: TilePolicy): boolean;
  /** Enters the kernel's name. */
  trait(policy: TilePolicy): string;
}

/** Strides in elements of one of the problem's tensors, per canonical axis. */
function stridesOf(request: PlanRequest, which: ConvTensor): number[] {
  const layout = which === "filter" ? request.filterLayout : request.layout;
  return stridesInLayout(tensorShape(request.problem, which), layout);
}

/** Elements of a load, four where they lie on whole fours. */
function loadVector({ variant }: PlanRequest): (elements: number) => 1 | 4 {
  const { vectorLoads } = fullVariant(variant);
  return (elements) => vectorLoads && elements % 4 === 0 ? 4 : 1;
}

export function operandsOf(request: PlanRequest): Operands {
  return request.problem.op === "bwd-filter"
    ? correlationOperands(request)
    : gatherOperands(request);
}

function groupChannels(problem: ConvProblem): { input: number; output: number } {
  return {
    input: problem.inChannels / problem.groups,
    output: problem.outChannels / problem.groups,
  };
}

/** Forward and backward-data: packed filter times gathered image. */
function gatherOperands(request: PlanRequest): Operands {
  const { problem, layout } = request;
  const { storage, tile } = elementsOf(request);
  const four = loadVector(request);
  const forward = problem.op === "fwd";
  const group = groupChannels(problem);
  const rows = forward ? group.output : group.input;
  const channels = forward ? group.input : group.output;
  const source: ConvTensor = forward ? "input" : "output";
  const target: ConvTensor = forward ? "output" : "input";
  const sourceStrides = stridesOf(request, source);
  const targetStrides = stridesOf(request, target);
  const filterStrides = stridesOf(request, "filter");
  const places = forward ? problem.outputSize : problem.inputSize;
  const sizes = forward ? problem.inputSize : problem.outputSize;
  const taps = elementCount(problem.filterSize);
  const spots = elementCount(places);
  const batchInner = layout === "chwn";
  const b: Access = layout === "nhwc"
    ? { along: "depth", vector: four(channels), value: tile }
    : { along: "place", vector: batchInner ? four(problem.batch) : 1, value: tile };
  const linear = ({ depth }: TilePolicy) => tapDepth(channels, depth) % depth !== 0;
  const spotStride = targetStrides.at(-1)!;
  const depthOf = (policy: TilePolicy) => taps * tapDepth(channels, policy.depth);
  const pack = (policy: TilePolicy): PackShape => ({
    groups: problem.groups,
    rows,
    paddedRows: Math.ceil(rows / policy.rows) * policy.rows,
    channels,
    paddedChannels: tapDepth(channels, policy.depth),
    taps,
    depth: Math.ceil(depthOf(policy) / policy.depth) * policy.depth,
    groupStride: group.output * filterStrides[0]!,
    rowStride: filterStrides[forward ? 0 : 1]!,
    channelStride: filterStrides[forward ? 1 : 0]!,
    tapStride: filterStrides.at(-1)!,
  });
  return {
    rows,
    columns: problem.batch * spots,
    a: { along: "place", vector: four(4), value: tile },
    b,
    depth: depthOf,
    pack,
    loaders(module, policy, split) {
      const shape = pack(policy);
      const packed = module.tensor("packed", "read", four(4), split("a"), storage, tile);
      const image = module.tensor(source, "read", b.vector, split("b"), storage, tile);
      return [
        packedLoader(module, "a", packed, {
          places: shape.paddedRows,
          depth: shape.depth,
          tileDepth: policy.depth,
        }),
        gatherLoader(module, image, {
          direction: forward ? "forward" : "backward",
          axes: places.map((_, d) => ({
            places: places[d]!,
            taps: problem.filterSize[d]!,
            size: sizes[d]!,
            stride: problem.stride[d]!,
            padding: problem.paddingBegin[d]!,
            dilation: problem.dilation[d]!,
            sourceStride: sourceStrides[2 + d]!,
          })),
          batch: problem.batch,
          channels,
          paddedChannels: shape.paddedChannels,
          batchStride: sourceStrides[0]!,
          channelStride: sourceStrides[1]!,
          batchInner,
          ...b,
          tileDepth: policy.depth,
        }),
      ];
    },
    result: {
      row: targetStrides[1]!,
      group: rows * targetStrides[1]!,
      ...(batchInner
        ? { period: problem.batch, outer: spotStride, inner: targetStrides[0]! }
        : { period: spots, outer: targetStrides[0]!, inner: spotStride }),
    },
    linear,
    trait: (policy) =>
      `${layout}_${places.length}d_${linear(policy) ? "linear" : "tap"}_b${b.vector}`,
  };
}

/** Backward-filter: output gradient times shifted input, deep along images and places. */
function correlationOperands(request: PlanRequest): Operands {
  const { problem, layout, filterLayout } = request;
  const { storage, tile } = elementsOf(request);
  const four = loadVector(request);
  const group = groupChannels(problem);
  const inputStrides = stridesOf(request, "input");
  const gradientStrides = stridesOf(request, "output");
  const filterStrides = stridesOf(request, "filter");
  const taps = elementCount(problem.filterSize);
  const spots = elementCount(problem.outputSize);
  const batchInner = layout === "chwn";
  const channelsInner = layout === "nhwc" || filterLayout === "krsc";
  const alongDepth = batchInner ? four(problem.batch) : 1;
  const a: Access = layout === "nhwc"
    ? { along: "place", vector: four(group.output), value: tile }
    : { along: "depth", vector: batchInner ? alongDepth : four(spots), value: tile };
  const b: Access = layout === "nhwc"
    ? { along: "place", vector: four(group.input), value: tile }
    : { along: "depth", vector: alongDepth, value: tile };
  const depth = problem.batch * spots;
  return {
    rows: group.output,
    columns: group.input * taps,
    a,
    b,
    depth: () => depth,
    pack: () => undefined,
    loaders(module, policy, split) {
      const gradient = module.tensor("output", "read", a.vector, split("a"), storage, tile);
      const input = module.tensor("input", "read", b.vector, split("b"), storage, tile);
      const correlation = {
        batch: problem.batch,
        places: problem.outputSize,
        batchInner,
        tileDepth: policy.depth,
      };
      return [
        gradientLoader(module, gradient, correlation, {
          channels: group.output,
          channelStride: gradientStrides[1]!,
          batchStride: gradientStrides[0]!,
          placeStride: gradientStrides.at(-1)!,
          ...a,
        }),
        shiftedInputLoader(module, input, correlation, {
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
          ...b,
        }),
      ];
    },
    result: {
      row: filterStrides[0]!,
      group: group.output * filterStrides[0]!,
      ...(channelsInner
        ? { period: group.input, outer: filterStrides.at(-1)!, inner: filterStrides[1]! }
        : { period: taps, outer: filterStrides[1]!, inner: filterStrides.at(-1)! }),
    },
    linear: () => false,
    trait: () =>
      `${layout}_${problem.filterSize.length}d_${
        channelsInner ? "rsc" : "crs"
      }_a${a.vector}b${b.vector}`,
  };
}
