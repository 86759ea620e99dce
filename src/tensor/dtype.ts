/** Element types of tensors, and the typed arrays that hold them. */

/** Element type. `bool` is one byte, 0 or 1, as in NumPy. */
export type DType =
  | "f16"
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

export interface TypedArrays {
  f16: Float16Array<ArrayBuffer>;
  f32: Float32Array<ArrayBuffer>;
  f64: Float64Array<ArrayBuffer>;
  i8: Int8Array<ArrayBuffer>;
  u8: Uint8Array<ArrayBuffer>;
  i16: Int16Array<ArrayBuffer>;
  u16: Uint16Array<ArrayBuffer>;
  i32: Int32Array<ArrayBuffer>;
  u32: Uint32Array<ArrayBuffer>;
  i64: BigInt64Array<ArrayBuffer>;
  u64: BigUint64Array<ArrayBuffer>;
  bool: Uint8Array<ArrayBuffer>;
}

/** Storage of a tensor of dtype `D`. */
export type TypedArrayOf<D extends DType> = TypedArrays[D];
export type TensorData = TypedArrays[DType];

interface ArrayConstructorOf<D extends DType> {
  new (length: number): TypedArrayOf<D>;
  new (buffer: ArrayBuffer, byteOffset?: number, length?: number): TypedArrayOf<D>;
  readonly BYTES_PER_ELEMENT: number;
}

const CONSTRUCTORS: { readonly [D in DType]: ArrayConstructorOf<D> } = {
  f16: Float16Array,
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

/** Whether `text` names a dtype. */
export function isDType(text: string): text is DType {
  return Object.hasOwn(CONSTRUCTORS, text);
}

/** Typed array constructor for `dtype`. */
export function arrayConstructor<D extends DType>(dtype: D): ArrayConstructorOf<D> {
  return CONSTRUCTORS[dtype];
}

/** Bytes per element. */
export function dtypeBytes(dtype: DType): number {
  return CONSTRUCTORS[dtype].BYTES_PER_ELEMENT;
}
