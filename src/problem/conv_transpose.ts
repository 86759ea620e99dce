import { InputRangeError } from "../errors.ts";
import { expectArray, expectFields, expectObject } from "../expect.ts";
import { type ConvProblem, convProblem, dilatedSize } from "./conv_problem.ts";
import { type AxisValues, bothSides, endBefore, perAxis } from "./padding.ts";

/** A transposed convolution by PyTorch's words: of X of [N, C, H, W] with W of [C, K/g, R, S]. */
export interface ConvTransposeInit {
  /** N */
  batch: number;
  /** C, the channels that come in. */
  inChannels: number;
  /** K, the channels that go out. */
  outChannels: number;
  /** 1 where absent. */
  groups?: number;
  /** (D,) H, W of what comes in. */
  inputSize: readonly number[];
  /** (T,) R, S */
  filterSize: readonly number[];
  /** Elements of the result from one of the input to the next: one value for all axes, or one an axis; 1 where absent. */
  stride?: AxisValues;
  /** Elements that the result loses on all sides, on both of each axis, or all before and then all after; 0 where absent. */
  padding?: AxisValues;
  /** Further elements at the end of each axis of the result, fewer than its stride or its dilation; 0 where absent. */
  outputPadding?: AxisValues;
  /** One value for all axes, or one an axis; 1, which is none, where absent. */
  dilation?: AxisValues;
  /** For people. */
  name?: string;
}

const FIELDS: readonly (keyof ConvTransposeInit)[] = [
  ...["batch", "inChannels", "outChannels", "groups", "inputSize", "filterSize"] as const,
  ...["stride", "padding", "outputPadding", "dilation", "name"] as const,
];

/**
 * A transposed convolution (`conv_transpose1d/2d/3d`) as the backward-data convolution that it is: each axis of the result
 * has (h − 1)·stride − padding before and after + (r − 1)·dilation + 1 + outputPadding elements. What comes in is the
 * problem's `output`, the result its `input`, and the filter lies as PyTorch's does. Its own gradients are the same problem
 * with `op` `fwd` (of what came in) and `bwd-filter`.
 *
 * @throws {TypeError} if the numbers of spatial axes disagree.
 * @throws {RangeError} if a value is out of its range, or the sizes do not fit together.
 * @example
 * ```ts
 * import { convTransposeProblem } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const problem = convTransposeProblem({
 *   batch: 1,
 *   inChannels: 16,
 *   outChannels: 8,
 *   inputSize: [7, 7],
 *   filterSize: [3, 3],
 *   stride: 2,
 *   padding: 1,
 *   outputPadding: 1,
 * });
 * assert.equal(problem.op, "bwd-data");
 * assert.deepEqual(problem.inputSize, [14, 14]);
 * ```
 */
export function convTransposeProblem(init: ConvTransposeInit): ConvProblem {
  expectObject("Cannot convolve", "the problem", init, "sizes");
  expectFields("Cannot convolve", "field of the problem", init, FIELDS);
  expectArray("Cannot convolve", "input size", init.inputSize);
  expectArray("Cannot convolve", "filter size", init.filterSize);
  const rank = init.inputSize.length;
  const stride = perAxis("stride", init.stride ?? [1], rank);
  const dilation = perAxis("dilation", init.dilation ?? [1], rank);
  const more = perAxis("output padding", init.outputPadding ?? [0], rank);
  const { paddingBegin, paddingEnd } = bothSides(init.padding ?? [0], rank);
  more.forEach((count, axis) => {
    const most = Math.max(stride[axis]!, dilation[axis]!) - 1;
    if (!Number.isSafeInteger(count) || count < 0 || count > most) {
      throw new InputRangeError(
        `Cannot convolve: output padding is ${count} on spatial axis ${axis}, ` +
          `expected 0 to ${most}, less than the stride or the dilation`,
      );
    }
  });
  const size = init.inputSize.map((count, axis) =>
    (count - 1) * stride[axis]! - paddingBegin[axis]! - paddingEnd[axis]! +
    dilatedSize(init.filterSize[axis]!, dilation[axis]!) + more[axis]!
  );
  return convProblem({
    op: "bwd-data",
    batch: init.batch,
    inChannels: init.outChannels,
    outChannels: init.inChannels,
    groups: init.groups ?? 1,
    inputSize: size,
    filterSize: init.filterSize,
    outputSize: init.inputSize,
    stride,
    paddingBegin,
    paddingEnd: paddingEnd.map((end, axis) => endBefore(more[axis]!, end, stride[axis]!)),
    dilation,
    ...(init.name === undefined ? {} : { name: init.name }),
  });
}
