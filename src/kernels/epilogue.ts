import { literalOf, type Scalar, typeName } from "../elements/scalar.ts";
import { range } from "./lists.ts";
import { type ModuleBuilder, type TensorAccess, type TensorSplit, WHOLE } from "./module.ts";
import { loopIterations } from "./sized_kernel.ts";
import { BYTE_RANGE, type ByteDType } from "../problem/conv_elements.ts";
import { type Activation, activationOperand, activationWgsl } from "../problem/activations.ts";

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
    : sideValues(module, "scale", "rows", scale.split, scale.index);
  const factors = (place: EpiloguePlace) =>
    typeof scale === "number" ? literalOf("f32", scale) : each!(place);
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

/**
 * Loads a tensor of one value a row or a column, as wide as the values it goes with.
 *
 * @param index Turns a row or column into a place of the tensor.
 */
function sideValues(
  module: ModuleBuilder,
  name: string,
  side: "rows" | "columns",
  split: TensorSplit,
  index: (at: string) => string = (at) => at,
  element: Scalar = "f32",
): (place: EpiloguePlace) => string {
  const tensor = module.tensor(name, "read", 1, split, element);
  return (place) => {
    const at = side === "rows" ? place.row : place.column;
    if (place.width === 1) return tensor.load(index(at));
    const type = typeName(tensor.value, 4);
    if (place.side !== side) return `${type}(${tensor.load(index(at))})`;
    return `${type}(${[0, 1, 2, 3].map((i) => tensor.load(index(`(${at} + ${i}u)`))).join(", ")})`;
  };
}

/** value + bias of its row or column, which `index` may turn into a place of the bias tensor. */
export function biasStep(
  module: ModuleBuilder,
  side: "rows" | "columns",
  split: TensorSplit,
  index?: (at: string) => string,
  element: Scalar = "f32",
): EpilogueStep {
  const bias = sideValues(module, "bias", side, split, index, element);
  return {
    trait: side === "rows" ? "bias" : "column_bias",
    declarations: "",
    apply: (value, place) => `${value} + ${bias(place)}`,
  };
}

/** What an activation reads of a value's row or column. */
interface ActivationPlaces {
  readonly side: "rows" | "columns";
  /** The element type of the tensor. */
  readonly element: Scalar;
  index?(at: string): string;
}

/** activation(value), of a sum's type that it has. */
export function activationStep(
  module: ModuleBuilder,
  activation: Exclude<Activation, "none">,
  sum: Scalar = "f32",
  places?: ActivationPlaces,
): EpilogueStep {
  const operand = activationOperand(activation);
  const load = operand === undefined
    ? undefined
    : sideValues(module, operand, places!.side, WHOLE, places!.index, places!.element);
  const { text, iterations } = activationFunctions(activation, sum);
  return {
    trait: activation,
    declarations: text,
    iterations,
    apply: (value, place) => {
      const four = place.width === 4;
      const own = load === undefined ? "" : `, ${load(place)}`;
      return `${four ? "activate4" : "activate"}(${value}${own})`;
    },
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
 * WGSL functions `activate` of one value and `activate4` of four, and of what the activation reads for each; and how many
 * iterations of loops a value takes.
 *
 * @throws {Error} for sums that the activation is not of.
 */
export function activationFunctions(
  activation: Exclude<Activation, "none">,
  scalar: Scalar = "f32",
): { text: string; iterations: number } {
  const body = activationWgsl(activation, scalar as "f32");
  if (body === undefined) throw new Error(`There is no ${activation} of ${scalar}`);
  const needs = functionsOf(body);
  const operand = activationOperand(activation);
  const four = typeName(scalar, 4);
  const [own, own4] = operand === undefined
    ? ["", ""]
    : [`, ${operand}: ${scalar}`, `, ${operand}: ${four}`];
  const pass = (at = "") => operand === undefined ? "" : `, ${operand}${at}`;
  const one = scalar === "i32"
    ? `fn activate(x: i32${own}) -> i32 {
  ${body}
}`
    : `fn activated(x: ${scalar}${own}) -> ${scalar} {
  ${body}
}
// NaN stays NaN. Its bits are asked, since compilers may take x != x for false, and max() drops it.
fn activate(x: ${scalar}${own}) -> ${scalar} {
  return select(activated(x${pass()}), x, (bitcast<u32>(${
      scalar === "f64" ? "f32(x)" : "x"
    }) & 0x7fffffffu) > 0x7f800000u);
}`;
  const each = ["x", "y", "z", "w"].map((i) => `activate(x.${i}${pass(`.${i}`)})`).join(", ");
  return {
    text: `${needs.map(({ text }) => text).join("")}
${one}
fn activate4(x: ${four}${own4}) -> ${four} {
  return ${four}(${each});
}`,
    iterations: needs.reduce((sum, { iterations }) => sum + iterations, 0),
  };
}

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

/** Functions that activations call, each behind those that it calls, and the iterations of their loops: powers of two from -1022 on. */
const FUNCTIONS = [
  { name: "erfc_f32", text: ERF, iterations: 0 },
  { name: "exp_f64", text: EXP, iterations: loopIterations(8) },
  { name: "erf_f64", text: ERF_F64, iterations: loopIterations(ERF_TERMS - 1) },
];

/** Those that a body calls. */
function functionsOf(body: string): typeof FUNCTIONS {
  const has = (name: string, text: string) => text.includes(`${name}(`);
  return FUNCTIONS.filter(({ name }) =>
    has(name, body) || FUNCTIONS.some((one) => has(one.name, body) && has(name, one.text))
  );
}
