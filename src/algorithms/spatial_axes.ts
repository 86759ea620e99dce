import type { Axis, Direction } from "../kernels/axes.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";

/**
 * The spatial axes between places of a result, the filter's taps and a source: forward the output's places and the input,
 * backward the input's and the output's gradient.
 *
 * @param strides The source's, in elements, per canonical axis.
 */
export function spatialAxes(
  { inputSize, outputSize, filterSize, stride, paddingBegin, dilation }: ConvProblem,
  direction: Direction,
  strides: readonly number[],
): Axis[] {
  const [places, sizes] = direction === "forward"
    ? [outputSize, inputSize]
    : [inputSize, outputSize];
  return places.map((_, d): Axis => ({
    places: places[d]!,
    taps: filterSize[d]!,
    size: sizes[d]!,
    stride: stride[d]!,
    padding: paddingBegin[d]!,
    dilation: dilation[d]!,
    sourceStride: strides[2 + d]!,
  }));
}
