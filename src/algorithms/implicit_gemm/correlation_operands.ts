import { elementsOf } from "../../elements/elements.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import { placesLoader, shiftedInputLoader } from "../../kernels/loaders/correlation.ts";
import { ringGradientLoader, ringInputLoader } from "../../kernels/loaders/correlation_ring.ts";
import { rowTrait } from "../../kernels/loaders/gather.ts";
import {
  joinsRows,
  ringColumns,
  ringSteps,
  rowBox,
  tapRingOf,
} from "../../kernels/loaders/rings.ts";
import { runsAlone } from "../../kernels/loop/dealt_loader.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { policyThreads, type TilePolicy } from "../../kernels/policy.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { addsUp } from "../conv_product.ts";
import { spatialAxes } from "../geometry.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import { type Access, groupChannels, loadVector, type Operands, stridesOf } from "./access.ts";

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
  const { problem, layout, variant } = request;
  const { input, output } = groupChannels(problem);
  const unit = productUnit(request, addsUp(placed.result, placed.rows, variant));
  const { prefetch, doubleBuffer } = fullVariant(variant);
  const inputStrides = stridesOf(request, "input");
  const gradientStrides = stridesOf(request, "output");
  const axes = spatialAxes(problem, "forward", inputStrides);
  const last = axes.at(-1)!;
  const { taps, stride, dilation } = last;
  if (unit?.unit.component !== "f16" || unit.split || !prefetch || doubleBuffer) return [];
  if (layout !== "nhwc" || loadVector(request)(input) !== 4 || input % 8 !== 0) return [];
  if (taps < 2 || taps > MOST_RING_TAPS || stride !== 1) return [];
  const { result } = placed;
  if (result.classes !== undefined) return [];
  const elements = elementsOf(request);
  const columns = { taps, block: unit.unit.n, channels: input };
  const joins = joinsRows(last) && request.sizes !== "uniform";
  const vectors = (policy: TilePolicy) => ({
    a: policyVector(policy, placed.a.vector, placed.a.steps ?? []),
    b: policyVector(policy, placed.b.vector, placed.b.steps ?? []),
  });
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
      b: { ...placed.b, tapRing: tapRingOf(last, joined) },
      depth: ({ depth }) => ringSteps(depthOf(depth)) * depth,
      loaders(module, policy, split) {
        const vector = vectors(policy);
        const kind = runsAlone(policyThreads(policy)) ? "ordered" : "read";
        const gradient = loadedTensor(module, "output", vector.a, split("a"), elements, kind);
        const image = loadedTensor(module, "input", vector.b, split("b"), elements, kind);
        const depth = depthOf(policy.depth);
        const tensor = (strides: readonly number[], channels: number) => ({
          channels,
          batchStride: strides[0]!,
          strides: strides.slice(2),
        });
        return [
          ringGradientLoader(module, gradient, depth, {
            ...tensor(gradientStrides, output),
            vector: vector.a,
          }),
          ringInputLoader(
            module,
            image,
            depth,
            { ...tensor(inputStrides, input), vector: vector.b },
            columns,
          ),
        ];
      },
      result: { ...result, ring: { ...columns, columns: placed.columns } },
      trait(policy) {
        const { a, b } = vectors(policy);
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
      const correlation = {
        batch: problem.batch,
        places: problem.outputSize,
        batchInner,
        tileDepth: policy.depth,
      };
      const flat = { ...correlation, flat: layout === "nhwc" };
      const places = (strides: readonly number[], channels: number) => ({
        channels,
        channelStride: strides[1]!,
        batchStride: strides[0]!,
        placeStride: strides.at(-1)!,
      });
      return [
        placesLoader(module, "a", gradient, flat, {
          ...places(gradientStrides, group.output),
          along: a.along,
          vector: vectors.a,
        }),
        still
          ? placesLoader(module, "b", input, flat, {
            ...places(inputStrides, group.input),
            along: b.along,
            vector: vectors.b,
          })
          : shiftedInputLoader(module, input, correlation, {
            axes: spatialAxes(problem, "forward", inputStrides),
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
