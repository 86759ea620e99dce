/**
 * A WGSL scalar type; `u32` also stands for four packed int8. Of `i8`, which WGSL lacks, words of four are stored, of `bf16` words of
 * two: its values are f32 everywhere else.
 */
export type Scalar = "f32" | "f16" | "bf16" | "f64" | "i32" | "u32" | "i8";

/**
 * What values in memory are: of a scalar type, or `halves`, an f32 as a high and a low f16 (`src/kernels/split_marks.ts`).
 */
export type Stored = Scalar | "halves";

/** Bytes of one value. */
export function scalarBytes(stored: Stored): number {
  if (stored === "i8") return 1;
  return stored === "f16" || stored === "bf16" ? 2 : stored === "f64" ? 8 : 4;
}

/** What values are computed with and added up in: f32 of f16, bf16 and halves, i32 of i8, else the type itself. */
export function sumScalar(stored: Stored): Exclude<Scalar, "f16" | "bf16" | "i8"> {
  if (stored === "f16" || stored === "bf16" || stored === "halves") return "f32";
  return stored === "i8" ? "i32" : stored;
}

/** The WebGPU feature that a kernel with such values needs, if any. */
export function scalarFeature(stored: Stored): string | undefined {
  return stored === "f16" || stored === "f64" ? `shader-${stored}` : undefined;
}

/** The type that values have in registers and workgroup memory where nothing is converted. */
export function heldScalar(scalar: Scalar): Exclude<Scalar, "bf16"> {
  return scalar === "bf16" ? "f32" : scalar;
}

/** The type of one value, or of four. */
export function typeName(scalar: Scalar, width: 1 | 4): string {
  const held = heldScalar(scalar);
  if (width === 1) return held;
  return held === "f32" ? "vec4f" : `vec4<${held}>`;
}

/** Zero, or four of them. */
export function zeroOf(scalar: Scalar, width: 1 | 4): string {
  return heldScalar(scalar) === "f32" && width === 1 ? "0.0f" : `${typeName(scalar, width)}()`;
}

/** A value where all conditions hold, and `zero` elsewhere: of values masks are made here alone. All are WGSL. */
export function masked(value: string, zero: string, inside: readonly string[] = []): string {
  return inside.length === 0 ? value : `select(${zero}, ${value}, ${inside.join(" && ")})`;
}

/** A literal that WGSL reads back to the same value of the type. */
export function literalOf(scalar: Scalar, value: number): string {
  if (scalar === "i32" || scalar === "u32" || scalar === "i8") return `${scalar}(${value})`;
  const text = String(scalar === "f64" ? value : Math.fround(value));
  const real = /[.e]/.test(text) ? text : `${text}.0`;
  return `${real}${{ f32: "f", bf16: "f", f16: "h", f64: "lf" }[scalar]}`;
}
