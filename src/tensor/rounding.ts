/** Types that hardware multiplies and no typed array has: their values as numbers. */

const SINGLE = new Float32Array(1);
const BITS = new Uint32Array(SINGLE.buffer);

/** The nearest bf16, of two the even one: eight bits of f32's. NaN stays one. */
export function bf16round(value: number): number {
  return roundedTo(16, value);
}

/** The nearest TF32, which has f16's eleven bits and f32's exponents; of two the even one. */
export function tf32round(value: number): number {
  return roundedTo(13, value);
}

/** The TF32 that is left where an f32 loses its last bits, as matrix units of NVIDIA's read them. */
export function tf32truncate(value: number): number {
  SINGLE[0] = value;
  if (!Number.isFinite(SINGLE[0])) return SINGLE[0];
  BITS[0] = BITS[0]! & ~0x1fff;
  return SINGLE[0];
}

/** Rounds a number once to f32 without so many of its last bits. */
function roundedTo(bits: number, value: number): number {
  SINGLE[0] = value;
  if (!Number.isFinite(SINGLE[0])) return SINGLE[0];
  let word = BITS[0]!;
  // What f32 does not hold goes to its neighbour of odd bits, which is no tie of shorter types.
  if (SINGLE[0] !== value && (word & 1) === 0) {
    word += Math.abs(SINGLE[0]) < Math.abs(value) ? 1 : -1;
  }
  const last = 2 ** bits;
  const half = last / 2 - 1 + (Math.floor(word / last) & 1);
  BITS[0] = Math.floor((word + half) / last) * last;
  return SINGLE[0];
}
