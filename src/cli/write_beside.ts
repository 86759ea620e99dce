import { writeNpy } from "../npy/mod.ts";
import type { HostData } from "../run/subject.ts";
import type { During } from "../run/timeline.ts";
import { tensor } from "../tensor/tensor.ts";
import type { DType } from "../tensor/dtype.ts";

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
