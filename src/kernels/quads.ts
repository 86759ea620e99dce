/**
 * Quads: four neighbouring values in eight bytes, whole numbers of 14 bits times a scale that they share, 2^e or 1.5·2^e
 * above the largest of them, with e from -63 to 63. On normal data they err a third as much as four f16, and
 * the range is that of f32's sums: nothing overflows where f16 would. What is too large for them, or NaN, makes NaN of all
 * four.
 *
 * A word has the first value in bits 4 to 17, the second in bits 18 to 31, half of the scale in bits 0 to 3.
 */

/** Functions on quads, for modules that have some. */
export const QUADS_TEXT = `
fn quad_scale(code: u32) -> f32 {
  return bitcast<f32>(select((code + 128u) << 22u, 0x7fc00000u, code == 255u));
}
fn unpack_quad(quad: vec2u) -> vec4f {
  let scale = 2.0f * quad_scale((quad.x & 15u) | ((quad.y & 15u) << 4u));
  let fields = vec4u(quad.x << 5u, quad.x >> 9u, quad.y << 5u, quad.y >> 9u);
  // A value is that of a float from 1 to 2, less the middle.
  let floats = bitcast<vec4f>((fields & vec4u(0x7ffe00u)) ^ vec4u(0x3fc00000u));
  return fma(floats, vec4f(scale), vec4f(-1.5f * scale));
}
fn unpack_of_quad(quad: vec2u, which: u32) -> f32 {
  let scale = quad_scale((quad.x & 15u) | ((quad.y & 15u) << 4u));
  let word = bitcast<i32>(select(quad.x, quad.y, which >= 2u));
  let value = (word << (14u * (1u - which % 2u))) >> 18u;
  return f32(value) * (scale / 8192.0f);
}
fn pack_quad(values: vec4f) -> vec2u {
  let sizes = bitcast<vec4u>(values) & vec4u(0x7fffffffu);
  let largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  let code = clamp((largest >> 22u) + 1u, 128u, 383u) - 128u;
  let places = round(values * (8192.0f / quad_scale(min(code, 254u))));
  let whole = bitcast<vec4u>(vec4i(clamp(places, vec4f(-8192.0f), vec4f(8191.0f)))) & vec4u(16383u);
  return vec2u(
    (whole.x << 4u) | (whole.y << 18u) | (code & 15u),
    (whole.z << 4u) | (whole.w << 18u) | (code >> 4u),
  );
}`;
