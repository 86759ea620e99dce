import { InputTypeError } from "../errors.ts";
import { expectArray, said } from "../expect.ts";

/**
 * Zeros around an input, by a word: `valid` for none, `same` for as many as a result of ceil(size / stride) needs. Of an odd number
 * of zeros `same` has the last one behind, as PyTorch, TensorFlow and ONNX's SAME_UPPER have it; `same-lower` has it in front.
 */
export type PaddingMode = "same" | "same-lower" | "valid";
/** All of them, in the order of lists. */
export const PADDING_MODES: readonly PaddingMode[] = ["same", "same-lower", "valid"];

/** Zeros before and after each spatial axis. */
export interface Paddings {
  /** Before the first element. */
  readonly paddingBegin: readonly number[];
  /** After the last one; negative for as many elements that no filter reaches. */
  readonly paddingEnd: readonly number[];
}

/** Sizes of a convolution that a padding by a word depends on, one an axis. */
interface PaddedSizes {
  /** (D,) H, W */
  readonly inputSize: readonly number[];
  /** (T,) R, S */
  readonly filterSize: readonly number[];
  /** Steps of the filter. */
  readonly stride: readonly number[];
  /** 1 for none. */
  readonly dilation: readonly number[];
}

/**
 * The padding that a word stands for.
 *
 * @throws {TypeError} of anything but the words.
 */
export function paddingOf(mode: PaddingMode, sizes: PaddedSizes): Paddings {
  if (!PADDING_MODES.includes(mode)) {
    throw new InputTypeError(
      `Cannot convolve: padding is ${said(mode)}, expected "same", "same-lower" or "valid", ` +
        "a number, or numbers, one a spatial axis",
    );
  }
  const { inputSize, filterSize, stride, dilation } = sizes;
  const totals = inputSize.map((size, axis) => {
    const step = stride[axis]!;
    const spread = (filterSize[axis]! - 1) * dilation[axis]! + 1;
    return mode === "valid" ? 0 : Math.max(0, (Math.ceil(size / step) - 1) * step + spread - size);
  });
  const halves = totals.map((total) => Math.floor(total / 2));
  const others = totals.map((total, axis) => total - halves[axis]!);
  return mode === "same-lower"
    ? { paddingBegin: others, paddingEnd: halves }
    : { paddingBegin: halves, paddingEnd: others };
}

/**
 * Zeros behind an axis on which the filter stops before the last `extra` places that it could go on for. Where they are a stride or
 * more they come off the zeros, which go below none: then the filter does not reach the last elements. PyTorch's `output_padding`
 * leaves so many, up to the stride or the dilation.
 */
export function endBefore(extra: number, end: number, stride: number): number {
  return end - (extra - extra % stride);
}

/** Values of the spatial axes: one for all, alone or in an array, or one an axis. */
export type AxisValues = number | readonly number[];

/** One value an axis; a single one stands for all. */
export function perAxis(what: string, values: AxisValues, rank: number): number[] {
  if (typeof values === "number") return new Array<number>(rank).fill(values);
  expectArray("Cannot convolve", what, values);
  if (values.length === 1) return new Array<number>(rank).fill(values[0]!);
  if (values.length === rank) return [...values];
  throw new InputTypeError(
    `Cannot convolve: ${what} [${values.join(", ")}] has ${values.length} values, ` +
      `expected 1 or ${rank}, one a spatial axis`,
  );
}

/**
 * Padding of both sides from one value, one an axis (the same before and after), or two an axis: first
 * all that come before, then all that come after; in 2-D top, left, bottom, right.
 *
 * @throws {TypeError} if `values` has another length.
 */
export function bothSides(values: AxisValues, rank: number): Paddings {
  if (typeof values === "number") return bothSides([values], rank);
  expectArray("Cannot convolve", "padding", values);
  if (values.length === 2 * rank) {
    return { paddingBegin: values.slice(0, rank), paddingEnd: values.slice(rank) };
  }
  if (values.length !== 1 && values.length !== rank) {
    throw new InputTypeError(
      `Cannot convolve: padding [${values.join(", ")}] has ${values.length} values, ` +
        `expected 1, ${rank} (one a spatial axis) or ${2 * rank} (all before, then all after)`,
    );
  }
  const begin = perAxis("padding", values, rank);
  return { paddingBegin: begin, paddingEnd: begin };
}
