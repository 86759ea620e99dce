import { type Scalar, typeName, zeroOf } from "../elements/scalar.ts";

/**
 * The WGSL function `lost_of`: what a compensated (Kahan) sum is to take from its next term. Nothing is lost of a sum that is not
 * finite: infinity less infinity would make NaN of it. Its bits are asked, since compilers may take all numbers for finite.
 */
export function compensationText(scalar: Scalar, width: 1 | 4): string {
  const type = typeName(scalar, width);
  const bits = width === 4 ? "vec4u" : "u32";
  const single = scalar === "f64" ? `${width === 4 ? "vec4f" : "f32"}(next)` : "next";
  return `fn lost_of(sum: ${type}, term: ${type}, next: ${type}) -> ${type} {
  let size = bitcast<${bits}>(${single}) & ${bits}(0x7f800000u);
  return select((next - sum) - term, ${zeroOf(scalar, width)}, size == ${bits}(0x7f800000u));
}`;
}
