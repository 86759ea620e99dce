/** Data on which kernels fail in different ways. */
import type { Operation } from "../problem/conv_problem.ts";
import { fillOperand } from "../run/operands.ts";
import { randomStream } from "../reference/sample.ts";
import type { HostData, HostOperands, Subject, SubjectTensor } from "../run/subject.ts";
import type { FillKind } from "../tensor/fill.ts";
import { layoutAxes } from "../tensor/layout.ts";
import { bf16round } from "../tensor/convert.ts";
import { rowMajorStrides } from "../tensor/tensor.ts";
import type { FuzzDType } from "./problems.ts";

/**
 * `cancelling`: sums are 0, or small beside their products. `integers`: sums are exact, so results must be. `dark`: the far part
 * of each image is a millionth as large, or 0. Others are fills.
 */
export type DataKind =
  | "normal"
  | "uniform"
  | "constant"
  | "cancelling"
  | "integers"
  | "outliers"
  | "dark"
  | "mixed";

/** All of them, in the order of help texts. */
export const DATA_KINDS: readonly DataKind[] = [
  ...["normal", "uniform", "constant", "cancelling", "integers", "outliers", "dark"] as const,
  "mixed",
];

/** Values that are planted among others. */
export type SpecialValue = "nan" | "inf" | "denormal";
/** All of them. */
export const SPECIAL_VALUES: readonly SpecialValue[] = ["nan", "inf", "denormal"];

const FILLS: Readonly<Record<DataKind, FillKind>> = {
  normal: "normal",
  uniform: "uniform01",
  constant: "constant",
  cancelling: "normal",
  integers: "integer",
  outliers: "outliers",
  dark: "normal",
  mixed: "mixed",
};

/** What large values of these kinds are multiplied by in f16, lest results leave its range. */
const HALF_SCALE = 2 ** -6;

/** How operands are made. */
export interface FuzzData {
  readonly dtype: FuzzDType;
  readonly data: DataKind;
  readonly special: readonly SpecialValue[];
  readonly seed: number;
}

/** Operands of a subject, of values that the type holds. */
export function makeOperands(subject: Subject, made: FuzzData): HostOperands {
  const { dtype, data, special, seed } = made;
  const whole = dtype === "i8";
  const fill = !whole
    ? FILLS[data]
    : data === "constant" || data === "cancelling"
    ? FILLS[data === "constant" ? data : "integers"]
    : "int8";
  const operands: Record<string, HostData> = {};
  for (const one of subject.operands) {
    operands[one.role] = fillOperand(one, { fill, seed });
  }
  if (data === "cancelling") cancel(subject, operands, whole || seed % 2 === 0 ? -1 : -TINY);
  if (data === "dark") darken(subject.operands[0]!, operands, seed);
  if (!whole) {
    const shrunk = dtype === "f16" && (data === "mixed" || data === "outliers");
    for (const values of Object.values(operands)) roundTo(values, dtype, shrunk ? HALF_SCALE : 1);
    subject.operands.slice(0, 2).forEach(({ role }, place) =>
      plant(operands[role]!, dtype, special, seed + place)
    );
  }
  return operands;
}

/** Sums of products and their negatives times this are small, of -1 they are 0. */
const TINY = 1 + 2 ** -7;

/** The axes that products are summed along: of each operand, with how many of its entries follow each other in a group. */
function summedAxes({ asked, operands }: Subject): { axis: number; length: number }[] {
  if ("gemm" in asked) {
    const { transpose, k } = asked.gemm;
    const [a, b] = operands.map(({ shape }) => shape.length - 2) as [number, number];
    return [
      { axis: a + (transpose[0] === "n" ? 1 : 0), length: k },
      { axis: b + (transpose[1] === "n" ? 0 : 1), length: k },
    ];
  }
  const { problem: { op, groups, inChannels, outChannels, batch, filterSize }, ...layouts } =
    asked.conv;
  const axisOf = (layout: typeof layouts.layout | typeof layouts.filterLayout, axis: number) =>
    layoutAxes(layout, filterSize.length).indexOf(axis);
  const summed: Readonly<Record<Operation, readonly [number, number, number]>> = {
    fwd: [1, 1, inChannels / groups],
    "bwd-data": [1, 0, outChannels / groups],
    "bwd-filter": [0, 0, batch],
  };
  const [one, other, length] = summed[op];
  const second = op === "bwd-filter" ? layouts.layout : layouts.filterLayout;
  return [
    { axis: axisOf(layouts.layout, one), length },
    { axis: axisOf(second, other), length },
  ];
}

/** Makes every second product of a sum the one before it times a factor; what is left over is 0. */
function cancel(subject: Subject, operands: Record<string, HostData>, factor: number): void {
  summedAxes(subject).forEach(({ axis, length }, place) => {
    if (length < 2) return;
    const { role, shape } = subject.operands[place]!;
    const data = operands[role]!;
    const stride = rowMajorStrides(shape)[axis]!;
    for (let at = 0; at < data.length; at++) {
      const entry = Math.floor(at / stride) % shape[axis]! % length;
      if (entry % 2 === 1) data[at] = data[at - stride]! * (place === 0 ? 1 : factor);
      else if (entry === length - 1) data[at] = 0;
    }
  });
}

/** Makes what lies far along the last axis but one small; of seeds that are odd it is 0. */
function darken(
  { role, shape }: SubjectTensor,
  operands: Record<string, HostData>,
  seed: number,
): void {
  const data = operands[role]!;
  const axis = Math.max(0, shape.length - 2);
  const stride = rowMajorStrides(shape)[axis]!;
  const cut = Math.floor(shape[axis]! * randomStream(seed)());
  const factor = seed % 2 === 0 ? 1e-6 : 0;
  for (let at = 0; at < data.length; at++) {
    if (Math.floor(at / stride) % shape[axis]! > cut) data[at] = data[at]! * factor;
  }
}

function roundTo(values: HostData, dtype: FuzzDType, factor: number): void {
  const round = dtype === "f16" ? Math.f16round : dtype === "bf16" ? bf16round : Math.fround;
  for (let i = 0; i < values.length; i++) values[i] = round(values[i]! * factor);
}

/** The smallest numbers of types. */
const DENORMAL: Readonly<Record<FuzzDType, number>> = {
  f32: 2 ** -149,
  f16: 2 ** -24,
  bf16: 2 ** -133,
  i8: 1,
};

/** Puts special values to places that the seed says. */
function plant(
  values: HostData,
  dtype: FuzzDType,
  special: readonly SpecialValue[],
  seed: number,
): void {
  const random = randomStream(seed);
  for (const one of special) {
    const value = one === "nan" ? NaN : one === "denormal" ? DENORMAL[dtype] : Infinity;
    const sign = random() < 0.5 ? -1 : 1;
    values[Math.floor(random() * values.length)] = sign * value;
  }
}
