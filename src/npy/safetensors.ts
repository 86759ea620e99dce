import { InputRangeError, InputSyntaxError, InputTypeError } from "../errors.ts";
import { printableCell } from "../printable.ts";
import { type DType, dtypeBytes } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type ByteSource, readExactly } from "./bytes.ts";
import type { NpyHeader } from "./header.ts";
import { isSafetensorsPath } from "./npz_path.ts";

/** A header of more bytes is none; a network of ten thousand tensors has 2 MiB. */
const MAX_JSON_BYTES = 32 << 20;
/** Bytes of the header's length, which the file begins with. */
const LENGTH_BYTES = 8;

/** The format's names of element types. */
const DTYPES: Readonly<Record<string, DType>> = {
  F64: "f64",
  F32: "f32",
  F16: "f16",
  BF16: "bf16",
  I64: "i64",
  I32: "i32",
  I16: "i16",
  I8: "i8",
  U64: "u64",
  U32: "u32",
  U16: "u16",
  U8: "u8",
  BOOL: "bool",
};

/** The format's name of a type. */
export function safetensorsDType(dtype: DType): string {
  return Object.keys(DTYPES).find((name) => DTYPES[name] === dtype)!;
}

/** A tensor of a file: where it lies, and its header; without one where no tensor here has its type. */
interface SafetensorsEntry {
  readonly said: { readonly dtype: string; readonly shape: readonly number[] };
  /** Of the file. */
  readonly begin: number;
  readonly bytes: number;
  readonly header: NpyHeader | undefined;
}

/** What a file holds. */
export interface Safetensors {
  readonly members: ReadonlyMap<string, SafetensorsEntry>;
  /** Texts that describe the file. */
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

/** Whether a path, or the first bytes of a file, are of safetensors: a length, then an object. */
export function isSafetensors(path: string, start: Uint8Array): boolean {
  if (isSafetensorsPath(path)) return true;
  return start.length > LENGTH_BYTES && start[5] === 0 && start[6] === 0 && start[7] === 0 &&
    start[LENGTH_BYTES] === "{".charCodeAt(0);
}

/**
 * Reads the header of a file and holds it against the rules of the format: every byte of the data belongs to one tensor.
 *
 * @throws {SyntaxError | RangeError} where it breaks them.
 */
export async function readSafetensors(bytes: ByteSource, path: string): Promise<Safetensors> {
  const refuse = (what: string) => new InputSyntaxError(`Cannot read ${path}: ${what}`);
  const start = new Uint8Array(LENGTH_BYTES);
  await readExactly(bytes, start, 0, path);
  const length = new DataView(start.buffer).getBigUint64(0, true);
  if (length > BigInt(Math.min(MAX_JSON_BYTES, bytes.size - LENGTH_BYTES))) {
    throw refuse(
      `byte 0: expected the length of a header of safetensors, at most ` +
        `${Math.min(MAX_JSON_BYTES, bytes.size - LENGTH_BYTES)} here, found ${length}`,
    );
  }
  const text = new Uint8Array(Number(length));
  await readExactly(bytes, text, LENGTH_BYTES, path);
  const { __metadata__: metadata, ...tensors } = parseHeader(text, refuse);
  const dataStart = LENGTH_BYTES + text.length;
  const entries = Object.entries(tensors)
    .map(([name, said]) => [name, readEntry(name, said, dataStart, refuse)] as const)
    .sort(([, one], [, other]) => one.begin - other.begin || one.bytes - other.bytes);
  let end = dataStart;
  for (const [name, { begin, bytes }] of entries) {
    if (begin !== end) {
      throw refuse(`${printableCell(name)} begins at byte ${begin}, expected ${end}`);
    }
    end += bytes;
  }
  if (end !== bytes.size) {
    throw refuse(`its tensors end at byte ${end}, the file at byte ${bytes.size}`);
  }
  return { members: new Map(entries), metadata: metadata as Safetensors["metadata"] };
}

type Refuse = (what: string) => InputSyntaxError;

/** @throws {SyntaxError} unless the text is a JSON object of objects. */
function parseHeader(text: Uint8Array, refuse: Refuse): Record<string, object> {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) {
      const wrong = Object.entries(parsed).find(([, value]) =>
        typeof value !== "object" || value === null
      );
      if (wrong === undefined) return parsed as Record<string, object>;
    }
  } catch (error) {
    // JSON's own error, or one of the decoder's.
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
  throw refuse(`byte ${LENGTH_BYTES}: expected a header of safetensors, a JSON object of objects`);
}

function readEntry(
  name: string,
  said: { dtype?: unknown; shape?: unknown; data_offsets?: unknown },
  dataStart: number,
  refuse: Refuse,
): SafetensorsEntry {
  const { dtype, shape, data_offsets: offsets } = said;
  const counts = (value: unknown): value is number[] =>
    Array.isArray(value) && value.every((one) => Number.isSafeInteger(one) && one >= 0);
  if (typeof dtype !== "string" || !counts(shape) || !counts(offsets) || offsets.length !== 2) {
    throw refuse(`${printableCell(name)} lacks its dtype, shape or data_offsets`);
  }
  const [first, end] = offsets as [number, number];
  const own = Object.hasOwn(DTYPES, dtype) ? DTYPES[dtype]! : undefined;
  const expected = own === undefined
    ? end - first
    : shape.includes(0)
    ? 0
    : elementCount(shape) * dtypeBytes(own);
  if (end < first || end - first !== expected || !Number.isSafeInteger(dataStart + end)) {
    throw refuse(
      `${printableCell(name)} has ${end - first} bytes of data, ` +
        `expected ${expected} ([${shape.slice(0, 9)}] ${printableCell(dtype)})`,
    );
  }
  const begin = dataStart + first;
  return {
    said: { dtype, shape },
    begin,
    bytes: expected,
    header: own && {
      version: [1, 0],
      format: "safetensors",
      dtype: own,
      littleEndian: true,
      fortranOrder: false,
      shape,
      dataOffset: begin,
    },
  };
}

/**
 * The header of a file's tensor.
 *
 * @throws {TypeError} where its type is none of a tensor's here.
 */
export function headerOf({ header, said }: SafetensorsEntry, path: string): NpyHeader {
  if (header !== undefined) return header;
  throw new InputTypeError(
    `Cannot read ${path}: expected numbers such as F32, found ${printableCell(said.dtype)}: ` +
      "convert it with tensor.to(torch.float32) in Python",
  );
}

/**
 * The text of a header with its length in front; data follows it at a multiple of 8 bytes.
 *
 * @throws {RangeError} for a header that no reader takes.
 */
export function encodeSafetensors(
  members: readonly (readonly [
    name: string,
    { readonly dtype: string; readonly shape: readonly number[]; readonly bytes: number },
  ])[],
  metadata: Safetensors["metadata"],
  path: string,
): Uint8Array<ArrayBuffer> {
  let end = 0;
  const tensors = members.map(([name, { dtype, shape, bytes }]) => {
    const begin = end;
    end += bytes;
    return [name, { dtype, shape, data_offsets: [begin, end] }];
  });
  const all = metadata === undefined ? tensors : [["__metadata__", metadata], ...tensors];
  const text = new TextEncoder().encode(JSON.stringify(Object.fromEntries(all)));
  const length = Math.ceil(text.length / 8) * 8;
  if (length > MAX_JSON_BYTES) {
    throw new InputRangeError(
      `Cannot write ${path}: its header has ${length} bytes, at most ${MAX_JSON_BYTES} are read`,
    );
  }
  const header = new Uint8Array(LENGTH_BYTES + length).fill(" ".charCodeAt(0));
  new DataView(header.buffer).setBigUint64(0, BigInt(length), true);
  header.set(text, LENGTH_BYTES);
  return header;
}
