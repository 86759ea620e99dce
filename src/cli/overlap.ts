/** Operands are read while a device opens, and results written while they are checked. */
import { type TensorSource, writeNpy } from "../npy/mod.ts";
import { type HostData, type Subject, subjectBytes, type SubjectTensor } from "../run/subject.ts";
import { type During, untimed } from "../run/timeline.ts";
import type { DType } from "../tensor/dtype.ts";
import { type Tensor, tensor } from "../tensor/tensor.ts";

type Files = { readonly [role: string]: TensorSource | undefined };

/** Operands and a result up to this are not cut along their batch. */
const WHOLE_BYTES = 2 ** 30;

interface ReadAheadOptions {
  /** Which of the operands; all where absent. */
  readonly wanted?: (one: SubjectTensor) => boolean;
  readonly during?: During;
}

/** Whether a subject's operands are going to be held whole, so that they can be read before it is known what computes it. */
export function isHeld(
  subject: Subject,
  { check, device }: { readonly check: string; readonly device: string },
): boolean {
  return (check !== "none" || device === "cpu") && subjectBytes(subject) <= WHOLE_BYTES;
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

interface ResultFile {
  readonly path: string | undefined;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly force?: boolean | undefined;
}

/** What was computed, and the end of writing its result, which fails as `writeNpy()` does. */
interface Beside<T> {
  readonly computed: T;
  readonly written: Promise<void> | undefined;
}

/**
 * Computes something and writes its result while that is checked. The file is there when the check has ended, whatever
 * its verdict; where computing or checking throws there is none.
 *
 * @param compute Calls `onResult` when there is a result to write.
 * @throws what `compute` throws.
 */
export async function writeBeside<T>(
  { path, dtype, shape, force = false }: ResultFile,
  during: During,
  compute: (onResult: (result: HostData) => void) => Promise<T>,
): Promise<Beside<T>> {
  const checked = Promise.withResolvers<void>();
  // Without a path nobody waits for it.
  checked.promise.catch(() => {});
  let written: Promise<void> | undefined;
  try {
    const computed = await compute((result) => {
      if (path === undefined) return;
      const whole = tensor(dtype, shape, result);
      const options = { until: checked.promise, replace: force };
      written = during("write", () => writeNpy(path, whole, options));
      // Its failure is told after what was found.
      written.catch(() => {});
    });
    checked.resolve();
    return { computed, written };
  } catch (error) {
    checked.reject(error);
    // Until then there is an unfinished file.
    await written?.catch(() => {});
    throw error;
  }
}
