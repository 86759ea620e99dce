import { elementsOf } from "../../elements/elements.ts";
import { placesLoader, shiftedInputLoader } from "../../kernels/loaders/correlation.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import type { PlanRequest } from "../request.ts";
import { type Access, groupChannels, loadVector, type Operands, stridesOf } from "./access.ts";
import { spatialAxes } from "../spatial_axes.ts";

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
      const places = (strides: readonly number[], channels: number) => ({
        channels,
        channelStride: strides[1]!,
        batchStride: strides[0]!,
        placeStride: strides.at(-1)!,
      });
      return [
        placesLoader(module, "a", gradient, correlation, {
          ...places(gradientStrides, group.output),
          along: a.along,
          vector: vectors.a,
        }),
        still
          ? placesLoader(module, "b", input, correlation, {
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
