import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectArray, expectFields, expectObject, expectWord, said } from "../expect.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type AxisValues, bothSides, type PaddingMode, paddingOf, perAxis } from "./padding.ts";

/** What is computed: the output, the gradient of the input, or the gradient of the filter. */
export type Operation = "fwd" | "bwd-data" | "bwd-filter";
/** All three, in the order of lists. */
export const OPERATIONS: readonly Operation[] = ["fwd", "bwd-data", "bwd-filter"];

/** The three tensors of a convolution: X, W and Y, or their gradients. */
export type ConvTensor = "input" | "filter" | "output";

/**
 * A convolution (cross-correlation, as in every deep-learning library) with one to three spatial axes.
 * Spatial arrays hold one entry per axis, outermost first: (D,) H, W. A value: made by
 * {@linkcode convProblem}, never changed.
 */
export interface ConvProblem {
  /** What is computed. */
  readonly op: Operation;
  /** N */
  readonly batch: number;
  /** C, of all groups together. */
  readonly inChannels: number;
  /** K, of all groups together. */
  readonly outChannels: number;
  /** G; channels of one meet only filters of the same. As many as channels: depthwise. */
  readonly groups: number;
  /** (D,) H, W */
  readonly inputSize: readonly number[];
  /** (T,) R, S */
  readonly filterSize: readonly number[];
  /** (O,) P, Q */
  readonly outputSize: readonly number[];
  /** Steps of the filter, in elements of the input. */
  readonly stride: readonly number[];
  /** Zeros before the first element of each axis. */
  readonly paddingBegin: readonly number[];
  /** Zeros after the last element of each axis; negative, less than the dilation, for elements there that no filter reaches. */
  readonly paddingEnd: readonly number[];
  /** 1 for none, as in PyTorch. */
  readonly dilation: readonly number[];
  /** For people; no part of what is computed. */
  readonly name?: string;
}

/** What {@linkcode convProblem} takes: defaults for all that can be derived. */
export interface ConvProblemInit {
  /** `fwd` where absent. */
  op?: Operation;
  /** N */
  batch: number;
  /** C, of all groups together. */
  inChannels: number;
  /** K, of all groups together. */
  outChannels: number;
  /** 1 where absent. */
  groups?: number;
  /** (D,) H, W */
  inputSize: readonly number[];
  /** (T,) R, S */
  filterSize: readonly number[];
  /** Defaults to what the other sizes give. */
  outputSize?: readonly number[];
  /** One value for all axes, or one an axis; 1 where absent. */
  stride?: AxisValues;
  /** 0 on every axis where absent. */
  paddingBegin?: readonly number[];
  /** Defaults to `paddingBegin`. */
  paddingEnd?: readonly number[];
  /**
   * In place of both: one value for all sides, one an axis, all before and then all after; or a word: `same` and `same-lower` give
   * ceil(size / stride) outputs, `valid` is no padding.
   */
  padding?: AxisValues | PaddingMode;
  /** One value for all axes, or one an axis; 1 where absent. */
  dilation?: AxisValues;
  /** For people. */
  name?: string;
}

/** Filter extent with its dilation: (r − 1)·d + 1. */
export function dilatedSize(filter: number, dilation: number): number {
  return (filter - 1) * dilation + 1;
}

/** Output size of one axis: floor((h + p₀ + p₁ − ((r − 1)·d + 1)) / s) + 1; 0 or less where the filter does not fit. */
export function outputSizeOf(
  input: number,
  filter: number,
  stride: number,
  paddingBegin: number,
  paddingEnd: number,
  dilation: number,
): number {
  return Math.floor(
    (input + paddingBegin + paddingEnd - dilatedSize(filter, dilation)) / stride,
  ) + 1;
}

/**
 * Refuses groups that do not divide the channels of both sides.
 *
 * @throws {RangeError} that names them.
 */
export function refuseGroups(groups: number, inChannels: number, outChannels: number): void {
  if (groups < 1 || (inChannels % groups === 0 && outChannels % groups === 0)) return;
  throw new InputRangeError(
    `Cannot convolve: ${groups} groups do not divide ` +
      `${inChannels} input and ${outChannels} output channels`,
  );
}

/**
 * Makes a checked problem.
 *
 * @throws {TypeError} if the numbers of spatial axes disagree, or a value is of another type.
 * @throws {RangeError} if a value is out of its range, or the sizes do not fit together.
 * @example
 * ```ts
 * import { convProblem } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const { outputSize, stride } = convProblem({
 *   batch: 32,
 *   inChannels: 64,
 *   outChannels: 64,
 *   inputSize: [56, 56],
 *   filterSize: [3, 3],
 *   paddingBegin: [1, 1],
 * });
 * assert.deepEqual([outputSize, stride], [[56, 56], [1, 1]]);
 * ```
 */
export function convProblem(init: ConvProblemInit): ConvProblem {
  const doing = "Cannot convolve";
  expectObject(doing, "the problem", init, "sizes");
  expectFields(doing, "field of the problem", init, PROBLEM_FIELDS);
  const { op = "fwd" } = init;
  expectWord(doing, "op", op, OPERATIONS);
  expectArray(doing, "input size", init.inputSize);
  const rank = init.inputSize.length;
  const every = (value: number) => new Array<number>(rank).fill(value);
  const groups = init.groups ?? 1;
  if (rank < 1 || rank > 3) {
    throw new InputTypeError(`Cannot convolve: ${rank} spatial axes, 1 to 3 are supported`);
  }
  const expectAxes = (axes: Readonly<Record<string, readonly number[]>>) => {
    for (const [what, values] of Object.entries(axes)) {
      expectArray(doing, spell(what), values);
      if (values.length !== rank) {
        throw new InputTypeError(
          `Cannot convolve: ${spell(what)} [${values}] has ${values.length} values, ` +
            `the input has ${rank} spatial axes`,
        );
      }
    }
  };
  const stride = perAxis("stride", init.stride ?? 1, rank);
  const dilation = perAxis("dilation", init.dilation ?? 1, rank);
  expectAxes({ filterSize: init.filterSize });
  const { padding } = init;
  const both = padding === undefined
    ? undefined
    : typeof padding === "number" || Array.isArray(padding)
    ? bothSides(padding, rank)
    // Anything else is a word, or refused as none.
    : paddingOf(padding as PaddingMode, { ...init, stride, dilation });
  const paddingBegin = both?.paddingBegin ?? init.paddingBegin ?? every(0);
  const paddingEnd = both?.paddingEnd ?? init.paddingEnd ?? paddingBegin;
  if (both !== undefined && (init.paddingBegin ?? init.paddingEnd) !== undefined) {
    throw new InputTypeError(
      `Cannot convolve: padding ${
        said(padding)
      } stands for paddingBegin and paddingEnd, which are given, too`,
    );
  }
  expectAxes({ paddingBegin, paddingEnd });
  const atLeast = (minimum: number, what: string, values: readonly number[]) => {
    if (values.some((value) => value > Number.MAX_SAFE_INTEGER)) {
      throw new InputRangeError(
        `Cannot convolve: ${what} is ${values.map(said)}, expected <= ${Number.MAX_SAFE_INTEGER}`,
      );
    }
    if (values.some((value) => !Number.isSafeInteger(value) || value < minimum)) {
      throw new InputRangeError(
        `Cannot convolve: ${what} is ${values.map(said)}, expected >= ${minimum}`,
      );
    }
  };
  atLeast(0, "batch", [init.batch]);
  atLeast(1, "groups", [groups]);
  atLeast(0, "the number of input channels", [init.inChannels]);
  atLeast(0, "the number of output channels", [init.outChannels]);
  atLeast(0, "the input size", init.inputSize);
  atLeast(1, "the filter size", init.filterSize);
  atLeast(1, "stride", stride);
  atLeast(1, "dilation", dilation);
  atLeast(0, "padding", [
    ...paddingBegin,
    ...paddingEnd.filter((end, axis) => !(end > -dilation[axis]! && end < 0)),
  ]);
  init.inputSize.forEach((input, axis) => {
    const padding = [paddingBegin[axis]!, paddingEnd[axis]!] as const;
    const [filter, step] = [init.filterSize[axis]!, dilation[axis]!];
    const beyond = input + padding[0] + padding[1] > Number.MAX_SAFE_INTEGER
      ? `the input size ${input} with padding ${padding.join(" and ")}`
      : dilatedSize(filter, step) > Number.MAX_SAFE_INTEGER
      ? `the filter size ${filter} with dilation ${step}`
      : undefined;
    if (beyond === undefined) return;
    throw new InputRangeError(
      `Cannot convolve: ${beyond} is beyond ${Number.MAX_SAFE_INTEGER} on spatial axis ${axis}`,
    );
  });
  refuseGroups(groups, init.inChannels, init.outChannels);
  const derived = init.inputSize.map((input, axis) =>
    outputSizeOf(
      input,
      init.filterSize[axis]!,
      stride[axis]!,
      paddingBegin[axis]!,
      paddingEnd[axis]!,
      dilation[axis]!,
    )
  );
  derived.forEach((size, axis) => {
    if (size < 1) {
      throw new InputRangeError(
        `Cannot convolve: filter size ${
          dilatedSize(init.filterSize[axis]!, dilation[axis]!)
        } (dilated) ` +
          `is larger than the padded input size ${
            init.inputSize[axis]! + paddingBegin[axis]! + paddingEnd[axis]!
          } ` +
          `on spatial axis ${axis}`,
      );
    }
  });
  const outputSize = init.outputSize ?? derived;
  expectArray(doing, "output size", outputSize);
  if (outputSize.length !== rank || outputSize.some((size, axis) => size !== derived[axis])) {
    throw new InputRangeError(
      `Cannot convolve: output size is ${outputSize.join("x")}, ` +
        `input, filter, stride, padding and dilation give ${derived.join("x")}`,
    );
  }
  return {
    op,
    batch: init.batch,
    inChannels: init.inChannels,
    outChannels: init.outChannels,
    groups,
    inputSize: [...init.inputSize],
    filterSize: [...init.filterSize],
    outputSize: [...outputSize],
    stride: [...stride],
    paddingBegin: [...paddingBegin],
    paddingEnd: [...paddingEnd],
    dilation: [...dilation],
    ...(init.name === undefined ? {} : { name: init.name }),
  };
}

const PROBLEM_FIELDS: readonly (keyof ConvProblemInit)[] = [
  ...["op", "batch", "inChannels", "outChannels", "groups", "inputSize", "filterSize"] as const,
  ...["outputSize", "stride", "paddingBegin", "paddingEnd", "padding", "dilation", "name"] as const,
];

function spell(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/**
 * Canonical shape ([N, C, H, W], [K, C/g, R, S] or [N, K, P, Q]) of one of the problem's tensors.
 * @example
 * ```ts
 * import { parseDescriptor, tensorShape } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const problem = parseDescriptor("g2mb3ic4ih8oc6kh3");
 * assert.deepEqual(tensorShape(problem, "filter"), [6, 2, 3, 3]);
 * assert.deepEqual(tensorShape(problem, "output"), [3, 6, 6, 6]);
 * ```
 */
export function tensorShape(problem: ConvProblem, which: ConvTensor): number[] {
  switch (which) {
    case "input":
      return [problem.batch, problem.inChannels, ...problem.inputSize];
    case "filter":
      return [
        problem.outChannels,
        problem.inChannels / problem.groups,
        ...problem.filterSize,
      ];
    case "output":
      return [problem.batch, problem.outChannels, ...problem.outputSize];
  }
}

/** The tensor an operation computes. */
export function resultTensor(op: Operation): ConvTensor {
  return op === "fwd" ? "output" : op === "bwd-data" ? "input" : "filter";
}

/** The two tensors an operation reads, in the order a kernel binds them. */
export function operandTensors(op: Operation): readonly [ConvTensor, ConvTensor] {
  return op === "fwd"
    ? ["input", "filter"]
    : op === "bwd-data"
    ? ["output", "filter"]
    : ["input", "output"];
}

/**
 * Products summed into one element of the result, padding counted: the accumulation length L of the
 * accuracy bound. C/g·R·S forward, K/g·R·S backward-data, N·P·Q backward-filter.
 */
export function accumulationLength(problem: ConvProblem): number {
  const taps = elementCount(problem.filterSize);
  switch (problem.op) {
    case "fwd":
      return (problem.inChannels / problem.groups) * taps;
    case "bwd-data":
      return (problem.outChannels / problem.groups) * taps;
    case "bwd-filter":
      return problem.batch * elementCount(problem.outputSize);
  }
}

/**
 * Flops of the direct algorithm, 2·N·K·P·Q·(C/g)·R·S, for every operation alike.
 *
 * @example
 * ```ts
 * import { directFlops, parseDescriptor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * assert.equal(directFlops(parseDescriptor("mb1ic3ih8oc4kh3")), 2 * 4 * 6 * 6 * 3 * 3 * 3);
 * ```
 */
export function directFlops(problem: ConvProblem): number {
  return 2 * elementCount(tensorShape(problem, "output")) *
    (problem.inChannels / problem.groups) * elementCount(problem.filterSize);
}

/** Element type of a convolution's operands. */
export type ConvDType = "f32" | "f16" | "bf16" | "i8";
/** All of them, in the order of lists. */
export const CONV_DTYPES: readonly ConvDType[] = ["f32", "f16", "bf16", "i8"];
/** Those whose products and results round. */
export const FLOAT_DTYPES: readonly ("f32" | "f16" | "bf16")[] = ["f32", "f16", "bf16"];
/** Element type of a convolution's result. */
export type ConvOutDType = "f32" | "f16" | "bf16" | "i32" | "i8" | "u8";
/** All of them, in the order of lists. */
export const CONV_OUT_DTYPES: readonly ConvOutDType[] = ["f32", "f16", "bf16", "i32", "i8", "u8"];

/** Element types of results that operands may have, the one that is taken where none is named first. */
export function resultDtypes(dtype: ConvDType): readonly [ConvOutDType, ...ConvOutDType[]] {
  if (dtype === "i8") return ["i32", "i8", "u8"];
  return dtype === "f32" ? ["f32", "f16"] : [dtype, "f32"];
}

/** Element type of the bias: the result's, but i32 of int8, whose sums it is added to. */
export function biasDtype(dtype: ConvDType, outDtype: ConvOutDType): ConvOutDType {
  return dtype === "i8" ? "i32" : outDtype;
}

/**
 * Bytes of the three tensors, the least an operation moves.
 *
 * @param operand Bytes of an element of the operands.
 * @param result Of the result.
 */
export function tensorBytes(problem: ConvProblem, operand: number, result = operand): number {
  return (["input", "filter", "output"] as const).reduce((sum, which) => {
    const bytes = which === resultTensor(problem.op) ? result : operand;
    return sum + bytes * elementCount(tensorShape(problem, which));
  }, 0);
}
