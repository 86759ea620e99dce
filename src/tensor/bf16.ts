import { roundedToOdd } from "./convert.ts";
import type { TensorData } from "./dtype.ts";

/** Values of bf16 as f32, which holds them exactly. */
export function fromBf16(bits: Uint16Array, into: Float32Array): void {
  const words = new Uint32Array(into.buffer, into.byteOffset, into.length);
  for (let i = 0; i < bits.length; i++) words[i] = bits[i]! << 16;
}

/** Values as bits of bf16, each rounded once, to nearest even; what is too large becomes infinity, and NaN stays one. */
export function toBf16(values: TensorData): Uint16Array<ArrayBuffer> {
  const result = new Uint16Array(values.length);
  const single = new Float32Array(1);
  const bits = new Uint32Array(single.buffer);
  for (let i = 0; i < values.length; i++) {
    const one = values[i]!;
    const value = typeof one === "bigint" ? roundedToOdd(one) : one;
    single[0] = value;
    let word = bits[0]!;
    if (Number.isNaN(value)) {
      result[i] = (word >>> 16) | 0x40;
      continue;
    }
    // What f32 does not hold goes to its neighbour of odd bits, which is no tie of bf16.
    if (single[0] !== value && (word & 1) === 0) {
      word += Math.abs(single[0]!) < Math.abs(value) ? 1 : -1;
    }
    result[i] = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return result;
}
