import type { TensorSource } from "../npy/mod.ts";
import type { Subject, SubjectTensor } from "../run/subject.ts";
import { type During, untimed } from "../run/timeline.ts";
import { type DType, dtypeBytes } from "../tensor/dtype.ts";
import { elementCount, type Tensor } from "../tensor/tensor.ts";

type Files = { readonly [role: string]: TensorSource | undefined };

/** Operands and a result up to this are not cut along their batch. */
const WHOLE_BYTES = 2 ** 30;

interface ReadAheadOptions {
  /** Which of the operands; all where absent. */
  readonly wanted?: (one: SubjectTensor) => boolean;
  readonly during?: During;
}

/** Bytes of a tensor. */
export function tensorBytes({ dtype, shape }: SubjectTensor): number {
  return elementCount(shape) * dtypeBytes(dtype);
}

/** Whether a subject's operands are going to be held whole, so that they can be read before it is known what computes it. */
export function isHeld(
  { operands, result }: Subject,
  { check, device }: { readonly check: string; readonly device: string },
): boolean {
  const bytes = [...operands, result].reduce((sum, one) => sum + tensorBytes(one), 0);
  return (check !== "none" || device === "cpu") && bytes <= WHOLE_BYTES;
}

/**
 * Begins to read operands while the caller does something else; the files in their place give what was read. Deno opens
 * devices, compiles and waits for a GPU on the thread that runs JavaScript, so a read is one call that needs that thread no more.
 */
export function readAhead<F extends Files>(
  { operands }: Subject,
  files: F,
  { wanted = () => true, during = untimed }: ReadAheadOptions = {},
): F {
  const begun = operands.flatMap((one) => {
    const file = files[one.role];
    if (file === undefined || !wanted(one)) return [];
    const reading = during("read", () => file.readAs(one.dtype, { shared: true }));
    // Its failure is told where it is awaited.
    reading.catch(() => {});
    return [[one.role, onTheWay(file, reading)]];
  });
  return { ...files, ...Object.fromEntries(begun) };
}

/** A tensor whose values are on their way. */
function onTheWay(file: TensorSource, reading: Promise<Tensor>): TensorSource {
  const readAs = <D extends DType>(dtype: D) =>
    reading.then((read) => read.dtype === dtype ? read as Tensor<D> : file.readAs(dtype));
  return {
    path: file.path,
    dtype: file.dtype,
    shape: file.shape,
    ...(file.header === undefined ? {} : { header: file.header }),
    read: () => file.read(),
    readAs,
    async *chunksAs(dtype) {
      yield (await readAs(dtype)).data;
    },
    part: (axis, first, count) => file.part(axis, first, count),
    close: () => file.close(),
    [Symbol.dispose]: () => file.close(),
  };
}
