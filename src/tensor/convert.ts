import { InputRangeError } from "../errors.ts";
import { arrayConstructor, type DType, type TensorData, type TypedArrayOf } from "./dtype.ts";
import { type Tensor, tensor } from "./tensor.ts";

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

/** Values of bf16 as f32, which holds them exactly. */
export function fromBf16(bits: Uint16Array, into: Float32Array): void {
  const words = new Uint32Array(into.buffer, into.byteOffset, into.length);
  for (let i = 0; i < bits.length; i++) words[i] = bits[i]! << 16;
}

/** Rounds values to bf16, once each. */
function roundToBf16(from: TensorData, into: Float32Array): void {
  for (let i = 0; i < from.length; i++) {
    const one = from[i]!;
    into[i] = bf16round(typeof one === "bigint" ? roundedToOdd(one) : one);
  }
}

/** Values as bits of bf16, each rounded once, to nearest even; what is too large becomes infinity, and NaN stays one. */
export function toBf16(values: TensorData): Uint16Array<ArrayBuffer> {
  const result = new Uint16Array(values.length);
  if (values instanceof Float32Array) {
    const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
    for (let i = 0; i < words.length; i++) {
      const word = words[i]!;
      const upper = word >>> 16;
      result[i] = (word & 0x7fffffff) <= 0x7f800000
        ? (word + 0x7fff + (upper & 1)) >>> 16
        // What of a NaN is in the upper half stays.
        : (upper & 0x7f) === 0
        ? upper | 0x40
        : upper;
    }
    return result;
  }
  const single = new Float32Array(1);
  const bits = new Uint32Array(single.buffer);
  for (let i = 0; i < values.length; i++) {
    const one = values[i]!;
    single[0] = bf16round(typeof one === "bigint" ? roundedToOdd(one) : one);
    result[i] = (bits[0]! >>> 16) | (Number.isNaN(single[0]) ? 0x40 : 0);
  }
  return result;
}

/** Elements as files and devices have them: a view, or a copy of bf16. */
export function storedBytes(dtype: DType, data: TensorData): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = dtype === "bf16" ? toBf16(data) : data;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Smallest value of an integer dtype, and the first one beyond its largest. */
interface Range {
  readonly min: number;
  readonly limit: number;
}

const RANGES: { readonly [D in DType]?: Range } = {
  i8: { min: -(2 ** 7), limit: 2 ** 7 },
  u8: { min: 0, limit: 2 ** 8 },
  i16: { min: -(2 ** 15), limit: 2 ** 15 },
  u16: { min: 0, limit: 2 ** 16 },
  i32: { min: -(2 ** 31), limit: 2 ** 31 },
  u32: { min: 0, limit: 2 ** 32 },
  i64: { min: -(2 ** 63), limit: 2 ** 63 },
  u64: { min: 0, limit: 2 ** 64 },
  bool: { min: 0, limit: 2 },
};

/** Integers up to this are numbers. */
const SAFE = 2n ** 53n;

/** Where values come from, for messages. */
interface Origin {
  readonly what: string;
  readonly start: number;
}

/**
 * Copies a tensor as another dtype; the same object when it has it already.
 *
 * As NumPy's `astype`: values round once, to nearest even, and overflow to infinity, floats lose their
 * fraction on the way to integers, and what is not zero (NaN too) is true. Unlike it, NaN, infinity
 * and values out of range of an integer dtype are refused, not wrapped.
 *
 * @throws {RangeError} for a value that `dtype` cannot hold, with its flat index.
 */
export function convertDType<D extends DType>(source: Tensor, dtype: D): Tensor<D> {
  if (source.dtype === dtype) return source as Tensor<D>;
  const data = new (arrayConstructor(dtype))(source.data.length);
  convertValues(source.data, source.dtype, data, dtype);
  return tensor(dtype, source.shape, data);
}

/**
 * Converts the values of `from` into the start of `to`, by the rules of {@linkcode convertDType}.
 *
 * @throws {RangeError} for a value that `dtype` cannot hold.
 */
export function convertValues<D extends DType>(
  from: TensorData,
  fromDType: DType,
  to: TypedArrayOf<D>,
  dtype: D,
  origin: Origin = { what: "the tensor", start: 0 },
): void {
  const out: TensorData = to;
  if (dtype === "bool") return toBool(from, out);
  if (out instanceof Float32Array && dtype === "bf16") return roundToBf16(from, out);
  const range = RANGES[dtype];
  const checked = range !== undefined && !fits(RANGES[fromDType], range);
  const refuse = (index: number) => {
    const { min, limit } = range!;
    throw new InputRangeError(
      `Cannot convert ${origin.what} to ${dtype}: element ${origin.start + index} is ${
        from[index]
      }, ${dtype} holds ${BigInt(min)} to ${BigInt(limit) - 1n}` +
        (fromDType === "u8" && dtype === "i8"
          ? "; subtract 128, or convolve, which takes u8 and zero points"
          : ""),
    );
  };
  if (out instanceof BigInt64Array || out instanceof BigUint64Array) {
    for (let i = 0; i < from.length; i++) {
      const value = from[i]!;
      const whole = typeof value === "bigint" ? value : truncated(value, range!);
      if (whole === undefined || whole < range!.min || whole >= range!.limit) return refuse(i);
      out[i] = whole;
    }
  } else if (from instanceof BigInt64Array || from instanceof BigUint64Array) {
    for (let i = 0; i < from.length; i++) {
      if (checked && !(from[i]! >= range.min && from[i]! < range.limit)) return refuse(i);
      out[i] = dtype === "f64" ? Number(from[i]) : roundedToOdd(from[i]!);
    }
  } else if (checked) {
    for (let i = 0; i < from.length; i++) {
      const whole = Math.trunc(from[i]!);
      if (!(whole >= range.min && whole < range.limit)) return refuse(i);
      out[i] = whole;
    }
  } else {
    out.set(from);
  }
}

/**
 * A 64-bit integer as a number that rounds to f32 and shorter types as the integer does. What f64 does not hold goes to
 * the neighbour of odd bits, which is no tie of theirs: nearest ones may be.
 */
function roundedToOdd(value: bigint): number {
  if (value >= -SAFE && value <= SAFE) return Number(value);
  // 53 bits are left, of which the last stands for all that were cut off.
  const cut = value & 0x7ffn;
  return Number(value - cut + (cut !== 0n && (value & 0x800n) === 0n ? 0x800n : 0n));
}

function toBool(from: TensorData, out: TensorData): void {
  for (let i = 0; i < from.length; i++) out[i] = from[i] === 0 || from[i] === 0n ? 0 : 1;
}

/** `value` without its fraction, or nothing where no integer of `range` is that. */
function truncated(value: number, { min, limit }: Range): bigint | undefined {
  const whole = Math.trunc(value);
  return whole >= min && whole < limit ? BigInt(whole) : undefined;
}

/** Whether every value of an integer dtype of range `inner` lies in `outer`. */
function fits(inner: Range | undefined, outer: Range): boolean {
  return inner !== undefined && inner.min >= outer.min && inner.limit <= outer.limit;
}
