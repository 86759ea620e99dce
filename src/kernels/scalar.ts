/** A WGSL scalar type; `u32` also stands for four packed int8. */
export type Scalar = "f32" | "f16" | "f64" | "i32" | "u32";

/** The type of one value, or of four. */
export function typeName(scalar: Scalar, width: 1 | 4): string {
  if (width === 1) return scalar;
  return scalar === "f32" ? "vec4f" : `vec4<${scalar}>`;
}

/** Zero, or four of them. */
export function zeroOf(scalar: Scalar, width: 1 | 4): string {
  return scalar === "f32" && width === 1 ? "0.0f" : `${typeName(scalar, width)}()`;
}

/** A literal that WGSL reads back to the same value of the type. */
export function literalOf(scalar: Scalar, value: number): string {
  if (scalar === "i32" || scalar === "u32") return `${scalar}(${value})`;
  const text = String(scalar === "f64" ? value : Math.fround(value));
  const real = /[.e]/.test(text) ? text : `${text}.0`;
  return `${real}${{ f32: "f", f16: "h", f64: "lf" }[scalar]}`;
}
