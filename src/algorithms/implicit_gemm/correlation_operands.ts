import { elementsOf } from "../../elements/elements.ts";
import { loadedTensor } from "../../kernels/loader.ts";
import { placesLoader, shiftedInputLoader } from "../../kernels/loaders/correlation.ts";
import {
  joinsRows,
  ringColumns,
  ringGradientLoader,
  ringInputLoader,
  ringOf,
  ringSteps,
  rowBox,
} from "../../kernels/loaders/correlation_ring.ts";
import { rowTrait } from "../../kernels/loaders/gather.ts";
import { runsAlone } from "../../kernels/loop/dealt_loader.ts";
import { bufferCount, fullVariant } from "../../kernels/variant.ts";
import { policyThreads } from "../../kernels/policy.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { addsUp } from "../conv_product.ts";
import { groupOf, spatialAxes, stridesOf } from "../geometry.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import { type Access, accessVector, loadVector, type Operands } from "./access.ts";

/**
 * Backward-filter: output gradient times shifted input, deep along images and places as they follow each other, and by rows whose taps
 * share what is loaded, where they may.
 */
export function correlationOperands(request: PlanRequest): readonly [Operands, ...Operands[]] {
  const placed = placedOperands(request);
  return [placed, ...ringOperands(request, placed)];
}

/** Taps of a row whose matrices lie beside each other in a subgroup's tile. */
const MOST_RING_TAPS = 5;

/**
 * The operands by rows whose taps share what a step loads, f16 on matrix units, channels innermost, stride 1 along the last axis: with
 * steps between rows, and without where rows may be joined. None where they may not.
 */
function ringOperands(request: PlanRequest, placed: Operands): Operands[] {
  const { problem, layout, schedule } = request;
  const { inputs, outputs } = groupOf(request);
  const unit = productUnit(request, addsUp(placed.result, placed.rows));
  const whole = fullVariant(schedule);
  const inputStrides = stridesOf(request, "input");
  const gradientStrides = stridesOf(request, "output");
  const axes = spatialAxes(problem, "forward", inputStrides);
  const last = axes.at(-1)!;
  const { taps, stride, dilation } = last;
  if (unit?.unit.component !== "f16" || unit.split || !whole.prefetch || bufferCount(whole) > 1) {
    return [];
  }
  if (layout !== "nhwc" || inputs % 8 !== 0) return [];
  if (taps < 2 || taps > MOST_RING_TAPS || stride !== 1) return [];
  const { result } = placed;
  if (result.classes !== undefined) return [];
  const elements = elementsOf(request);
  const columns = { taps, block: unit.unit.n, channels: inputs };
  const joins = joinsRows(last) && request.sizes !== "uniform";
  return (joins ? [false, true] : [false]).map((joined): Operands => {
    const depthOf = (count: number) => ({
      batch: problem.batch,
      joined,
      axes,
      box: rowBox(problem.batch, axes, count),
    });
    return {
      ...placed,
      columns: ringColumns(columns, elementCount(problem.filterSize.slice(0, -1))),
      b: { ...placed.b, sharedTaps: ringOf(last, joined) },
      depth: ({ depth }) => ringSteps(depthOf(depth)) * depth,
      loaders(module, policy, split) {
        const [a, b] = [accessVector(policy, placed.a), accessVector(policy, placed.b)];
        const kind = runsAlone(policyThreads(policy)) ? "ordered" : "read";
        const gradient = loadedTensor(module, "output", a, split("a"), elements, kind);
        const image = loadedTensor(module, "input", b, split("b"), elements, kind);
        const depth = depthOf(policy.depth);
        const tensor = (strides: readonly number[], channels: number, vector: typeof a) => ({
          channels,
          batchStride: strides[0]!,
          strides: strides.slice(2),
          vector,
        });
        return [
          ringGradientLoader(module, gradient, depth, tensor(gradientStrides, outputs, a)),
          ringInputLoader(module, image, depth, tensor(inputStrides, inputs, b), columns),
        ];
      },
      result: { ...result, ring: { ...columns, columns: placed.columns } },
      trait(policy) {
        const [a, b] = [accessVector(policy, placed.a), accessVector(policy, placed.b)];
        const { rows } = depthOf(policy.depth).box;
        return `${layout}_${problem.filterSize.length}d_${rowTrait({ taps, dilation })}${
          joined ? "j" : ""
        }y${rows}_a${a}b${b}`;
      },
    };
  });
}

/** Backward-filter, deep along images and places as they follow each other. */
function placedOperands(request: PlanRequest): Operands {
  const { problem, layout, filterLayout } = request;
  const { batch } = problem;
  const elements = elementsOf(request);
  const { tile: value } = elements;
  const { inputs, outputs } = groupOf(request);
  const inputStrides = stridesOf(request, "input");
  const gradientStrides = stridesOf(request, "output");
  const filter = stridesOf(request, "filter") as [number, number];
  const taps = elementCount(problem.filterSize);
  const spots = elementCount(problem.outputSize);
  const batchInner = layout === "chwn";
  const channelsInner = layout === "nhwc" || filterLayout === "krsc" || taps === 1;
  const still = meetsPlaces(problem);
  const innermost = batchInner ? batch : spots;
  const access = (channels: number, pitch: number, runs: boolean): Access =>
    layout === "nhwc"
      ? {
        along: "place",
        vector: loadVector(channels % 4 === 0 ? pitch : channels),
        value,
        steps: [channels, pitch],
      }
      : { along: "depth", vector: runs ? loadVector(innermost) : 1, value, steps: [innermost] };
  const [a, b] = [
    access(outputs, gradientStrides.at(-1)!, true),
    access(inputs, inputStrides.at(-1)!, still || batchInner),
  ];
  return {
    rows: outputs,
    columns: inputs * taps,
    batches: problem.groups,
    a,
    b,
    left: "output",
    depth: () => batch * spots,
    pack: () => undefined,
    loaders(module, policy, split) {
      const vectors = { a: accessVector(policy, a), b: accessVector(policy, b) };
      const gradient = loadedTensor(module, "output", vectors.a, split("a"), elements);
      const input = loadedTensor(module, "input", vectors.b, split("b"), elements);
      const correlation = {
        batch,
        places: problem.outputSize,
        batchInner,
        tileDepth: policy.depth,
      };
      const flat = { ...correlation, flat: layout === "nhwc" };
      const lies = (strides: readonly number[], channels: number, side: "a" | "b") => ({
        channels,
        channelStride: strides[1]!,
        batchStride: strides[0]!,
        along: (side === "a" ? a : b).along,
        vector: vectors[side],
      });
      const places = (...asked: Parameters<typeof lies>) => ({
        ...lies(...asked),
        placeStride: asked[0].at(-1)!,
      });
      return [
        placesLoader(module, "a", gradient, flat, places(gradientStrides, outputs, "a")),
        still
          ? placesLoader(module, "b", input, flat, places(inputStrides, inputs, "b"))
          : shiftedInputLoader(module, input, correlation, {
            ...lies(inputStrides, inputs, "b"),
            axes: spatialAxes(problem, "forward", inputStrides),
            channelsInner,
          }),
      ];
    },
    result: {
      row: filter[0],
      group: outputs * filter[0],
      ...(channelsInner
        ? { period: inputs, outer: taps > 1 ? filter.at(-1)! : 0, inner: filter[1] }
        : { period: taps, outer: filter[1], inner: filter.at(-1)! }),
    },
    crossesTaps: () => false,
    trait: (policy) =>
      `${layout}_${problem.filterSize.length}d_${
        still ? "point" : channelsInner ? "rsc" : "crs"
      }_a${accessVector(policy, a)}b${accessVector(policy, b)}`,
  };
}

/** Whether every output place meets the input's same place and no other: one tap, stride 1, no padding. */
function meetsPlaces({ filterSize, stride, inputSize, outputSize }: ConvProblem): boolean {
  return filterSize.every((taps, d) =>
    taps === 1 && stride[d] === 1 && inputSize[d] === outputSize[d]
  );
}
