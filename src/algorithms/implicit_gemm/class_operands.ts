import { elementsOf } from "../../elements/elements.ts";
import type { Axis } from "../../kernels/axes.ts";
import type { ClassResults } from "../../kernels/class_output.ts";
import { classFilterLoader } from "../../kernels/loaders/class_filter.ts";
import { gatherLoader, type GatherShape } from "../../kernels/loaders/gather.ts";
import { packedLoader } from "../../kernels/loaders/packed.ts";
import type { PackShape } from "../../kernels/pack_strided.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import {
  classPlaces,
  classSteps,
  classText,
  mostTaps,
  tapShare,
} from "../../kernels/stride_classes.ts";
import { elementCount } from "../../tensor/tensor.ts";
import type { PlanRequest } from "../request.ts";
import { type Access, groupChannels, loadVector, type Operands, stridesOf } from "./access.ts";

/** What both ways of taking backward-data apart into classes of strides share. */
function classGeometry(request: PlanRequest) {
  const { problem, layout } = request;
  const { storage, tile } = elementsOf(request);
  const four = loadVector(request);
  const { input: rows, output: channels } = groupChannels(problem);
  const source = stridesOf(request, "output");
  const target = stridesOf(request, "input");
  const filter = stridesOf(request, "filter");
  const batchInner = layout === "chwn";
  const axes = problem.inputSize.map((places, d): Axis => ({
    places,
    taps: problem.filterSize[d]!,
    size: problem.outputSize[d]!,
    stride: problem.stride[d]!,
    padding: problem.paddingBegin[d]!,
    dilation: problem.dilation[d]!,
    sourceStride: source[2 + d]!,
  }));
  const b: Access = layout === "nhwc"
    ? { along: "depth", vector: four(channels), value: tile }
    : { along: "place", vector: batchInner ? four(problem.batch) : 1, value: tile };
  // Whole steps, so that each lies within a tap.
  const padded = ({ depth }: TilePolicy) => Math.ceil(channels / depth) * depth;
  const ceil = (value: number, unit: number) => Math.ceil(value / unit) * unit;
  return {
    axes,
    rows,
    channels,
    batchInner,
    classes: elementCount(problem.stride),
    taps: axes.reduce((product, axis) => product * mostTaps(axis), 1),
    a: { along: "place", vector: four(4), value: tile } satisfies Access,
    b,
    padded,
    pack: (policy: TilePolicy, rows: number, taps: number): PackShape => ({
      groups: problem.groups,
      rows,
      paddedRows: ceil(rows, policy.rows),
      channels,
      paddedChannels: padded(policy),
      taps,
      depth: taps * padded(policy),
      groupStride: channels * filter[0]!,
      rowStride: filter[1]!,
      channelStride: filter[0]!,
      tapStride: filter.at(-1)!,
    }),
    gather: (policy: TilePolicy, axes: readonly Axis[]): GatherShape => ({
      direction: "backward",
      axes,
      batch: problem.batch,
      channels,
      paddedChannels: padded(policy),
      batchStride: source[0]!,
      channelStride: source[1]!,
      batchInner,
      ...b,
      tileDepth: policy.depth,
    }),
    results: (
      rows: ClassResults["rows"],
      place: (axis: Axis) => { grid: number; first: number },
    ): ClassResults => ({
      rows,
      channels: problem.inChannels / problem.groups,
      channelStride: target[1]!,
      batch: problem.batch,
      batchStride: target[0]!,
      batchInner,
      axes: axes.map((axis, d) => ({
        ...place(axis),
        places: axis.places,
        stride: axis.stride,
        placeStride: target[2 + d]!,
      })),
    }),
    tensors: (
      module: Parameters<Operands["loaders"]>[0],
      split: Parameters<Operands["loaders"]>[2],
    ) => ({
      packed: module.tensor("packed", "read", four(4), split("a"), storage, tile),
      gradient: module.tensor("output", "read", b.vector, split("b"), storage, tile),
    }),
    // One group begins at the beginning, whatever its channels divide.
    group: problem.groups === 1 ? 0 : rows * target[1]!,
    trait: `${layout}_${axes.length}d`,
  };
}

/**
 * Backward-data with strides, a tile for each class: its rows are channels of one class, whose own taps it sums. Any
 * stride and dilation.
 */
export function classTileOperands(request: PlanRequest): Operands {
  const { problem } = request;
  const geometry = classGeometry(request);
  const { axes, rows, classes, taps, padded, b } = geometry;
  const pack = (policy: TilePolicy) =>
    geometry.pack(policy, rows, elementCount(problem.filterSize));
  const grid = axes.map(classPlaces);
  const share = tapShare(axes);
  return {
    rows,
    columns: problem.batch * elementCount(grid),
    batches: problem.groups * classes,
    loopRows: (policy) => classes * pack(policy).paddedRows,
    share,
    uneven: (module, policy) => ({
      share,
      text: classText(module, axes, pack(policy).paddedRows),
      steps: `class_taps * ${module.size("class_blocks", padded(policy) / policy.depth)}`,
    }),
    a: geometry.a,
    b,
    depth: (policy) => taps * padded(policy),
    pack,
    loaders(module, policy, split) {
      const { paddedRows: places, depth, paddedChannels } = pack(policy);
      const { packed, gradient } = geometry.tensors(module, split);
      const shape = { places, depth, tileDepth: policy.depth, paddedChannels };
      const walked = axes.map((axis, d) => ({
        ...axis,
        places: grid[d]!,
        dilation: classSteps(axis).dilation,
      }));
      return [
        classFilterLoader(module, packed, axes, shape),
        gatherLoader(module, gradient, { ...geometry.gather(policy, walked), classes: true }),
      ];
    },
    result: {
      classes: geometry.results("tiles", (axis) => ({ grid: classPlaces(axis), first: 0 })),
      group: geometry.group,
    },
    linear: () => false,
    trait: () => `${geometry.trait}_classes_b${b.vector}`,
    classes: `a product of ${rows} rows and at most ${taps} taps for each of ${classes} classes`,
  };
}

/**
 * The same with classes as rows: all read the same part of the gradient once, and those of fewer taps multiply zeros. For
 * few channels, and for filters no longer than their strides, of one tap a class. Undefined where taps of different
 * classes lie apart, which strides with dilation make.
 */
export function classRowOperands(request: PlanRequest): Operands | undefined {
  const { problem, layout } = request;
  const geometry = classGeometry(request);
  const { axes, channels, classes, taps, padded, b } = geometry;
  if (axes.some(({ stride, dilation }) => stride > 1 && dilation > 1)) return undefined;
  const rows = geometry.rows * classes;
  const inner = layout === "nhwc" ? "channels" as const : "classes" as const;
  const pack = (policy: TilePolicy): PackShape => ({
    ...geometry.pack(policy, rows, taps),
    classes: {
      inner,
      channels: geometry.rows,
      axes: axes.map((axis) => ({ stride: axis.stride, taps: axis.taps, most: mostTaps(axis) })),
    },
  });
  // Places by strides of the padded result: the first ones may lie before it.
  const from = ({ padding, stride }: Axis) => Math.floor(padding / stride);
  const grid = (axis: Axis) =>
    Math.floor((axis.places - 1 + axis.padding) / axis.stride) - from(axis) + 1;
  const walked = axes.map((axis): Axis => ({
    ...axis,
    places: grid(axis),
    taps: mostTaps(axis),
    stride: 1,
    padding: from(axis),
  }));
  return {
    rows,
    columns: problem.batch * walked.reduce((product, { places }) => product * places, 1),
    batches: problem.groups,
    a: geometry.a,
    b,
    depth: (policy) => (taps - 1) * padded(policy) + channels,
    pack,
    loaders(module, policy, split) {
      const { paddedRows: places, depth } = pack(policy);
      const { packed, gradient } = geometry.tensors(module, split);
      return [
        packedLoader(module, "a", packed, { places, depth, tileDepth: policy.depth }),
        gatherLoader(module, gradient, geometry.gather(policy, walked)),
      ];
    },
    result: {
      classes: geometry.results(inner, (axis) => ({
        grid: grid(axis),
        first: from(axis) * axis.stride - axis.padding,
      })),
      group: geometry.group,
    },
    linear: () => false,
    trait: () => `${geometry.trait}_classrows_b${b.vector}`,
    classes: `a product of ${rows} rows, those of ${classes} classes, and ${taps} taps`,
  };
}
