import type { Activation } from "../problem/epilogue.ts";
import { activationText, F64_ITERATIONS } from "./activation.ts";
import type { ModuleBuilder, TensorAccess, TensorSplit } from "./module.ts";
import { BYTE_RANGE, type ByteDType } from "../problem/conv_elements.ts";
import { literalOf, type Scalar, typeName } from "../elements/scalar.ts";

/** Where a value, or a vector of four, lies in the result. Expressions are WGSL over u32. */
export interface EpiloguePlace {
  readonly width: 1 | 4;
  /** Along which side the four values lie. */
  readonly side: "rows" | "columns";
  /** Row and column of the first value. */
  readonly row: string;
  readonly column: string;
  /** Index into the result in units of `width`. */
  readonly offset: string;
}

/**
 * One step between a finished sum and its store: what CUTLASS calls an epilogue policy. Steps compose in
 * order, in the mainloop's store and in the reduction of split depth alike.
 */
export interface EpilogueStep {
  /** Enters the kernel's name. */
  readonly trait: string;
  /** WGSL functions it calls. */
  readonly declarations: string;
  /** Iterations of loops that a value takes; 0 where absent. */
  readonly iterations?: number;
  apply(value: string, place: EpiloguePlace): string;
}

/** Applies steps in order. */
export function applyEpilogue(
  steps: readonly EpilogueStep[],
  value: string,
  place: EpiloguePlace,
): string {
  return steps.reduce((text, step) => step.apply(text, place), value);
}

/** Iterations of loops that the steps take for a value. */
export function epilogueIterations(steps: readonly EpilogueStep[]): number {
  return steps.reduce((sum, { iterations = 0 }) => sum + iterations, 0);
}

/** `_bias_relu`, as it stands in kernel names; empty without steps. */
export function epilogueTrait(steps: readonly EpilogueStep[]): string {
  return steps.map(({ trait }) => `_${trait}`).join("");
}

/**
 * value·factor.
 *
 * @param sum What values are in.
 */
export function scaleStep(name: string, factor: number, sum: Scalar = "f32"): EpilogueStep {
  return {
    trait: `${name}${factor}`,
    declarations: "",
    apply: (value) => `(${value}) * ${literalOf(sum, factor)}`,
  };
}

/** value + factor·tensor at the same place; the tensor lies as the result does. */
export function addTensorStep(
  name: string,
  tensor: TensorAccess,
  factor: number,
): EpilogueStep {
  return {
    trait: factor === 1 ? name : `${name}${factor}`,
    declarations: "",
    apply: (value, { offset }) =>
      `${value} + ${factor === 1 ? "" : `${literalOf(tensor.value, factor)} * `}${
        tensor.load(offset)
      }`,
  };
}

/** What sums of int8 are multiplied by on their way to int8: one factor, or those of output channels. */
export type QuantizeScale = number | {
  readonly split: TensorSplit;
  index(row: string): string;
};

/**
 * saturate(round(f32(value)·scale) + zeroPoint): of a sum in i32 a value that int8, or uint8, holds, halves to the even one.
 * Both the conversion and the product round to the nearest f32.
 */
export function quantizeStep(
  module: ModuleBuilder,
  scale: QuantizeScale,
  dtype: ByteDType = "i8",
  zeroPoint = 0,
): EpilogueStep {
  const each = typeof scale === "number"
    ? undefined
    : module.tensor("scale", "read", 1, scale.split);
  const factors = ({ width, side, row }: EpiloguePlace) => {
    if (typeof scale === "number") return literalOf("f32", scale);
    const of = (at: string) => each!.load(scale.index(at));
    if (width === 1 || side !== "rows") return of(row);
    return `vec4f(${[0, 1, 2, 3].map((i) => of(`(${row} + ${i}u)`)).join(", ")})`;
  };
  return {
    trait: (typeof scale === "number" ? `scale${scale}` : "scale") +
      (dtype === "i8" ? "" : `_${dtype}`) + (zeroPoint === 0 ? "" : `_zero${zeroPoint}`),
    declarations: "",
    apply(value, place) {
      // Before the zero point is added, so that all steps are exact.
      const [least, most] = BYTE_RANGE[dtype].map((end) => (end - zeroPoint).toFixed(1));
      const [real, whole] = place.width === 4 ? ["vec4f", "vec4<i32>"] : ["f32", "i32"];
      const rounded = `round(${real}(${value}) * ${factors(place)})`;
      const clamped = `${whole}(clamp(${rounded}, ${real}(${least}), ${real}(${most})))`;
      return zeroPoint === 0 ? clamped : `(${clamped} + ${zeroPoint})`;
    },
  };
}

/** value + bias of its row or column, which `index` may turn into a place of the bias tensor. */
export function biasStep(
  module: ModuleBuilder,
  side: "rows" | "columns",
  split: TensorSplit,
  index: (at: string) => string = (at) => at,
  element: Scalar = "f32",
): EpilogueStep {
  const bias = module.tensor("bias", "read", 1, split, element);
  return {
    trait: side === "rows" ? "bias" : "column_bias",
    declarations: "",
    apply(value, place) {
      const at = side === "rows" ? place.row : place.column;
      if (place.width === 1) return `${value} + ${bias.load(index(at))}`;
      const type = typeName(bias.value, 4);
      if (place.side !== side) return `${value} + ${type}(${bias.load(index(at))})`;
      const four = [0, 1, 2, 3].map((i) => bias.load(index(`(${at} + ${i}u)`)));
      return `${value} + ${type}(${four.join(", ")})`;
    },
  };
}

/** activation(value); of i32 ReLU only. */
export function activationStep(
  activation: Exclude<Activation, "none">,
  sum: Scalar = "f32",
): EpilogueStep {
  return {
    trait: activation,
    declarations: activationText(activation, sum),
    iterations: sum === "f64" ? F64_ITERATIONS[activation] ?? 0 : 0,
    apply: (value, { width }) => `${width === 4 ? "activate4" : "activate"}(${value})`,
  };
}

/**
 * Makes the steps for one kernel, binding what they read to its module.
 *
 * @param width Of the values they will be applied to.
 * @param rowIndex Turns a row within the group into a row of the whole.
 */
export type EpilogueFactory = (
  module: ModuleBuilder,
  width: 1 | 4,
  rowIndex: (row: string) => string,
) => EpilogueStep[];

/** No steps: what the mainloop stores where the depth is split. */
export const NO_STEPS: EpilogueFactory = () => [];
