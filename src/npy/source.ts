import { InputRangeError, InputSyntaxError } from "../errors.ts";
import { convertValues, fromBf16 } from "../tensor/convert.ts";
import {
  arrayConstructor,
  type DType,
  dtypeBytes,
  type TensorData,
  type TypedArrayOf,
} from "../tensor/dtype.ts";
import { permute } from "../tensor/layout.ts";
import { elementCount, type Tensor, tensor } from "../tensor/tensor.ts";
import { type ByteSource, memoryBytes, readExactly, unowned } from "./bytes.ts";
import { type HeaderOptions, MAX_HEADER_BYTES, type NpyHeader, parseNpyHeader } from "./header.ts";

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
  readAs<D extends DType>(dtype: D, options?: ReadOptions): Promise<Tensor<D>>;
  /**
   * The values as `dtype` in C order, at most `maxElements` (about 16 MiB) at a time. A chunk's memory
   * is used again for the next one. Only Fortran order needs the whole tensor in memory.
   */
  chunksAs<D extends DType>(dtype: D, maxElements?: number): AsyncIterable<TypedArrayOf<D>>;
  /**
   * The part of the tensor from `first` on along an axis, which closes nothing: `count` entries, zeros beyond the last
   * one there is. Parts that are read one after the other need no more of a file than it has in sequence.
   */
  part(axis: number, first: number, count: number): TensorPart;
  /** Closes what it is read from; further reads fail. */
  close(): void;
}

/** Where a tensor is read to. */
export interface ReadOptions {
  /** Into memory that workers share, where it lies in C order. */
  readonly shared?: boolean;
}

/** A part of a tensor's source. */
export interface TensorPart extends Omit<TensorSource, "part"> {
  /** Bytes that follow each other in the file. */
  readonly runBytes: number;
}

interface Span {
  readonly axis: number;
  readonly first: number;
  readonly count: number;
}

const CHUNK_BYTES = 16 << 20;

/**
 * Reads the header of the `.npy` file in `bytes` and checks their number. The source owns `bytes`
 * and closes them, also when this throws.
 *
 * @throws {SyntaxError | TypeError | RangeError} as `parseNpyHeader()`; `SyntaxError` for data that is short or trailing.
 */
export async function npySource(
  bytes: ByteSource,
  path: string,
  options: HeaderOptions = {},
): Promise<TensorSource> {
  try {
    const start = new Uint8Array(Math.min(bytes.size, MAX_HEADER_BYTES));
    await readExactly(bytes, start, 0, path);
    const header = parseNpyHeader(start, path, options);
    checkSize(bytes.size, header, path);
    return new NpySource(bytes, path, header);
  } catch (error) {
    bytes.close();
    throw error;
  }
}

/** The tensor that a header describes, which lies within `bytes`. The source owns them. */
export function headedSource(bytes: ByteSource, path: string, header: NpyHeader): TensorSource {
  return new NpySource(bytes, path, header);
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
  /** What its data is read as: bits of what no array has. */
  readonly #raw: DType;
  readonly shape: readonly number[];
  readonly #bytes: ByteSource;
  /** Memory of chunks that were read, which later ones are read into: the kernel makes new memory slower than it reads. */
  readonly #free: ArrayBuffer[];
  /** Whether the data lies in another order than C. */
  readonly #transposed: boolean;
  /** Elements of a run of what is read, where runs begin in the file, and how much of one is in the file. */
  readonly #run: number;
  readonly #stride: number;
  readonly #first: number;
  readonly #there: number;

  constructor(
    bytes: ByteSource,
    readonly path: string,
    readonly header: NpyHeader,
    span?: Span,
    free: ArrayBuffer[] = [],
  ) {
    this.#bytes = bytes;
    this.#free = free;
    this.dtype = header.dtype;
    this.#raw = header.dtype === "bf16" ? "u16" : header.dtype;
    this.#transposed = header.fortranOrder && header.shape.length > 1;
    const sizes = this.#transposed ? header.shape.toReversed() : header.shape;
    const { axis, first, count } = span ?? { axis: 0, first: 0, count: sizes[0] ?? 1 };
    const inner = sizes.slice(axis + 1).reduce((product, size) => product * size, 1);
    const size = sizes[axis] ?? 1;
    this.#run = count * inner;
    this.#stride = size * inner;
    this.#first = first * inner;
    this.#there = Math.max(0, Math.min(count, size - first)) * inner;
    const own = sizes.length === 0 ? sizes : sizes.with(axis, count);
    this.shape = this.#transposed ? own.toReversed() : own;
  }

  get #count(): number {
    return this.shape.includes(0) ? 0 : elementCount(this.shape);
  }

  /** Bytes that follow each other in the file. */
  get runBytes(): number {
    return this.#run * dtypeBytes(this.#raw);
  }

  part(axis: number, first: number, count: number): TensorPart {
    const own = this.#transposed ? this.shape.length - 1 - axis : axis;
    const span = { axis: own, first, count };
    return new NpySource(unowned(this.#bytes), this.path, this.header, span, this.#free);
  }

  read(): Promise<Tensor> {
    return this.readAs(this.dtype);
  }

  async readAs<D extends DType>(
    dtype: D,
    { shared = false }: ReadOptions = {},
  ): Promise<Tensor<D>> {
    const data = newArray(dtype, this.#count, shared && !this.#transposed);
    if (dtype === this.#raw && dtype === this.dtype) {
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

  /** The values as they follow each other in the file; the next ones are read while the caller has some. */
  async *#fileChunks<D extends DType>(
    dtype: D,
    maxElements: number,
  ): AsyncGenerator<TypedArrayOf<D>, void, undefined> {
    const count = this.#count;
    const size = Math.min(count, maxElements);
    const make = () => this.#chunkMemory(size);
    let raw = make();
    let other = size < count ? make() : raw;
    const same = dtype === this.#raw && dtype === this.dtype;
    const converted = same ? undefined : new (arrayConstructor(dtype))(size);
    const begin = async (into: TensorData, start: number) => {
      const part = into.subarray(0, Math.min(size, count - start));
      await this.#fill(part, start);
      return part;
    };
    let next = count === 0 ? undefined : begin(raw, 0);
    try {
      for (let start = 0; start < count; start += size) {
        const part = await next!;
        [raw, other] = [other, raw];
        next = start + size < count ? begin(raw, start + size) : undefined;
        // What fails of it is thrown when its turn comes.
        next?.catch(() => {});
        if (converted === undefined) {
          yield part as TypedArrayOf<D>;
        } else {
          const out = converted.subarray(0, part.length) as TypedArrayOf<D>;
          const values = this.#valuesOf(part, out);
          if (values !== out) {
            convertValues(values, this.dtype, out, dtype, { what: this.path, start });
          }
          yield out;
        }
      }
    } finally {
      // Whoever stops early may close the file.
      await next?.catch(() => {});
      this.#free.push(...new Set([raw.buffer, other.buffer]));
    }
  }

  /** Elements of the file as those of its {@linkcode dtype}; in `into` where that holds bf16 as they are. */
  #valuesOf(raw: TensorData, into: TensorData): TensorData {
    if (this.dtype !== "bf16") return raw;
    const values = into instanceof Float32Array ? into : new Float32Array(raw.length);
    fromBf16(raw as Uint16Array, values);
    return values;
  }

  #chunkMemory(size: number): TensorData {
    const kind = arrayConstructor(this.#raw);
    const bytes = size * dtypeBytes(this.#raw);
    const at = this.#free.findIndex(({ byteLength }) => byteLength >= bytes);
    return at < 0 ? new kind(size) : new kind(this.#free.splice(at, 1)[0]!, 0, size);
  }

  /** Fills `into` with elements of the file from `start` on, in the host's byte order. */
  async #fill(into: TensorData, start: number): Promise<void> {
    const width = dtypeBytes(this.#raw);
    const bytes = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
    for (let done = 0; done < into.length;) {
      const run = Math.floor((start + done) / this.#run);
      const at = start + done - run * this.#run;
      const length = Math.min(into.length - done, this.#run - at);
      const there = Math.max(0, Math.min(length, this.#there - at));
      const part = bytes.subarray(done * width, (done + length) * width);
      const element = run * this.#stride + this.#first + at;
      if (there > 0) {
        const from = this.header.dataOffset + element * width;
        await readExactly(this.#bytes, part.subarray(0, there * width), from, this.path);
      }
      part.fill(0, there * width);
      done += length;
    }
    if (!this.header.littleEndian) swapBytes(into.buffer, into.byteOffset, into.length, width);
    // NumPy writes 0 and 1, other programs any byte for true.
    if (this.dtype === "bool") bytes.forEach((byte, i) => bytes[i] = byte === 0 ? 0 : 1);
  }

  close(): void {
    this.#free.length = 0;
    this.#bytes.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function newArray<D extends DType>(dtype: D, count: number, shared: boolean): TypedArrayOf<D> {
  if (!shared) return new (arrayConstructor(dtype))(count);
  // Arrays on either kind of memory are used alike, which the types do not know.
  const kind = arrayConstructor(dtype);
  const buffer: unknown = new SharedArrayBuffer(count * kind.BYTES_PER_ELEMENT);
  return new kind(buffer as ArrayBuffer);
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

/**
 * Reads the tensor of a `.npy` file that is in memory, as a page has it of a file that a user chose.
 *
 * @param name What messages call the file.
 * @throws {SyntaxError | TypeError | RangeError} where it is no `.npy` file, or holds what no tensor does.
 * @example
 * ```ts
 * import { parseNpy } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".padEnd(117) + "\n";
 * const start = [0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, 118, 0];
 * const bytes = Uint8Array.from([...start, ...new TextEncoder().encode(header), 0, 0, 0x80, 0x3f]);
 * const { shape, data } = await parseNpy(bytes);
 * assert.deepEqual([shape, [...data]], [[1], [1]]);
 * ```
 */
export async function parseNpy(bytes: Uint8Array, name = "the file"): Promise<Tensor> {
  using source = await npySource(memoryBytes(bytes), name);
  return await source.read();
}
