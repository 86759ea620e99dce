import { erfc } from "./erf.ts";

/** A function of each output, as PyTorch has it: gelu is the exact one, x·Φ(x), silu is x·sigmoid(x). */
export type Activation =
  | "none"
  | "relu"
  | "leaky-relu"
  | "prelu"
  | "sigmoid"
  | "tanh"
  | "gelu"
  | "silu";

/** A tensor of one value an output channel that an activation reads. */
export type ActivationOperand = "slope";

/** An activation: all that the library knows of it. */
interface ActivationEntry {
  /** What it reads for each output channel: the name of a buffer, of an option, and of a parameter of the texts below. */
  readonly operand?: ActivationOperand;
  /**
   * Body of a WGSL function of `x`, a sum, in each type of sums that it is of. NaN never comes here. It may call the functions
   * of `src/kernels/epilogue.ts`.
   */
  readonly wgsl: { readonly f32: string; readonly f64?: string; readonly i32?: string };
  /** The same in double precision. */
  readonly value: (x: number, operand: number) => number;
  /** How many times as large it makes an error of x, where that may be more than 1. */
  readonly gain?: (operand: number) => number;
  /** Size of the numbers near 1 that it is made of, in a value. */
  readonly scale?: (value: number) => number;
  /** Of approximate exponentials: the size of what they are factors of. */
  readonly exponential?: (argument: number, value: number) => number;
}

/** Slope of leaky ReLU below zero: PyTorch's default. */
const LEAKY_RELU_SLOPE = 0.01;

/** Arguments below which a sigmoid is 0 for all that f64 can tell beside 1. */
const SATURATED = 8;

/** What is multiplied by its argument matters until it saturates. */
const timesArgument = (argument: number, value: number) =>
  Math.min(SATURATED, argument) + Math.abs(value);

// In f32 exp is of non-positive numbers only: neither sigmoid nor tanh overflows. SiLU and GELU are zero, and not -inf·0, from where
// their factor is zero. In f64 tanh and GELU are exact to the roundoff of 1 and of x: what cancels in a left tail is lost.
const ENTRIES: Readonly<Record<Exclude<Activation, "none">, ActivationEntry>> = {
  "relu": {
    wgsl: {
      f32: "return max(x, 0.0);",
      f64: "return select(x, 0.0lf, x < 0.0lf);",
      i32: "return max(x, 0i);",
    },
    value: (x) => x < 0 ? 0 : x,
  },
  "leaky-relu": {
    wgsl: {
      f32: `return select(x, x * ${LEAKY_RELU_SLOPE}, x < 0.0);`,
      f64: `return select(x, x * ${LEAKY_RELU_SLOPE}lf, x < 0.0lf);`,
    },
    value: (x) => x < 0 ? LEAKY_RELU_SLOPE * x : x,
  },
  "prelu": {
    operand: "slope",
    wgsl: { f32: "return select(x, x * slope, x < 0.0);" },
    value: (x, slope) => x < 0 ? slope * x : x,
    // What a slope of NaN or infinity makes of a sum below zero has no size.
    gain: (slope) => Number.isFinite(slope) ? Math.max(1, Math.abs(slope)) : 1,
  },
  "sigmoid": {
    wgsl: {
      f32: "let e = exp(-abs(x)); return select(e, 1.0, x >= 0.0) / (1.0 + e);",
      f64: "let e = exp_f64(-abs(x)); return select(e, 1.0lf, x >= 0.0lf) / (1.0lf + e);",
    },
    value: sigmoid,
    scale: (value) => value,
    exponential: () => 1,
  },
  "tanh": {
    wgsl: {
      // Near zero 1 - e cancels; the odd series up to x^7 is exact to f32 there.
      f32: `if (abs(x) < 0.25) {
    let s = x * x;
    return x * (1.0 + s * (-0.33333334 + s * (0.13333334 + s * (-0.053968254 + s * 0.021869488))));
  }
  let e = exp(-2.0 * abs(x));
  return sign(x) * (1.0 - e) / (1.0 + e);`,
      f64: "let e = exp_f64(-2.0lf * abs(x)); return sign(x) * (1.0lf - e) / (1.0lf + e);",
    },
    value: Math.tanh,
    scale: () => 1,
    exponential: () => 1,
  },
  "gelu": {
    wgsl: {
      f32: "return 0.5 * max(x, -16.0) * erfc_f32(-0.70710678 * x);",
      f64: "return 0.5lf * max(x, -16.0lf) * (1.0lf + erf_f64(0.7071067811865476lf * x));",
    },
    // erfc keeps its digits where 1 + erf(x) would cancel; 0·−∞ is 0 here.
    value: (x) => x === -Infinity ? 0 : 0.5 * x * erfc(-x * Math.SQRT1_2),
    exponential: timesArgument,
  },
  "silu": {
    wgsl: {
      f32: "let e = exp(-abs(x)); return max(x, -128.0) * select(e, 1.0, x >= 0.0) / (1.0 + e);",
      f64:
        "let e = exp_f64(-abs(x)); return max(x, -750.0lf) * select(e, 1.0lf, x >= 0.0lf) / (1.0lf + e);",
    },
    value: (x) => x === -Infinity ? 0 : x * sigmoid(x),
    exponential: timesArgument,
  },
};

/** What follows no sum. */
const NONE: Omit<ActivationEntry, "wgsl"> = { value: (x) => x };

/** All of them, in the order of help texts. */
export const ACTIVATIONS: readonly Activation[] = [
  "none",
  ...Object.keys(ENTRIES) as (keyof typeof ENTRIES)[],
];

/** Those that read nothing beside a sum: what may follow a matrix product. */
export const PLAIN_ACTIVATIONS: readonly Activation[] = ACTIVATIONS.filter((kind) =>
  activationOperand(kind) === undefined
);

/** All tensors that activations read, and the activations that read them. Node 20 has no `Map.groupBy()`. */
export const ACTIVATION_OPERANDS: ReadonlyMap<ActivationOperand, readonly Activation[]> = new Map(
  ACTIVATIONS.map(activationOperand).filter((operand) => operand !== undefined).map((operand) => [
    operand,
    ACTIVATIONS.filter((kind) => activationOperand(kind) === operand),
  ]),
);

function entryOf(kind: Activation): Omit<ActivationEntry, "wgsl"> {
  return kind === "none" ? NONE : ENTRIES[kind];
}

/** What an activation reads for each output channel. */
export function activationOperand(kind: Activation): ActivationOperand | undefined {
  return entryOf(kind).operand;
}

/** Body of an activation's function in WGSL; undefined where it is not of such sums. */
export function activationWgsl(
  kind: Exclude<Activation, "none">,
  sum: "f32" | "f64" | "i32",
): string | undefined {
  return ENTRIES[kind].wgsl[sum];
}

/**
 * The activation of a value in double precision.
 *
 * @param operand What it reads for the value's channel, if anything.
 */
export function activate(kind: Activation, x: number, operand: number = NaN): number {
  return entryOf(kind).value(x, operand);
}

/**
 * What an activation reads of a channel.
 *
 * @returns NaN where it reads nothing.
 */
export function operandOf(
  kind: Activation,
  operands: { readonly [role in ActivationOperand]?: ArrayLike<number> | undefined },
): (channel: number) => number {
  const role = activationOperand(kind);
  const values = role === undefined ? undefined : operands[role]!;
  return (channel) => values === undefined ? NaN : values[channel]!;
}

/** How many times as large an activation makes an error of its argument, at most. */
export function activationGain(kind: Activation, operand: number): number {
  return entryOf(kind).gain?.(operand) ?? 1;
}

/**
 * Size of what an activation rounds beyond its argument: a sigmoid of a tiny sum is near 1/2, and tanh is
 * made of exponentials near 1.
 */
export function activationScale(kind: Activation, value: number): number {
  return entryOf(kind).scale?.(value) ?? 0;
}

/** Roundings that WGSL allows an exponential and a division, in units of the argument. */
const EXPONENTIAL_ROUNDINGS = 16;

/** What an activation adds to a limit, in units of u. */
export function activationRoundings(kind: Activation): number {
  return entryOf(kind).exponential === undefined ? 0 : EXPONENTIAL_ROUNDINGS;
}

/**
 * What an activation may be off by of its own, in units of u: exponentials are approximated. A sigmoid and tanh are made of
 * numbers near 1; gelu and silu are such a number times their argument.
 *
 * @param magnitude Σ|a||b| and what is added to it: of the argument.
 */
export function activationError(kind: Activation, value: number, magnitude: number): number {
  const { exponential } = entryOf(kind);
  return exponential === undefined ? 0 : EXPONENTIAL_ROUNDINGS * exponential(magnitude, value);
}

function sigmoid(x: number): number {
  if (x >= 0) return 1 / (1 + Math.exp(-x));
  const small = Math.exp(x);
  return small / (1 + small);
}
