import { bufferBytes } from "../algorithms/tensors.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectArray, expectObject, expectWord, said } from "../expect.ts";
import { createBuffer, upload } from "../gpu/buffers.ts";
import { BUFFER_USAGE } from "../gpu/constants.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { fetchValues } from "../run/executor.ts";
import { storedBytes } from "../tensor/convert.ts";
import { arrayConstructor, type TensorData, type TypedArrayOf } from "../tensor/dtype.ts";
import { FILTER_LAYOUTS, type FilterLayout, type Layout, LAYOUTS } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";

/** Element types that kernels read and write. */
export type GpuDType = "f16" | "bf16" | "f32" | "f64" | "i8" | "u8" | "i32";
const GPU_DTYPES: readonly GpuDType[] = ["f16", "bf16", "f32", "f64", "i8", "u8", "i32"];

/** What a tensor on a device is, apart from its values. */
export interface TensorSpec<D extends GpuDType = GpuDType> {
  /** Element type. */
  readonly dtype: D;
  /** Sizes in the order of memory, outermost first. */
  readonly shape: readonly number[];
  /** What the sizes are of; absent for vectors and matrices. */
  readonly layout?: Layout | FilterLayout;
}

/**
 * A tensor in the memory of a device, made by {@linkcode gpuTensor}.
 * @example
 * ```ts
 * import { gpuTensor, openDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * using x = gpuTensor(gpu, { dtype: "f32", shape: [1, 2, 2, 3], layout: "nhwc" });
 * assert.equal(x.buffer.size, 48);
 * assert.deepEqual([...await x.read()], Array(12).fill(0));
 * ```
 */
export class GpuTensor<D extends GpuDType = GpuDType> implements TensorSpec<D>, Disposable {
  /** Where it is. */
  readonly gpu: GpuDevice;
  /** Element type. */
  readonly dtype: D;
  /** Sizes in the order of memory, outermost first. */
  readonly shape: readonly number[];
  /** What the sizes are of; absent for vectors and matrices. */
  readonly layout?: Layout | FilterLayout;
  /** Where its values lie, from byte 0 on, for kernels of one's own. */
  readonly buffer: GPUBuffer;
  readonly #owned: boolean;
  #disposed = false;

  /** {@linkcode gpuTensor} checks what this takes. */
  constructor(gpu: GpuDevice, spec: TensorSpec<D>, buffer: GPUBuffer, owned: boolean) {
    this.gpu = gpu;
    this.dtype = spec.dtype;
    this.shape = [...spec.shape];
    if (spec.layout !== undefined) this.layout = spec.layout;
    this.buffer = buffer;
    this.#owned = owned;
  }

  /** Whether it was disposed. */
  get isDisposed(): boolean {
    return this.#disposed;
  }

  /**
   * Fetches the values when all work that was submitted before is done. Each wait takes Deno 10 ms or more.
   *
   * @throws {DeviceError} on errors of the device, of earlier work too
   * @throws {TypeError} where the tensor was disposed, or its buffer has no `COPY_SRC`
   */
  async read(): Promise<TypedArrayOf<D>> {
    this.#expectUse("read", BUFFER_USAGE.copySource, "COPY_SRC");
    return await this.gpu.guard(() => fetchValues(this.gpu, this.buffer, this));
  }

  /**
   * Replaces the values, behind all work that was submitted before.
   *
   * @throws {TypeError} where the values are of another type or number, the tensor was disposed, or its buffer has no
   * `COPY_DST`
   */
  write(values: TypedArrayOf<D>): void {
    this.#expectUse("write", BUFFER_USAGE.copyDestination, "COPY_DST");
    expectValues("Cannot write", this, values);
    upload(this.gpu, this.buffer, 0, storedBytes(this.dtype, values));
  }

  /** Frees its buffer, but not one that it was given. A second call does nothing. */
  [Symbol.dispose](): void {
    if (this.#owned && !this.#disposed) this.buffer.destroy();
    this.#disposed = true;
  }

  #expectUse(verb: string, usage: number, name: string): void {
    if (this.#disposed) {
      throw new InputTypeError(`Cannot ${verb} ${describeSpec(this)}: the tensor was disposed`);
    }
    if ((this.buffer.usage & usage) === 0) {
      throw new InputTypeError(
        `Cannot ${verb} ${describeSpec(this)}: its buffer was made without GPUBufferUsage.${name}`,
      );
    }
  }
}

/**
 * Makes a tensor on a device.
 *
 * @param spec What it is; a layer says what it takes (`layer.tensors`).
 * @param from Its values, zeros where absent; or a buffer that holds them, which stays the caller's.
 * @throws {TypeError} where values are of another type or number, or a buffer has no `STORAGE`
 * @throws {RangeError} where a buffer is too small, or the sizes, type or layout are none
 * @throws {UnsupportedError} over the device's `maxBufferSize`
 * @example
 * ```ts
 * import { gpuTensor, openDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * using image = gpuTensor(
 *   gpu,
 *   { dtype: "f32", shape: [1, 2, 2, 1], layout: "nhwc" },
 *   Float32Array.of(1, 2, 3, 4),
 * );
 * assert.deepEqual([...await image.read()], [1, 2, 3, 4]);
 * ```
 */
export function gpuTensor<D extends GpuDType>(
  gpu: GpuDevice,
  spec: TensorSpec<D>,
  from?: TypedArrayOf<D> | GPUBuffer,
): GpuTensor<D> {
  const doing = "Cannot make a tensor";
  expectSpec(doing, spec);
  if (from !== undefined && !ArrayBuffer.isView(from)) {
    expectBuffer(doing, describeSpec(spec), from, specBytes(spec));
    return new GpuTensor(gpu, spec, from, false);
  }
  if (from !== undefined) expectValues(doing, spec, from);
  const buffer = createBuffer(gpu, specBytes(spec), describeSpec(spec));
  const made = new GpuTensor(gpu, spec, buffer, true);
  if (from !== undefined) upload(gpu, buffer, 0, storedBytes(spec.dtype, from));
  return made;
}

/** Bytes that a tensor's buffer has at least: whole words, four values, and 16 bytes. */
export function specBytes({ dtype, shape }: TensorSpec): number {
  return bufferBytes(elementCount(shape), dtype === "u8" ? "i8" : dtype);
}

/** As messages have it: `f32 [2,14,14,8] nhwc`. */
export function describeSpec({ dtype, shape, layout }: TensorSpec): string {
  return `${dtype} [${shape}]${layout === undefined ? "" : ` ${layout}`}`;
}

/** @throws {TypeError} where kernels cannot bind a buffer. @throws {RangeError} where it is too small. */
export function expectBuffer(doing: string, what: string, buffer: GPUBuffer, bytes: number): void {
  if (typeof buffer?.usage !== "number" || typeof buffer.size !== "number") {
    throw new InputTypeError(
      `${doing}: ${what} is ${said(buffer)}, expected what gpuTensor() makes, or a GPUBuffer`,
    );
  }
  if ((buffer.usage & BUFFER_USAGE.storage) === 0) {
    throw new InputTypeError(
      `${doing}: the buffer of ${what} was made without GPUBufferUsage.STORAGE`,
    );
  }
  if (buffer.size < bytes) {
    throw new InputRangeError(`${doing}: ${what} takes ${bytes} bytes, its buffer ${buffer.size}`);
  }
}

/** What a tensor is made of, whoever says it. */
function expectSpec(doing: string, spec: TensorSpec): void {
  expectObject(doing, "what it is", spec, "dtype and shape");
  const { dtype, shape, layout } = spec;
  expectWord(doing, "dtype", dtype, GPU_DTYPES);
  expectArray(doing, "shape", shape, "sizes >= 0");
  if (shape.some((size) => !Number.isSafeInteger(size) || size < 0)) {
    throw new InputRangeError(`${doing}: shape is ${said(shape)}, expected whole sizes >= 0`);
  }
  if (layout === undefined) return;
  expectWord(doing, "layout", layout, [...LAYOUTS, ...FILTER_LAYOUTS]);
}

function expectValues(doing: string, spec: TensorSpec, values: TensorData): void {
  if (!(values instanceof arrayConstructor(spec.dtype))) {
    throw new InputTypeError(`${doing}: the values of ${describeSpec(spec)} are no ${spec.dtype}`);
  }
  const count = elementCount(spec.shape);
  const given = values.length;
  if (given !== count) {
    throw new InputTypeError(
      `${doing}: ${describeSpec(spec)} has ${count} elements, ${given} values are given`,
    );
  }
}
