import { roundedToOdd } from "./convert.ts";
import type { TensorData } from "./dtype.ts";
import { bf16round } from "./rounding.ts";

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
    single[0] = bf16round(typeof one === "bigint" ? roundedToOdd(one) : one);
    result[i] = (bits[0]! >>> 16) | (Number.isNaN(single[0]) ? 0x40 : 0);
  }
  return result;
}
