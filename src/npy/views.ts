import { InputTypeError } from "../errors.ts";
import { arrayConstructor, type DType, type TypedArrayOf } from "../tensor/dtype.ts";
import { permute } from "../tensor/layout.ts";
import { elementCount, rowMajorStrides, type Tensor, tensor } from "../tensor/tensor.ts";
import type { ReadOptions, TensorSource } from "./source.ts";

interface ViewValues {
  readAs<D extends DType>(dtype: D, options?: ReadOptions): Promise<Tensor<D>>;
  chunksAs<D extends DType>(dtype: D, maxElements?: number): AsyncIterable<TypedArrayOf<D>>;
}

const CHUNK = 1 << 20;

function viewOf(
  source: TensorSource,
  shape: readonly number[],
  values: ViewValues,
): TensorSource {
  return {
    path: source.path,
    dtype: source.dtype,
    shape,
    read: () => values.readAs(source.dtype),
    readAs: values.readAs,
    chunksAs: values.chunksAs,
    part() {
      throw new InputTypeError(`Cannot read parts of ${source.path} as [${shape.join(", ")}]`);
    },
    close: () => source.close(),
    [Symbol.dispose]: () => source.close(),
  };
}

/** The same values in the same order with other sizes. */
export function reshapedSource(source: TensorSource, shape: readonly number[]): TensorSource {
  return viewOf(source, shape, {
    async readAs(dtype, options) {
      return tensor(dtype, shape, (await source.readAs(dtype, options)).data);
    },
    chunksAs: (dtype, maxElements) => source.chunksAs(dtype, maxElements),
  });
}

/** The tensor with its axes permuted, as `permute()` does it: axis i is the source's axis `axes[i]`. It is read whole. */
export function permutedSource(source: TensorSource, axes: readonly number[]): TensorSource {
  const readAs = async <D extends DType>(dtype: D) => permute(await source.readAs(dtype), axes);
  return viewOf(source, axes.map((axis) => source.shape[axis]!), {
    readAs,
    async *chunksAs(dtype, maxElements = CHUNK) {
      yield* slices((await readAs(dtype)).data, maxElements);
    },
  });
}

/**
 * The tensor repeated along the axes on which it has one entry, or that it lacks in front, as NumPy broadcasts it. Memory holds
 * it once where it is read in chunks.
 *
 * @param shape What {@linkcode broadcastsTo} its own shape.
 */
export function broadcastSource(source: TensorSource, shape: readonly number[]): TensorSource {
  return viewOf(source, shape, {
    async readAs(dtype) {
      const data = new (arrayConstructor(dtype))(elementCount(shape));
      repeatInto(data, 0, (await source.readAs(dtype)).data, source.shape, shape);
      return tensor(dtype, shape, data);
    },
    async *chunksAs(dtype, maxElements = CHUNK) {
      const { data: own } = await source.readAs(dtype);
      const count = elementCount(shape);
      for (let start = 0; start < count; start += maxElements) {
        const part = new (arrayConstructor(dtype))(Math.min(maxElements, count - start));
        repeatInto(part, start, own, source.shape, shape);
        yield part as TypedArrayOf<typeof dtype>;
      }
    },
  });
}

/** Whether a tensor of one shape fills another by NumPy's rules. */
export function broadcastsTo(own: readonly number[], shape: readonly number[]): boolean {
  const missing = shape.length - own.length;
  return missing >= 0 && own.every((size, axis) => size === 1 || size === shape[missing + axis]);
}

/** Fills `into` with elements from `start` on of `own`, of sizes `from`, that is broadcast to `shape`. */
function repeatInto<D extends DType>(
  into: TypedArrayOf<D>,
  start: number,
  own: TypedArrayOf<D>,
  from: readonly number[],
  shape: readonly number[],
): void {
  const sizes = [...new Array<number>(shape.length - from.length).fill(1), ...from];
  // Innermost axes that are the same follow each other in both.
  let inner = shape.length;
  while (inner > 0 && sizes[inner - 1] === shape[inner - 1]) inner--;
  const run = elementCount(shape.slice(inner));
  const strides = rowMajorStrides(sizes);
  for (let done = 0; done < into.length;) {
    const at = start + done;
    let [outer, offset] = [Math.floor(at / run), at % run];
    const length = Math.min(into.length - done, run - offset);
    for (let axis = inner - 1; axis >= 0; axis--) {
      if (sizes[axis]! > 1) offset += (outer % shape[axis]!) * strides[axis]!;
      outer = Math.floor(outer / shape[axis]!);
    }
    // Both have one type, which the types cannot say.
    (into as Float32Array).set((own as Float32Array).subarray(offset, offset + length), done);
    done += length;
  }
}

function* slices<D extends DType>(data: TypedArrayOf<D>, most: number) {
  for (let i = 0; i < data.length; i += most) yield data.subarray(i, i + most) as TypedArrayOf<D>;
}
