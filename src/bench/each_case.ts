import { DeviceError } from "../errors.ts";
import type { GpuDevice } from "../gpu/device.ts";
import type { CaseRecord } from "../report/record.ts";

/** A case of a suite. */
export interface SuiteCase {
  run(gpu: GpuDevice): Promise<CaseRecord>;
  /** The record of a case that did not run to its end. */
  failed(device: string, message: string): CaseRecord;
}

/**
 * Runs cases and yields each one's record at once. What one of them throws becomes its record.
 *
 * @param open Opens the device: at the start, and again after it was lost.
 * @throws what the first `open` throws.
 */
export async function* eachCase(
  cases: Iterable<SuiteCase>,
  open: () => Promise<GpuDevice>,
): AsyncGenerator<CaseRecord, void, undefined> {
  let gpu: GpuDevice | undefined = await open();
  try {
    for (const one of cases) {
      let name = "";
      try {
        gpu ??= await open();
        name = gpu.info.adapter;
        yield await one.run(gpu);
      } catch (error) {
        if (error instanceof DeviceError) {
          gpu?.close();
          gpu = undefined;
        }
        yield one.failed(name, error instanceof Error ? error.message : String(error));
      }
    }
  } finally {
    gpu?.close();
  }
}
