/** NumPy's names of element types. */
import { dtypeBytes, type FileDType } from "../tensor/dtype.ts";

/**
 * Every name that `numpy.dtype()` takes for each supported type, first the one that `.npy` headers use. A byte order may
 * stand in front of one and two characters. `l` and `long` have 64 bits, as on Linux and macOS. bf16 has the name that
 * ml_dtypes writes, and its own.
 */
const NAMES: { readonly [D in FileDType]: string } = {
  f16: "f2 e float16 half",
  bf16: "V2 bfloat16",
  f32: "f4 f float32 single",
  f64: "f8 d float64 double float",
  i8: "i1 b int8 byte",
  u8: "u1 B uint8 ubyte",
  i16: "i2 h int16 short",
  u16: "u2 H uint16 ushort",
  i32: "i4 i int32 intc",
  u32: "u4 I uint32 uintc",
  i64: "i8 q l p n int64 longlong long int int_ intp",
  u64: "u8 Q L P N uint64 ulonglong ulong uint uintp",
  bool: "b1 ? bool bool_",
};

/** The descriptor that `np.save` writes for a type, in little-endian order. */
export function npyDescr(dtype: FileDType): string {
  return `${dtypeBytes(dtype) === 1 ? "|" : "<"}${NAMES[dtype].split(" ")[0]}`;
}

/** The type of each name. */
export const DTYPE_NAMES: ReadonlyMap<string, FileDType> = new Map(
  Object.entries(NAMES).flatMap(([dtype, names]) =>
    names.split(" ").map((name) => [name, dtype as FileDType] as const)
  ),
);

/** Other types of NumPy, what they hold, and how to save an array `x` of them as numbers. */
const OTHERS: readonly (readonly [names: RegExp, what: string, then: string])[] = [
  [/^(O|object)$/, "Python objects, a pickle", "np.save x.astype('f4') where they are numbers"],
  [/^([cFDG]|complex|csingle|cdouble)/, "complex numbers", "np.save x.real and x.imag apart"],
  [/^(f16|f12|g|longdouble|float128|float96)$/, "long doubles", "np.save x.astype('f8')"],
  [/^([USaT]|str|bytes)/, "text", "np.save x.astype('f4') where it is of numbers"],
  [/^([Mm]\d|datetime|timedelta)/, "times", "np.save x.astype('i8')"],
  [/^V2$/, "two bytes of no meaning", "--as bf16 takes them as bfloat16"],
  [/^V1$/, "8-bit floats or bytes", "np.save x.astype('f4')"],
  [/^V/, "bytes of no meaning", "np.save x.view() of what they are"],
];

/** What an unsupported type holds, and what to do: the end of a sentence. */
export function unsupportedDType(code: string): string {
  const [, what, then] = OTHERS.find(([names]) => names.test(code)) ??
    ["", "none of NumPy's numbers", "np.save x.astype('f4')"];
  return ` (${what}): ${then}`;
}
