import { InputRangeError, InputSyntaxError } from "../errors.ts";
import { convertValues } from "../tensor/convert.ts";
import {
  arrayConstructor,
  type DType,
  dtypeBytes,
  type TensorData,
  type TypedArrayOf,
} from "../tensor/dtype.ts";
import { permute } from "../tensor/layout.ts";
import { elementCount, type Tensor, tensor } from "../tensor/tensor.ts";
import { type ByteSource, readExactly } from "./bytes.ts";
import { MAX_HEADER_BYTES, type NpyHeader, parseNpyHeader } from "./header.ts";

/** A tensor that is described but not read yet. */
export interface TensorSource extends Disposable {
  /** As it stands in messages. */
  readonly path: string;
  /** Of the elements. */
  readonly dtype: DType;
  /** Sizes in C order. */
  readonly shape: readonly number[];
  /** What its header says; absent where the tensor comes from elsewhere. */
  readonly header?: NpyHeader;
  /** Reads the whole tensor. */
  read(): Promise<Tensor>;
  /** Reads the whole tensor as `dtype`; see `convertDType()` for what is refused. */
  readAs<D extends DType>(dtype: D): Promise<Tensor<D>>;
  /**
   * The values as `dtype` in C order, at most `maxElements` (about 4 MiB) at a time. A chunk's memory
   * is used again for the next one. Only Fortran order needs the whole tensor in memory.
   */
  chunksAs<D extends DType>(dtype: D, maxElements?: number): AsyncIterable<TypedArrayOf<D>>;
  /** Closes what it is read from; further reads fail. */
  close(): void;
}

const CHUNK_BYTES = 4 << 20;

/**
 * Reads the header of the `.npy` file in `bytes` and checks their number. The source owns `bytes`
 * and closes them, also when this throws.
 *
 * @throws {SyntaxError | TypeError | RangeError} as `parseNpyHeader()`; `SyntaxError` for data that is short or trailing.
 */
export async function npySource(bytes: ByteSource, path: string): Promise<TensorSource> {
  try {
    const start = new Uint8Array(Math.min(bytes.size, MAX_HEADER_BYTES));
    await readExactly(bytes, start, 0, path);
    const header = parseNpyHeader(start, path);
    checkSize(bytes.size, header, path);
    return new NpySource(bytes, path, header);
  } catch (error) {
    bytes.close();
    throw error;
  }
}

/** Bytes of the file that begins with a header. */
export function npyFileBytes({ dtype, shape, dataOffset }: NpyHeader): number {
  // Zeros last, lest sizes that no number holds multiply first.
  const count = shape.includes(0) ? 0 : elementCount(shape);
  return dataOffset + count * dtypeBytes(dtype);
}

function checkSize(size: number, header: NpyHeader, path: string): void {
  const { dtype, shape, dataOffset } = header;
  const end = npyFileBytes(header);
  if (size === end) return;
  const data = `${end - dataOffset} bytes of data ([${shape}] ${dtype})`;
  throw new InputSyntaxError(
    size < end
      ? `Cannot read ${path}: byte ${size}: expected ${data}, found the end of the file after ${
        size - dataOffset
      }`
      : `Cannot read ${path}: byte ${end}: expected the end of the file after ${data}, found ${
        size - end
      } more bytes`,
  );
}

class NpySource implements TensorSource {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly #bytes: ByteSource;
  /** Whether the data lies in another order than C. */
  readonly #transposed: boolean;

  constructor(bytes: ByteSource, readonly path: string, readonly header: NpyHeader) {
    this.#bytes = bytes;
    this.dtype = header.dtype;
    this.shape = header.shape;
    this.#transposed = header.fortranOrder && header.shape.length > 1;
  }

  get #count(): number {
    return this.shape.includes(0) ? 0 : elementCount(this.shape);
  }

  read(): Promise<Tensor> {
    return this.readAs(this.dtype);
  }

  async readAs<D extends DType>(dtype: D): Promise<Tensor<D>> {
    const data = new (arrayConstructor(dtype))(this.#count);
    if (dtype === this.dtype) {
      await this.#fill(data, 0);
    } else {
      let offset = 0;
      for await (const chunk of this.#fileChunks(dtype, chunkElements(this.dtype, dtype))) {
        setAt(data, chunk, offset);
        offset += chunk.length;
      }
    }
    if (!this.#transposed) return tensor(dtype, this.shape, data);
    const axes = this.shape.map((_, axis) => axis).reverse();
    return permute(tensor(dtype, this.shape.toReversed(), data), axes);
  }

  async *chunksAs<D extends DType>(
    dtype: D,
    maxElements: number = chunkElements(this.dtype, dtype),
  ): AsyncGenerator<TypedArrayOf<D>, void, undefined> {
    if (!Number.isSafeInteger(maxElements) || maxElements < 1) {
      throw new InputRangeError(`Cannot read ${this.path} in chunks of ${maxElements} elements`);
    }
    if (!this.#transposed) return yield* this.#fileChunks(dtype, maxElements);
    const { data } = await this.readAs(dtype);
    for (let i = 0; i < data.length; i += maxElements) {
      yield data.subarray(i, i + maxElements) as TypedArrayOf<D>;
    }
  }

  /** The values as they follow each other in the file. */
  async *#fileChunks<D extends DType>(
    dtype: D,
    maxElements: number,
  ): AsyncGenerator<TypedArrayOf<D>, void, undefined> {
    const count = this.#count;
    const size = Math.min(count, maxElements);
    const raw: TensorData = new (arrayConstructor(this.dtype))(size);
    const converted = dtype === this.dtype ? undefined : new (arrayConstructor(dtype))(size);
    for (let start = 0; start < count; start += size) {
      const length = Math.min(size, count - start);
      const part = raw.subarray(0, length);
      await this.#fill(part, start);
      if (converted === undefined) {
        yield part as TypedArrayOf<D>;
      } else {
        const out = converted.subarray(0, length) as TypedArrayOf<D>;
        convertValues(part, this.dtype, out, dtype, { what: this.path, start });
        yield out;
      }
    }
  }

  /** Fills `into` with elements of the file from `start` on, in the host's byte order. */
  async #fill(into: TensorData, start: number): Promise<void> {
    const width = dtypeBytes(this.dtype);
    const bytes = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
    await readExactly(this.#bytes, bytes, this.header.dataOffset + start * width, this.path);
    if (!this.header.littleEndian) swapBytes(into.buffer, into.byteOffset, into.length, width);
    // NumPy writes 0 and 1, other programs any byte for true.
    if (this.dtype === "bool") bytes.forEach((byte, i) => bytes[i] = byte === 0 ? 0 : 1);
  }

  close(): void {
    this.#bytes.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function chunkElements(from: DType, to: DType): number {
  return CHUNK_BYTES / Math.max(dtypeBytes(from), dtypeBytes(to));
}

function setAt(into: TensorData, values: TensorData, offset: number): void {
  // Both have the same dtype, which the types cannot say.
  (into as Uint8Array).set(values as Uint8Array, offset);
}

/** Turns the byte order of `count` elements of `width` bytes around. */
function swapBytes(buffer: ArrayBuffer, byteOffset: number, count: number, width: number): void {
  if (width === 2) {
    const words = new Uint16Array(buffer, byteOffset, count);
    for (let i = 0; i < words.length; i++) words[i] = (words[i]! << 8) | (words[i]! >> 8);
    return;
  }
  const words = new Uint32Array(buffer, byteOffset, count * width / 4);
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    words[i] = (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
  }
  if (width === 4) return;
  for (let i = 0; i < words.length; i += 2) {
    const low = words[i]!;
    words[i] = words[i + 1]!;
    words[i + 1] = low;
  }
}
