import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectArray, said } from "../expect.ts";

/** Zeros around an input, by PyTorch's words: `valid` for none, `same` for as many as keep its size. */
export type PaddingMode = "same" | "valid";

/** Zeros before and after each spatial axis. */
export interface Paddings {
  /** Before the first element. */
  readonly paddingBegin: readonly number[];
  /** After the last one. */
  readonly paddingEnd: readonly number[];
}

/**
 * The padding that a word stands for. As PyTorch has it, `same` goes with strides of 1 only, and where the dilated filter is
 * even the odd zero follows the last element.
 *
 * @throws {RangeError} of `same` with another stride. @throws {TypeError} of anything but the two words.
 */
export function paddingOf(
  mode: PaddingMode,
  filterSize: readonly number[],
  stride: readonly number[],
  dilation: readonly number[],
): Paddings {
  if (mode !== "same" && mode !== "valid") {
    throw new InputTypeError(
      `Cannot convolve: padding is ${said(mode)}, expected "same" or "valid"; ` +
        "paddingBegin and paddingEnd take numbers, one a spatial axis",
    );
  }
  if (mode === "same" && stride.some((step) => step !== 1)) {
    throw new InputRangeError(
      `Cannot convolve: padding "same" goes with strides of 1, stride is ${stride.join("x")}`,
    );
  }
  const totals = filterSize.map((size, axis) => mode === "same" ? (size - 1) * dilation[axis]! : 0);
  const paddingBegin = totals.map((total) => Math.floor(total / 2));
  return { paddingBegin, paddingEnd: totals.map((total, axis) => total - paddingBegin[axis]!) };
}

/** One value an axis; a single one stands for all. */
export function perAxis(what: string, values: readonly number[], rank: number): number[] {
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
export function bothSides(values: readonly number[], rank: number): Paddings {
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
