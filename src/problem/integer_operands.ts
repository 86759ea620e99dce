/** Types of integer operands and of what their sums are rounded to: a byte each. */
export type ByteDType = "i8" | "u8";

/** Smallest and largest value of each. */
export const BYTE_RANGE: Readonly<Record<ByteDType, readonly [number, number]>> = {
  i8: [-128, 127],
  u8: [0, 255],
};

/**
 * What operands of dtype i8 are in, and which of their values stand for zero: the convolution is of x - inputZeroPoint and
 * w - filterZeroPoint, and padding is zero, as ONNX's ConvInteger and QLinearConv have it.
 */
export interface IntegerOperands {
  /** Element type of X; i8 where absent. */
  readonly inputDtype?: ByteDType;
  /** 0 where absent. */
  readonly inputZeroPoint?: number;
  /** Element type of W; i8 where absent. */
  readonly filterDtype?: ByteDType;
  /** One for all filters, or `channel`: one for each, an operand in i32. 0 where absent. */
  readonly filterZeroPoint?: number | "channel";
}

/** Whether a value can stand for zero. */
export function isZeroPoint(dtype: ByteDType, value: number): boolean {
  const [least, most] = BYTE_RANGE[dtype];
  return Number.isInteger(value) && value >= least && value <= most;
}

/** Operands in words, for records; undefined where they are i8 as they are. */
export function integersText(integers: IntegerOperands): string | undefined {
  const { inputDtype = "i8", inputZeroPoint = 0, filterDtype = "i8", filterZeroPoint = 0 } =
    integers;
  const of = (which: string, dtype: ByteDType, zero: number | "channel") =>
    dtype === "i8" && zero === 0 ? [] : [
      `${which} ${dtype}${
        zero === 0 ? "" : zero === "channel" ? " less zero points" : ` less ${zero}`
      }`,
    ];
  const texts = [
    ...of("input", inputDtype, inputZeroPoint),
    ...of("filter", filterDtype, filterZeroPoint),
  ];
  return texts.length === 0 ? undefined : texts.join(", ");
}
