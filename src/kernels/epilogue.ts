import { literalOf, type Scalar, typeName } from "../elements/scalar.ts";
import { range } from "./lists.ts";
import {
  loopIterations,
  type ModuleBuilder,
  type TensorAccess,
  type TensorSplit,
} from "./module.ts";
import { BYTE_RANGE, type ByteDType } from "../problem/conv_elements.ts";
import { type Activation, LEAKY_RELU_SLOPE } from "../problem/epilogue.ts";

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
type QuantizeScale = number | {
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

/**
 * WGSL functions `activate` of one value and `activate4` of four. Empty for `none`: the caller leaves the
 * call out.
 *
 * @throws {Error} for an activation of i32 that is not `relu`.
 */
export function activationText(activation: Activation, scalar: Scalar = "f32"): string {
  if (activation === "none") return "";
  const body = (scalar === "f64" ? F64_BODIES : scalar === "i32" ? I32_BODIES : BODIES)[activation];
  if (body === undefined) throw new Error(`There is no ${activation} of ${scalar}`);
  const needs = scalar === "f64"
    ? F64_FUNCTIONS[activation] ?? ""
    : activation === "gelu"
    ? ERF
    : "";
  const four = typeName(scalar, 4);
  const one = scalar === "i32"
    ? `fn activate(x: i32) -> i32 {
  ${body}
}`
    : `fn activated(x: ${scalar}) -> ${scalar} {
  ${body}
}
// NaN stays NaN. Its bits are asked, since compilers may take x != x for false, and max() drops it.
fn activate(x: ${scalar}) -> ${scalar} {
  return select(activated(x), x, (bitcast<u32>(${
      scalar === "f64" ? "f32(x)" : "x"
    }) & 0x7fffffffu) > 0x7f800000u);
}`;
  return `${needs}
${one}
fn activate4(x: ${four}) -> ${four} {
  return ${four}(activate(x.x), activate(x.y), activate(x.z), activate(x.w));
}`;
}

const I32_BODIES: { readonly [A in Activation]?: string } = { "relu": "return max(x, 0i);" };

// exp of a non-positive number only: neither sigmoid nor tanh overflows. SiLU and GELU are zero, and not -inf·0, from where their
// factor is zero.
const BODIES: { readonly [A in Activation]?: string } = {
  "relu": "return max(x, 0.0);",
  "leaky-relu": `return select(x, x * ${LEAKY_RELU_SLOPE}, x < 0.0);`,
  "sigmoid": "let e = exp(-abs(x)); return select(e, 1.0, x >= 0.0) / (1.0 + e);",
  // Near zero 1 - e cancels; the odd series up to x^7 is exact to f32 there.
  "tanh": `if (abs(x) < 0.25) {
    let s = x * x;
    return x * (1.0 + s * (-0.33333334 + s * (0.13333334 + s * (-0.053968254 + s * 0.021869488))));
  }
  let e = exp(-2.0 * abs(x));
  return sign(x) * (1.0 - e) / (1.0 + e);`,
  "silu": "let e = exp(-abs(x)); return max(x, -128.0) * select(e, 1.0, x >= 0.0) / (1.0 + e);",
  "gelu": "return 0.5 * max(x, -16.0) * erfc_f32(-0.70710678 * x);",
};

// erfc by Abramowitz and Stegun 7.1.26 would err by 1e-7 absolute, which is relative 1e-2 in gelu's left
// tail; this continued Chebyshev fit (Numerical Recipes, erfcc) has a relative error of 1.2e-7 everywhere.
const ERF = `
fn erfc_f32(x: f32) -> f32 {
  let z = abs(x);
  let u = 1.0 / (1.0 + 0.5 * z);
  let p = -1.26551223 + u * (1.00002368 + u * (0.37409196 + u * (0.09678418 + u * (-0.18628806 +
    u * (0.27886807 + u * (-1.13520398 + u * (1.48851587 + u * (-0.82215223 + u * 0.17087277))))))));
  let value = u * exp(-z * z + p);
  return select(value, 2.0 - value, x < 0.0);
}`;

/**
 * Bodies of `fn activate(x: f64) -> f64`. WGSL's exp is of f32 at most, so `exp_f64` stands for it. tanh and
 * GELU are exact to the roundoff of 1 and of x: what cancels in a left tail is lost. SiLU and GELU are zero, and not -inf·0, from where
 * their factor is zero.
 */
const F64_BODIES: { readonly [A in Activation]?: string } = {
  "relu": "return select(x, 0.0lf, x < 0.0lf);",
  "leaky-relu": `return select(x, x * ${LEAKY_RELU_SLOPE}lf, x < 0.0lf);`,
  "sigmoid": "let e = exp_f64(-abs(x)); return select(e, 1.0lf, x >= 0.0lf) / (1.0lf + e);",
  "tanh": "let e = exp_f64(-2.0lf * abs(x)); return sign(x) * (1.0lf - e) / (1.0lf + e);",
  "silu":
    "let e = exp_f64(-abs(x)); return max(x, -750.0lf) * select(e, 1.0lf, x >= 0.0lf) / (1.0lf + e);",
  "gelu": "return 0.5lf * max(x, -16.0lf) * (1.0lf + erf_f64(0.7071067811865476lf * x));",
};

// The remainder is at most ln(2)/2, where the series up to x^13 is exact to f64; ln(2) is taken off in two
// parts. 2^n goes in steps that f32 can make.
const EXP = `
fn exp_f64(x: f64) -> f64 {
  if (x < -708.0lf) { return 0.0lf; }
  let n = round(f32(x) * 1.442695041f);
  let r = (x - f64(n) * 0.6931471803691238lf) - f64(n) * 1.9082149292705877e-10lf;
  var sum = 1.0lf;
  ${range(13).map((i) => `sum = 1.0lf + sum * r / ${13 - i}.0lf;`).join("\n  ")}
  // Of NaN it is any number.
  var power = max(i32(n), -1080);
  for (; power < -120; power += 120) { sum *= ${2 ** -120}lf; }
  return sum * f64(ldexp(1.0f, power));
}`;

// Kummer's series: all terms are positive. Beyond 6 erf is 1.
const ERF_TERMS = 160;
const ERF_F64 = `
fn erf_f64(x: f64) -> f64 {
  let z = abs(x);
  if (z > 6.0lf) { return sign(x); }
  var term = z;
  var sum = z;
  for (var n = 1u; n < ${ERF_TERMS}u; n++) {
    term *= 2.0lf * z * z / f64(2u * n + 1u);
    sum += term;
  }
  return sign(x) * 1.1283791670955126lf * exp_f64(-z * z) * sum;
}`;

/** Functions that the bodies call. */
const F64_FUNCTIONS: { readonly [A in Activation]?: string } = {
  "sigmoid": EXP,
  "tanh": EXP,
  "silu": EXP,
  "gelu": `${EXP}${ERF_F64}`,
};

// Powers of two from -1022 on, in steps of 120.
const EXP_ITERATIONS = loopIterations(8);

/** Iterations of loops that a value takes. */
const F64_ITERATIONS: { readonly [A in Activation]?: number } = {
  "sigmoid": EXP_ITERATIONS,
  "tanh": EXP_ITERATIONS,
  "silu": EXP_ITERATIONS,
  "gelu": EXP_ITERATIONS + loopIterations(ERF_TERMS - 1),
};
