import { ACTIVATIONS, activationWgsl } from "./activations.ts";
import type { FilterLayout, Layout } from "../tensor/layout.ts";
import {
  type ConvDType,
  type ConvOutDType,
  type ConvProblem,
  resultDtypes,
} from "./conv_problem.ts";
import { type Epilogue, isScale, SCALE_RANGE } from "./epilogue.ts";

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

/** All fields of {@linkcode IntegerOperands}. */
export const INTEGER_FIELDS: readonly (keyof IntegerOperands)[] = [
  ...["inputDtype", "inputZeroPoint", "filterDtype", "filterZeroPoint"] as const,
];

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

/** A convolution with the element types and layouts of its tensors. */
interface ConvElements {
  readonly problem: Pick<ConvProblem, "op">;
  readonly dtype: ConvDType;
  /** What `resultDtypes()` has first where absent. */
  readonly outDtype?: ConvOutDType | undefined;
  readonly layout: Layout;
  readonly filterLayout: FilterLayout;
  readonly epilogue: Epilogue;
  readonly integers?: IntegerOperands | undefined;
}

/** What element types do not go with, as a clause: int8 is forward, in nhwc, and stays with whole numbers; undefined if nothing. */
export function convElementsFault(
  { problem: { op }, dtype, outDtype, layout, filterLayout, epilogue, integers }: ConvElements,
): string | undefined {
  const { activation, scale, zeroPoint } = epilogue;
  const results = resultDtypes(dtype);
  if (outDtype !== undefined && !results.includes(outDtype)) {
    return `outDtype ${outDtype} is none of ${results.join(", ")}`;
  }
  const bytes = outDtype === "i8" || outDtype === "u8" ? outDtype : undefined;
  if ((scale === undefined) === (bytes !== undefined)) {
    return `results in ${bytes ?? "i8 and u8"} take a scale (--scale), and no others do`;
  }
  if (zeroPoint !== undefined) {
    if (bytes === undefined) {
      return "a zero point of the output (--output-zero-point) is of results in i8 or u8";
    }
    const fault = zeroPointFault("output", bytes, zeroPoint);
    if (fault !== undefined) return fault;
  }
  if (typeof scale === "number" && !isScale(scale)) {
    return `scale ${scale} is no number from ${SCALE_RANGE}`;
  }
  const fault = integers && integersFault(dtype, integers);
  if (fault !== undefined) return fault;
  if (dtype !== "i8") return undefined;
  if (op !== "fwd") return `convolutions of i8 are forward, not ${op}`;
  if (layout !== "nhwc" || filterLayout !== "krsc") {
    return `i8 tensors lie as nhwc with filters krsc, not as ${layout} with ${filterLayout}; ` +
      (layout === "nhwc"
        ? "convertLayout() converts a filter"
        : `wgconv tensor convert X OUT --from-layout ${layout} --to-layout nhwc converts the input, ` +
          "then --layout nhwc and the filter's own --filter-layout");
  }
  const whole = ACTIVATIONS.filter((kind) => kind !== "none" && activationWgsl(kind, "i32"));
  return activation === "none" || whole.includes(activation)
    ? undefined
    : `${activation} leads out of the integers, i8 convolutions take ${whole.join(", ")}`;
}

function integersFault(dtype: ConvDType, integers: IntegerOperands): string | undefined {
  if (dtype !== "i8") return `zero points and operands of u8 are of dtype i8, not of ${dtype}`;
  const { inputDtype = "i8", inputZeroPoint = 0, filterDtype = "i8", filterZeroPoint = 0 } =
    integers;
  const unknown = [inputDtype, filterDtype].find((one) => !(one in BYTE_RANGE));
  if (unknown !== undefined) return `operands of dtype i8 are in i8 or u8, not in ${unknown}`;
  return zeroPointFault("input", inputDtype, inputZeroPoint) ??
    (filterZeroPoint === "channel"
      ? undefined
      : zeroPointFault("filter", filterDtype, filterZeroPoint));
}

function zeroPointFault(which: string, dtype: ByteDType, value: number): string | undefined {
  if (isZeroPoint(dtype, value)) return undefined;
  return `zero point ${value} of the ${which} is no whole number from ${
    BYTE_RANGE[dtype].join(" to ")
  }, which ${dtype} holds`;
}
