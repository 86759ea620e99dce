import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectArray, expectFields, expectObject, expectWord } from "../expect.ts";
import {
  type AxisValues,
  bothSides,
  endBefore,
  PADDING_MODES,
  type PaddingMode,
  type Paddings,
  perAxis,
} from "./padding.ts";
import {
  type ConvProblem,
  convProblem,
  dilatedSize,
  type Operation,
  OPERATIONS,
  refuseGroups,
} from "./conv_problem.ts";

/** What is known of a problem whose tensors come as files. Shapes are canonical: N C H W, K C/g R S, N K P Q. */
export interface ShapesInit {
  /** What is computed; it says which two operands are needed. */
  op: Operation;
  /** [N, C, (D,) H, W], of fwd and bwd-filter. */
  input?: readonly number[];
  /** [K, C/g, (T,) R, S], of fwd and bwd-data. */
  filter?: readonly number[];
  /** The output's gradient, for both backward operations. */
  output?: readonly number[];
  /** Spatial size of the result of bwd-data; needed where a stride leaves several. */
  inputSize?: readonly number[];
  /** Spatial size of the result of bwd-filter; needed where stride or dilation leave several. */
  filterSize?: readonly number[];
  /** G */
  groups: number;
  /** One value for all, or one an axis; 1 where absent. */
  stride?: AxisValues;
  /**
   * One value for all, one an axis, or all that come before and then all that come after; or a word. `same` and `same-lower`
   * of bwd-filter need `filterSize`, of bwd-data with strides `inputSize`.
   */
  padding?: AxisValues | PaddingMode;
  /** One value for all, or one an axis; 1 where absent. */
  dilation?: AxisValues;
}

const FIELDS: readonly (keyof ShapesInit)[] = [
  ...["op", "input", "filter", "output", "inputSize", "filterSize"] as const,
  ...["groups", "stride", "padding", "dilation"] as const,
];

/**
 * The problem that the shapes of an operation's two operands describe.
 *
 * @throws {TypeError} if ranks disagree or an operand is missing.
 * @throws {RangeError} if sizes disagree, or the result's size is ambiguous.
 * @example
 * ```ts
 * import { problemFromShapes } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const { outputSize } = problemFromShapes({
 *   op: "fwd",
 *   input: [1, 3, 32, 32],
 *   filter: [8, 3, 3, 3],
 *   groups: 1,
 *   stride: 2,
 *   padding: 1,
 * });
 * assert.deepEqual(outputSize, [16, 16]);
 * ```
 */
export function problemFromShapes(init: ShapesInit): ConvProblem {
  expectObject("Cannot convolve", "what is known", init, "shapes");
  const { op, groups } = init;
  expectWord("Cannot convolve", "op", op, OPERATIONS);
  expectFields("Cannot convolve", "field of what is known", init, FIELDS);
  const [first, second] = operands(init);
  const rank = first.shape.length - 2;
  if (second.shape.length !== first.shape.length) {
    throw new InputTypeError(
      `Cannot convolve: ${first.what} has ${first.shape.length} axes [${
        first.shape.join(", ")
      }], ` +
        `${second.what} has ${second.shape.length} [${second.shape.join(", ")}]`,
    );
  }
  if (rank < 1 || rank > 3) {
    throw new InputTypeError(
      `Cannot convolve: ${first.what} has ${first.shape.length} axes, expected 3 to 5`,
    );
  }
  const stride = perAxis("stride", init.stride ?? [1], rank);
  const dilation = perAxis("dilation", init.dilation ?? [1], rank);
  const shared = { op, groups, stride, dilation };
  if (op === "fwd") {
    const [input, filter] = [first.shape, second.shape];
    refuseGroups(groups, input[1]!, filter[0]!);
    if (filter[1]! * groups !== input[1]) {
      throw new InputRangeError(
        `Cannot convolve: filter has ${filter[1]} input channels, ` +
          `input has ${input[1]} (groups = ${groups})`,
      );
    }
    const { padding } = init;
    return convProblem({
      ...shared,
      ...(typeof padding === "string" ? { padding } : bothSides(padding ?? [0], rank)),
      batch: input[0]!,
      inChannels: input[1]!,
      outChannels: filter[0]!,
      inputSize: input.slice(2),
      filterSize: filter.slice(2),
    });
  }
  if (op === "bwd-data") {
    const [output, filter] = [first.shape, second.shape];
    if (filter[0] !== output[1]) {
      throw new InputRangeError(
        `Cannot convolve: filter has ${filter[0]} output channels, ` +
          `the output's gradient has ${output[1]}`,
      );
    }
    const [outputSize, filterSize] = [output.slice(2), filter.slice(2)];
    const fixed = fixedPadding(init.padding, rank);
    const least = outputSize.map((size, axis) => {
      const window = fixed && dilatedSize(filterSize[axis]!, dilation[axis]!) - zeros(fixed, axis);
      return (size - 1) * stride[axis]! + (window ?? 1);
    });
    const derived = least.map((from, axis): Sizes => [Math.max(0, from), from + stride[axis]! - 1]);
    const inputSize = chosen("input", "--input-size", init.inputSize, derived);
    const extra = inputSize.map((size, axis) => size - least[axis]!);
    return convProblem({
      ...shared,
      ...(fixed ? endedBefore(extra, fixed, shared) : { padding: init.padding as PaddingMode }),
      batch: output[0]!,
      inChannels: filter[1]! * groups,
      outChannels: output[1]!,
      inputSize,
      filterSize,
      outputSize,
    });
  }
  const [input, output] = [first.shape, second.shape];
  if (input[0] !== output[0]) {
    throw new InputRangeError(
      `Cannot convolve: input has a batch of ${input[0]}, the output's gradient of ${output[0]}`,
    );
  }
  const [inputSize, outputSize] = [input.slice(2), output.slice(2)];
  const fixed = fixedPadding(init.padding, rank);
  if (!fixed && !init.filterSize) {
    throw new InputTypeError(
      `Cannot convolve: padding "${init.padding}" of bwd-filter needs the filter size, choose with --filter-size`,
    );
  }
  // Of padding by a word the filter size is given.
  const most = inputSize.map((size, axis) =>
    size + (fixed ? zeros(fixed, axis) : 0) - (outputSize[axis]! - 1) * stride[axis]!
  );
  const derived = most.map((last, axis): Sizes => {
    const [step, spread] = [stride[axis]!, dilation[axis]!];
    const first = Math.ceil((last - step) / spread) + 1;
    return [Math.max(1, first), Math.floor((last - 1) / spread) + 1];
  });
  const filterSize = chosen("filter", "--filter-size", init.filterSize, derived);
  const extra = most.map((last, axis) => last - dilatedSize(filterSize[axis]!, dilation[axis]!));
  return convProblem({
    ...shared,
    ...(fixed ? endedBefore(extra, fixed, shared) : { padding: init.padding as PaddingMode }),
    batch: input[0]!,
    inChannels: input[1]!,
    outChannels: output[1]!,
    inputSize,
    filterSize,
    outputSize,
  });
}

/** Zeros before and after each axis; undefined of a word that sizes give them of. */
function fixedPadding(padding: ShapesInit["padding"] = [0], rank: number): Paddings | undefined {
  if (typeof padding !== "string") return bothSides(padding, rank);
  expectWord("Cannot convolve", "padding", padding, PADDING_MODES);
  return padding === "valid" ? bothSides([0], rank) : undefined;
}

/** Zeros on both sides of an axis. */
function zeros({ paddingBegin, paddingEnd }: Paddings, axis: number): number {
  return paddingBegin[axis]! + paddingEnd[axis]!;
}

/** The padding, and what a dilated filter may leave at the end of each axis: see `endBefore()`. */
function endedBefore(
  extra: readonly number[],
  { paddingBegin, paddingEnd }: Paddings,
  { stride, dilation }: {
    readonly stride: readonly number[];
    readonly dilation: readonly number[];
  },
): Paddings {
  const ends = paddingEnd.map((end, axis) => {
    const [more, step] = [extra[axis]!, stride[axis]!];
    return more >= step && more < dilation[axis]! ? endBefore(more, end, step) : end;
  });
  return { paddingBegin, paddingEnd: ends };
}

interface Operand {
  what: string;
  shape: readonly number[];
}

/** The two operands of the operation. */
function operands(init: ShapesInit): [Operand, Operand] {
  const need = (what: string, shape: readonly number[] | undefined): Operand => {
    if (!shape) throw new InputTypeError(`Cannot convolve: ${init.op} needs ${what}`);
    expectArray("Cannot convolve", what, shape, "sizes");
    return { what, shape };
  };
  const input = () => need("input", init.input);
  const filter = () => need("filter", init.filter);
  const output = () => need("the output's gradient", init.output);
  return init.op === "fwd"
    ? [input(), filter()]
    : init.op === "bwd-data"
    ? [output(), filter()]
    : [input(), output()];
}

/** The sizes that an axis may have, from the least to the largest; none where that is less. */
type Sizes = readonly [least: number, largest: number];

/** The result's size: as given, or the only one there is on every axis. */
function chosen(
  what: string,
  option: string,
  given: readonly number[] | undefined,
  derived: readonly Sizes[],
): readonly number[] {
  if (given) return perAxis(`${what} size`, given, derived.length);
  return derived.map(([least, largest], axis) => {
    if (least === largest) return least;
    const sizes = `${least} ${largest === least + 1 ? "and" : "to"} ${largest}`;
    throw new InputRangeError(
      `Cannot derive the ${what} size: ` +
        (largest < least
          ? `no size of spatial axis ${axis} fits the other shapes with this stride, padding and dilation`
          : `sizes ${sizes} of spatial axis ${axis} fit the other shapes, ` +
            `choose with ${option}`),
    );
  });
}
