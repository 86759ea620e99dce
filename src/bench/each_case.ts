import { DeviceError } from "../errors.ts";
import type { CaseRecord } from "../report/record.ts";
import type { Executor } from "../run/executor.ts";

/** A case of a suite, or several that run together. */
export interface SuiteCase {
  /** Runs it and gives its records, each as soon as it is known. */
  run(executor: Executor): AsyncIterable<CaseRecord>;
  /** The records of what did not run to its end. */
  failed(device: string, message: string): readonly CaseRecord[];
  /** Where several failed together: those without a record yet, one by one. */
  split?(): readonly SuiteCase[];
}

/**
 * Runs cases and yields each one's records at once. What one of them throws becomes its record.
 *
 * @param open Opens the device: at the start, and again after it was lost.
 * @throws what the first `open` throws.
 */
export async function* eachCase(
  cases: Iterable<SuiteCase>,
  open: () => Promise<Executor>,
): AsyncGenerator<CaseRecord, void, undefined> {
  let executor: Executor | undefined = await open();
  try {
    for (const one of cases) {
      const waiting = [one];
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        let name = "";
        try {
          if (executor?.isOpen === false) {
            executor.close();
            executor = undefined;
          }
          executor ??= await open();
          name = executor.device.adapter;
          yield* next.run(executor);
        } catch (thrown) {
          const error = await executor?.causeOf(thrown) ?? thrown;
          if (error instanceof DeviceError) {
            executor?.close();
            executor = undefined;
          }
          const parts = next.split?.() ?? [];
          if (parts.length > 0) waiting.push(...parts);
          else yield* next.failed(name, error instanceof Error ? error.message : String(error));
        }
      }
    }
  } finally {
    executor?.close();
  }
}
