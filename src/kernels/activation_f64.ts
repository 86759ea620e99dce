import { type Activation, LEAKY_RELU_SLOPE } from "../problem/epilogue.ts";
import { loopIterations } from "./module.ts";

/**
 * Bodies of `fn activate(x: f64) -> f64`. WGSL's exp is of f32 at most, so `exp_f64` stands for it. tanh and
 * GELU are exact to the roundoff of 1 and of x: what cancels in a left tail is lost. SiLU and GELU are zero, and not -inf·0, from where
 * their factor is zero.
 */
export const F64_BODIES: { readonly [A in Activation]?: string } = {
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
  ${Array.from({ length: 13 }, (_, i) => `sum = 1.0lf + sum * r / ${13 - i}.0lf;`).join("\n  ")}
  // Of NaN it is any number.
  var power = max(i32(n), -1080);
  for (; power < -120; power += 120) { sum *= ${2 ** -120}lf; }
  return sum * f64(ldexp(1.0f, power));
}`;

// Kummer's series: all terms are positive. Beyond 6 erf is 1.
const ERF_TERMS = 160;
const ERF = `
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
export const F64_FUNCTIONS: { readonly [A in Activation]?: string } = {
  "sigmoid": EXP,
  "tanh": EXP,
  "silu": EXP,
  "gelu": `${EXP}${ERF}`,
};

// Powers of two from -1022 on, in steps of 120.
const EXP_ITERATIONS = loopIterations(8);

/** Iterations of loops that a value takes. */
export const F64_ITERATIONS: { readonly [A in Activation]?: number } = {
  "sigmoid": EXP_ITERATIONS,
  "tanh": EXP_ITERATIONS,
  "silu": EXP_ITERATIONS,
  "gelu": EXP_ITERATIONS + loopIterations(ERF_TERMS - 1),
};
