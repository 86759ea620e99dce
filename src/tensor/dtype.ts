/** Element types of tensors, and the typed arrays that hold them. */

/**
 * Element type. `bool` is one byte, 0 or 1, as in NumPy. `bf16`, the upper half of f32's bits, is that in files and on devices; no
 * array of JavaScript has it, so that a tensor of it is an array of f32, which holds its values exactly.
 */
export type DType =
  | "f16"
  | "bf16"
  | "f32"
  | "f64"
  | "i8"
  | "u8"
  | "i16"
  | "u16"
  | "i32"
  | "u32"
  | "i64"
  | "u64"
  | "bool";

/** The typed array that holds a tensor of each dtype. */
export interface TypedArrays {
  /** Two bytes. */
  f16: Float16Array<ArrayBuffer>;
  /** Four bytes, of which the lower two are 0. */
  bf16: Float32Array<ArrayBuffer>;
  /** Four bytes. */
  f32: Float32Array<ArrayBuffer>;
  /** Eight bytes. */
  f64: Float64Array<ArrayBuffer>;
  /** One byte, signed. */
  i8: Int8Array<ArrayBuffer>;
  /** One byte. */
  u8: Uint8Array<ArrayBuffer>;
  /** Two bytes, signed. */
  i16: Int16Array<ArrayBuffer>;
  /** Two bytes. */
  u16: Uint16Array<ArrayBuffer>;
  /** Four bytes, signed. */
  i32: Int32Array<ArrayBuffer>;
  /** Four bytes. */
  u32: Uint32Array<ArrayBuffer>;
  /** Eight bytes, signed. */
  i64: BigInt64Array<ArrayBuffer>;
  /** Eight bytes. */
  u64: BigUint64Array<ArrayBuffer>;
  /** One byte, 0 or 1. */
  bool: Uint8Array<ArrayBuffer>;
}

/** Storage of a tensor of dtype `D`. */
export type TypedArrayOf<D extends DType> = TypedArrays[D];
/** Storage of a tensor of any dtype. */
export type TensorData = TypedArrays[DType];

/** Makes the typed array of a dtype. */
export interface ArrayConstructorOf<D extends DType> {
  /** Zeros. */
  new (length: number): TypedArrayOf<D>;
  /** A view of a buffer, from a byte on. */
  new (buffer: ArrayBuffer, byteOffset?: number, length?: number): TypedArrayOf<D>;
  /** Bytes of an element. */
  readonly BYTES_PER_ELEMENT: number;
}

const CONSTRUCTORS: { readonly [D in DType]: ArrayConstructorOf<D> } = {
  f16: Float16Array,
  bf16: Float32Array,
  f32: Float32Array,
  f64: Float64Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  bool: Uint8Array,
};

/** All dtypes, in the order help texts list them. */
export const DTYPES: readonly DType[] = Object.keys(CONSTRUCTORS) as DType[];

/** Typed array constructor for `dtype`. */
export function arrayConstructor<D extends DType>(dtype: D): ArrayConstructorOf<D> {
  return CONSTRUCTORS[dtype];
}

/** The dtype of an array; u8 of bytes, which may also be of bool, and f32 of what may be bf16. */
export function dtypeOf(data: TensorData): DType {
  return DTYPES.find((dtype) => dtype !== "bf16" && data instanceof CONSTRUCTORS[dtype])!;
}

/** Bytes per element of files and on devices. */
export function dtypeBytes(dtype: DType): number {
  return dtype === "bf16" ? 2 : CONSTRUCTORS[dtype].BYTES_PER_ELEMENT;
}
