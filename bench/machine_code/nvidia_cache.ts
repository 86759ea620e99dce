/**
 * NVIDIA's machine code in what its driver caches of a pipeline: objects (ELF, or the driver's own `NVuc`) that lie anywhere
 * in it, bare or packed by zstd or zlib, found by their magic numbers.
 */
import zlib from "node:zlib";

type Bytes = Uint8Array<ArrayBuffer>;

/** A piece of code for nvdisasm. */
interface CodeObject {
  /** A whole ELF file, or bare instructions. */
  readonly kind: "elf" | "code";
  readonly data: Bytes;
}

const view = (bytes: Bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const ELF = 0x464c457f; // 7f E L F
const NVUC = 0x6375564e; // N V u c
const ZSTD = 0xfd2fb528;

/** Objects in a cache's bytes, in their order; packed ones are unpacked, three times at most. */
export function codeObjects(bytes: Bytes, depth = 0): CodeObject[] {
  const at = view(bytes);
  const found: CodeObject[] = [];
  for (let i = 0; i + 64 <= bytes.length;) {
    const rest = bytes.subarray(i);
    const magic = at.getUint32(i, true);
    const object = magic === ELF
      ? elfObject(rest)
      : magic === NVUC
      ? driverObject(rest)
      : undefined;
    if (object !== undefined) {
      found.push(...object.codes);
      i += object.length;
      continue;
    }
    const inner = depth < 3 ? unpacked(rest, magic) : undefined;
    if (inner !== undefined) found.push(...codeObjects(inner, depth + 1));
    i += inner === undefined ? 1 : 4;
  }
  return found;
}

/** A 64-bit ELF file at the start of the bytes, if there is one. */
function elfObject(bytes: Bytes): { codes: CodeObject[]; length: number } | undefined {
  const at = view(bytes);
  const sections = Number(at.getBigUint64(0x28, true));
  const size = at.getUint16(0x3a, true);
  const count = at.getUint16(0x3c, true);
  const end = sections + size * count;
  if (bytes[4] !== 2 || size !== 64 || count === 0 || end > bytes.length) return undefined;
  let length = end;
  for (let i = 0; i < count; i++) {
    const header = sections + i * size;
    const type = at.getUint32(header + 4, true);
    const last = at.getBigUint64(header + 24, true) + at.getBigUint64(header + 32, true);
    // Sections of type 8 take no bytes of the file.
    if (type !== 8 && last <= bytes.length) length = Math.max(length, Number(last));
  }
  return { codes: [{ kind: "elf", data: bytes.slice(0, length) }], length };
}

/**
 * An object of the driver's: a header of 32 bytes with the number of sections, then 32 bytes a section with type, length and
 * offset. Sections that can be instructions, 16 bytes each, are given, those of type 1 first.
 */
function driverObject(bytes: Bytes): { codes: CodeObject[]; length: number } | undefined {
  const at = view(bytes);
  const count = at.getUint16(8, true);
  if (count === 0 || count > 256 || 32 + 32 * count > bytes.length) return undefined;
  const sections = Array.from({ length: count }, (_, i) => ({
    type: at.getUint32(32 + 32 * i, true),
    length: at.getUint32(36 + 32 * i, true),
    offset: at.getUint32(40 + 32 * i, true),
  }));
  const length = Math.max(...sections.map((one) => one.offset + one.length));
  if (length > bytes.length) return undefined;
  const codes = sections
    .filter((one) => one.length >= 128)
    .sort((one, other) => Number(other.type === 1) - Number(one.type === 1))
    .map((one): CodeObject => ({
      kind: "code",
      data: bytes.slice(one.offset, one.offset + one.length - one.length % 16),
    }));
  return { codes, length };
}

function unpacked(bytes: Bytes, magic: number): Bytes | undefined {
  try {
    if (magic === ZSTD) return new Uint8Array(zlib.zstdDecompressSync(bytes));
    const isZlib = bytes[0] === 0x78 && (0x7800 + bytes[1]!) % 31 === 0;
    return isZlib ? new Uint8Array(zlib.inflateSync(bytes)) : undefined;
  } catch {
    return undefined; // bytes that only look like it
  }
}
