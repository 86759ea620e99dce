import { InputRangeError, InputSyntaxError, InputTypeError } from "../errors.ts";
import { storedBytes } from "../tensor/convert.ts";
import { type DType, dtypeBytes } from "../tensor/dtype.ts";
import { elementCount, type Tensor } from "../tensor/tensor.ts";
import type { ByteSource } from "./bytes.ts";
import { type Literal, parseLiteral } from "./python_literal.ts";

const KIND_BYTES = 512;

const PICTURE = "save its pixels by np.save(name, np.asarray(picture))";
const PICKLE = "load it in Python and np.save its arrays, or safetensors.torch.save_file them";

/** First bytes of files that are taken for tensors, what such a file is, and what to do with it. */
const KINDS: readonly (readonly [start: RegExp, kind: string, next: string])[] = [
  [/^\x89PNG\r\n/, "a PNG picture", PICTURE],
  [/^\xff\xd8\xff/, "a JPEG picture", PICTURE],
  [/^GIF8[79]a/, "a GIF picture", PICTURE],
  [/^BM.{4}\0{4}/s, "a BMP picture", PICTURE],
  [/^(II\*\0|MM\0\*)/, "a TIFF picture", PICTURE],
  [/^RIFF.{4}WEBP/s, "a WebP picture", PICTURE],
  [/^\x89HDF\r\n/, "an HDF5 file", "np.save its data sets, as h5py reads them"],
  [/^MATLAB \d/, "a MATLAB file", "np.save its arrays, as scipy.io.loadmat reads them"],
  // Protocols 2 to 5.
  [/^\x80[\cB-\cE]/, "a pickle, such as older .pt files of PyTorch", PICKLE],
  // Its method, deflate, is 8, the backspace.
  [/^\p{Cc}\x8b[\b]/u, "a gzip file", "unpack it by gunzip"],
  [/^version https:\/\/git-lfs/, "a pointer of Git LFS", "git lfs pull gets the file"],
  [
    /^[\t\n\r\x20-\x7e]+$/,
    "text",
    "np.save(name, np.loadtxt(text)) where it is of numbers",
  ],
];

/** `a PNG picture: save its pixels …`: what the first bytes of a file are and what to do with it; undefined where nothing tells. */
export function fileKind(bytes: Uint8Array): string | undefined {
  const start = Array.from(bytes.subarray(0, KIND_BYTES), (byte) => String.fromCharCode(byte));
  const found = KINDS.find(([pattern]) => pattern.test(start.join("")));
  return found && `${found[1]}: ${found[2]}`;
}

/**
 * Every name that `numpy.dtype()` takes for each supported type, first the one that `.npy` headers use. A byte order may
 * stand in front of one and two characters. `l` and `long` have 64 bits, as on Linux and macOS. bf16 has the name that
 * ml_dtypes writes, and its own.
 */
const NAMES: { readonly [D in DType]: string } = {
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
function npyDescr(dtype: DType): string {
  return `${dtypeBytes(dtype) === 1 ? "|" : "<"}${NAMES[dtype].split(" ")[0]}`;
}

/** The type of each name. */
export const DTYPE_NAMES: ReadonlyMap<string, DType> = new Map(
  Object.entries(NAMES).flatMap(([dtype, names]) =>
    names.split(" ").map((name) => [name, dtype as DType] as const)
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
function unsupportedDType(code: string): string {
  const [, what, then] = OTHERS.find(([names]) => names.test(code)) ??
    ["", "none of NumPy's numbers", "np.save x.astype('f4')"];
  return ` (${what}): ${then}`;
}

/** What the header of a `.npy` file says. */
export interface NpyHeader {
  /** Of the format: 1.0, 2.0 or 3.0. */
  readonly version: [major: number, minor: number];
  /** Of the file, where it is no `.npy`. */
  readonly format?: "safetensors";
  /** Of the elements. */
  readonly dtype: DType;
  /** Byte order of the data; true for one-byte dtypes. */
  readonly littleEndian: boolean;
  /** First axis fastest in the data; `shape` is the logical one all the same. */
  readonly fortranOrder: boolean;
  /** Sizes as NumPy shows them; empty for a scalar. */
  readonly shape: number[];
  /** Bytes before the data. */
  readonly dataOffset: number;
}

/** Bytes that hold any header we accept: the magic, the longest length field, the longest text. */
export const MAX_HEADER_BYTES = 12 + 10_000;

const MAX_TEXT_BYTES = 10_000;
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const KEYS = ["descr", "fortran_order", "shape"];

/** How the data of a file is taken. */
export interface HeaderOptions {
  /** Takes what stands for two bytes of any meaning (`uint16`, `int16`, `V2`) as this type. */
  readonly as?: "bf16" | undefined;
}

/** Whether `bytes` begin as a `.npy` file does. */
export async function isNpy(bytes: ByteSource): Promise<boolean> {
  const start = new Uint8Array(MAGIC.length);
  return await bytes.read(start, 0) === start.length &&
    MAGIC.every((byte, at) => start[at] === byte);
}

/**
 * Parses the header at the start of `bytes`, which need hold no more than
 * {@linkcode MAX_HEADER_BYTES}. `path` stands in the messages of errors. The dtype goes by any name that NumPy takes for
 * it, or is bf16 as ml_dtypes writes it.
 *
 * @throws {SyntaxError} for bytes that are no `.npy` header.
 * @throws {TypeError} for dtypes that no tensor holds: objects (pickles), structures, complex numbers, strings.
 * @throws {RangeError} for a shape with a negative size, or of too many elements to count, and for headers over 10 kB.
 */
export function parseNpyHeader(
  bytes: Uint8Array,
  path: string,
  options: HeaderOptions = {},
): NpyHeader {
  const refusal = (at: number, text: string) => `Cannot read ${path}: byte ${at}: expected ${text}`;
  MAGIC.forEach((byte, at) => {
    if (bytes[at] !== byte) {
      const found = at < bytes.length
        ? (at === 0 && fileKind(bytes)) || "other bytes"
        : "the end of the file";
      throw new InputSyntaxError(
        refusal(at, `the magic "\\x93NUMPY" of a .npy file, found ${found}`),
      );
    }
  });
  const [major, minor] = [bytes[6], bytes[7]];
  if (major === undefined || minor === undefined || major < 1 || major > 3 || minor !== 0) {
    const found = minor === undefined ? "the end of the file" : `${major}.${minor}`;
    throw new InputSyntaxError(refusal(6, `format version 1.0, 2.0 or 3.0, found ${found}`));
  }
  const textStart = major === 1 ? 10 : 12;
  if (bytes.length < textStart) {
    throw new InputSyntaxError(refusal(8, "the length of the header, found the end of the file"));
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const textBytes = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (textBytes > MAX_TEXT_BYTES) {
    throw new InputRangeError(
      refusal(8, `a header of at most ${MAX_TEXT_BYTES} bytes, found ${textBytes}`),
    );
  }
  const dataOffset = textStart + textBytes;
  if (bytes.length < dataOffset) {
    throw new InputSyntaxError(
      refusal(bytes.length, `a header of ${textBytes} bytes, found the end of the file`),
    );
  }
  // A character a byte, whatever the version's encoding: what we accept is ASCII, and offsets stay true.
  const text = Array.from(bytes.subarray(textStart, dataOffset), (b) => String.fromCharCode(b));
  const entries = parseEntries(text.join(""), textStart, path);
  const { dtype, littleEndian } = readDescr(entries.descr, options, refusal);
  const shape = readShape(entries.shape, dtype, refusal);
  const order = entries.fortran_order;
  if (order.kind !== "name" || order.value === "None") {
    throw new InputSyntaxError(refusal(order.at, "True or False for fortran_order"));
  }
  const fortranOrder = order.value === "True";
  return { version: [major, minor], dtype, littleEndian, fortranOrder, shape, dataOffset };
}

type Refusal = (at: number, text: string) => string;

function parseEntries(text: string, at: number, path: string) {
  let literal: Literal;
  try {
    literal = parseLiteral(text, at);
  } catch (error) {
    if (!(error instanceof InputSyntaxError)) throw error;
    throw new InputSyntaxError(`Cannot read ${path}: ${error.message}`);
  }
  const keys = literal.kind === "dict" ? [...literal.entries.keys()].sort() : [];
  if (literal.kind !== "dict" || keys.join() !== KEYS.join()) {
    const found = literal.kind === "dict"
      ? `the keys ${keys.join(", ") || "of none"}`
      : literal.kind;
    throw new InputSyntaxError(
      `Cannot read ${path}: byte ${literal.at}: expected a dict of ${
        KEYS.join(", ")
      }, found ${found}`,
    );
  }
  const { entries } = literal;
  return {
    descr: entries.get("descr")!,
    fortran_order: entries.get("fortran_order")!,
    shape: entries.get("shape")!,
  };
}

function readDescr(
  descr: Literal,
  { as }: HeaderOptions,
  refusal: Refusal,
): { dtype: DType; littleEndian: boolean } {
  if (descr.kind === "list" || descr.kind === "tuple") {
    throw new InputTypeError(
      refusal(descr.at, "numbers, found structures: save each field apart, as x['name']"),
    );
  }
  if (descr.kind !== "string") {
    throw new InputSyntaxError(refusal(descr.at, `the dtype as a string, found ${descr.kind}`));
  }
  const [, order, code] = /^([<>|=]?)(.*)$/s.exec(descr.value)!;
  const known = DTYPE_NAMES.get(descr.value) ?? (code!.length <= 2 && DTYPE_NAMES.get(code!));
  const littleEndian = order !== ">";
  const bits = known === "u16" || known === "i16" || code === "V2";
  if (as !== undefined && bits) return { dtype: as, littleEndian };
  // NumPy's own V2 has no byte order: it may be anything of two bytes.
  if (!known || (code === "V2" && order !== "<" && order !== ">")) {
    throw new InputTypeError(
      refusal(
        descr.at,
        `numbers such as '<f4', found ${shown(descr.value)}${unsupportedDType(code!)}`,
      ),
    );
  }
  return { dtype: known, littleEndian: littleEndian || dtypeBytes(known) === 1 };
}

function shown(descr: string): string {
  return `'${descr.length > 20 ? `${descr.slice(0, 20)}…` : descr}'`;
}

function readShape(shape: Literal, dtype: DType, refusal: Refusal): number[] {
  if (shape.kind !== "tuple") {
    throw new InputSyntaxError(refusal(shape.at, `the shape as a tuple, found ${shape.kind}`));
  }
  const sizes = shape.items.map((item) => {
    if (item.kind !== "integer") {
      throw new InputSyntaxError(refusal(item.at, `a size as an integer, found ${item.kind}`));
    }
    if (item.value < 0 || !Number.isSafeInteger(item.value)) {
      throw new InputRangeError(refusal(item.at, `a size from 0 to 2^53 - 1, found ${item.value}`));
    }
    return item.value;
  });
  const bytes = sizes.includes(0) ? 0 : elementCount(sizes) * dtypeBytes(dtype);
  if (!Number.isSafeInteger(bytes)) {
    throw new InputRangeError(
      refusal(shape.at, `a shape of fewer than 2^53 bytes, found [${sizes}]`),
    );
  }
  return sizes;
}

/**
 * The header that NumPy's `np.save` writes before little-endian data in C order: version 1, with
 * room to grow the first axis in place, padded so that the data starts at a multiple of 64 bytes.
 *
 * @throws {RangeError} when the shape has too many axes for the header to hold.
 */
export function encodeNpyHeader(
  dtype: DType,
  shape: readonly number[],
): Uint8Array<ArrayBuffer> {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const dict = `{'descr': '${npyDescr(dtype)}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const growth = shape.length > 0 ? Math.max(0, 21 - String(shape[0]).length) : 0;
  const used = dict.length + growth;
  // As NumPy pads: a whole 64 bytes where none were needed.
  const padding = 64 - (10 + used + 1) % 64;
  const text = dict + " ".repeat(growth + padding) + "\n";
  if (text.length > MAX_TEXT_BYTES) {
    throw new InputRangeError(`Cannot write a .npy header: ${shape.length} axes do not fit`);
  }
  const header = new Uint8Array(10 + text.length);
  header.set([...MAGIC, 1, 0, text.length & 0xff, text.length >> 8]);
  for (let i = 0; i < text.length; i++) header[10 + i] = text.charCodeAt(i);
  return header;
}

const PIECE = 4 << 20;

/** The bytes of a tensor's `.npy` file in pieces of some MiB; the data is not copied but of bf16. */
export function* npyBytes({ dtype, shape, data }: Tensor): Generator<Uint8Array> {
  yield encodeNpyHeader(dtype, shape);
  const size = PIECE / data.BYTES_PER_ELEMENT;
  for (let start = 0; start < data.length; start += size) {
    yield storedBytes(dtype, data.subarray(start, start + size));
  }
}
