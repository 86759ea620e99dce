import type { DeviceLimits } from "../algorithms/plan.ts";
import { DeviceError, UnsupportedError } from "../errors.ts";
import type { MatrixUnits } from "../kernels/matrix_units.ts";
import type { AdapterSummary } from "./adapter.ts";
import type { GpuProvider } from "./provider.ts";

const LOST = "the device was lost";
/** How long a device may take to say that it is lost after calls have failed of it. */
const LOSS_MS = 250;

/** What is gathered for a device before it is one. */
interface DeviceParts {
  readonly provider: GpuProvider;
  readonly device: GPUDevice;
  readonly info: AdapterSummary;
  readonly limits: DeviceLimits;
  readonly matrixUnits?: MatrixUnits | undefined;
  readonly features: ReadonlySet<string>;
  readonly subgroupSize?: number | undefined;
  /** Whether the device is an application's, which outlives this one. */
  readonly adopted?: boolean;
}

/**
 * An open device: limits, features, errors that arrive late, and what is cached per device.
 * @example
 * ```ts
 * import { GpuDevice, openDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * assert.ok(gpu instanceof GpuDevice && gpu.features.size >= 0);
 * ```
 */
export class GpuDevice implements Disposable {
  /** Where it comes from. */
  readonly provider: GpuProvider;
  /** WebGPU's own. */
  readonly device: GPUDevice;
  /** Name, vendor and kind of its adapter. */
  readonly info: AdapterSummary;
  /** What plans may take. */
  readonly limits: DeviceLimits;
  /** What subgroups multiply at once; undefined where there is nothing of the kind. */
  readonly matrixUnits: MatrixUnits | undefined;
  /** Features granted of those asked for. */
  readonly features: ReadonlySet<string>;
  /** Threads of a subgroup of kernels that say none; the driver's choice where undefined. */
  readonly subgroupSize: number | undefined;
  /** Workgroups that run side by side, where that is known: a software device runs two a core. */
  readonly workgroupsInFlight: number | undefined;
  /** Whether passes can be timed on the device. */
  readonly timestamps: boolean;

  #queue: Promise<unknown> = Promise.resolve();
  #scopes: Promise<void>[] = [];
  #errors: Error[] = [];
  #lost?: string;
  #closed = false;
  readonly #adopted: boolean;
  readonly #onError = (event: Event) => {
    // What an application's own handlers do is theirs to say.
    if (!this.#adopted) event.preventDefault();
    const { error } = event as GPUUncapturedErrorEvent;
    this.#errors.push(new DeviceError(oneLine(error.message)));
  };

  /** Takes a device that is open; `openDevice()` and `openBrowserDevice()` open one. */
  constructor(parts: DeviceParts) {
    this.provider = parts.provider;
    this.device = parts.device;
    this.info = parts.info;
    this.limits = parts.limits;
    this.matrixUnits = parts.matrixUnits;
    this.features = parts.features;
    this.subgroupSize = parts.subgroupSize;
    this.workgroupsInFlight = parts.info.software ? 2 * navigator.hardwareConcurrency : undefined;
    this.timestamps = parts.features.has("timestamp-query");
    this.#adopted = parts.adopted ?? false;
    this.device.addEventListener("uncapturederror", this.#onError);
    this.device.lost.then((info) => {
      if (!this.#closed) this.#lost = oneLine(info.message || info.reason);
    });
  }

  /**
   * Throws what has gone wrong since the last call, if anything has. `doing` begins the message.
   *
   * @throws {DeviceError} when closed, lost, or after an error of the device
   * @throws {UnsupportedError} after a failed allocation
   */
  check(doing: string): void {
    if (this.#closed) throw new DeviceError(`${doing}: the device is closed`);
    if (this.#lost !== undefined) {
      throw new DeviceError(`${doing}: ${LOST}: ${this.#lost}`);
    }
    const first = this.#errors[0];
    this.#errors = [];
    if (first instanceof UnsupportedError) throw first;
    if (first !== undefined) throw new DeviceError(`${doing}: ${first.message}`);
  }

  /** Whether work can still be given to the device. */
  get isOpen(): boolean {
    return !this.#closed && this.#lost === undefined;
  }

  /**
   * What an error of work on the device comes from. A device that is lost makes calls fail in many ways, some of
   * them before it says so; each is a {@linkcode DeviceError}.
   */
  async causeOf(error: unknown): Promise<unknown> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const patience = new Promise<void>((done) => timer = setTimeout(done, LOSS_MS));
    await Promise.race([this.device.lost, patience]);
    clearTimeout(timer);
    if (this.#lost === undefined) return error;
    const reason = error instanceof Error ? error.message : String(error);
    const message = reason.includes(LOST) ? reason : `Cannot go on: ${LOST}: ${this.#lost}`;
    return new DeviceError(message, { cause: error });
  }

  /** Runs work on the device; what it throws is what {@linkcode causeOf} says. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw await this.causeOf(error);
    }
  }

  /** As {@linkcode check}, after the verdicts still under way have arrived. */
  async settle(doing: string): Promise<void> {
    await Promise.all(this.#scopes.splice(0));
    // Errors that follow from the first come a tick later; they belong to it, not to the next caller.
    if (this.#errors.length > 0) await new Promise((done) => setTimeout(done, 1));
    this.check(doing);
  }

  /** Runs `work` in an error scope of its kind; what the scope catches is thrown by the next check. */
  watch<T>(filter: GPUErrorFilter, work: () => T, toError: (message: string) => Error): T {
    this.device.pushErrorScope(filter);
    try {
      return work();
    } finally {
      this.#scopes.push(
        this.device.popErrorScope().then((error) => {
          if (error !== null) this.#errors.unshift(toError(oneLine(error.message)));
        }, () => {}),
      );
    }
  }

  /** Runs `work` when nothing else that shares the timer is running. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work, work);
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Ends the device and frees what it holds; an application's own goes on. A second call does nothing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.device.removeEventListener("uncapturederror", this.#onError);
    if (!this.#adopted) this.device.destroy();
    this.provider.close();
  }

  /** Closes the device; nothing can be run on it any more. */
  [Symbol.dispose](): void {
    this.close();
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
