import type { DeviceLimits } from "../algorithms/plan.ts";
import { DeviceError, UnsupportedError } from "../errors.ts";
import { type AdapterSummary, findAdapter, LIMIT_NAMES, readLimits } from "./adapter.ts";
import { measureNsPerTick } from "./calibrate.ts";
import { grantedFeatures, tryDevice } from "./features.ts";
import type { CachedPipeline } from "./pipelines.ts";
import { type Backend, type GpuProvider, loadProvider } from "./provider.ts";
import type { PassTimer } from "./timer.ts";

export interface DeviceOptions {
  /** Default `wgpu`. */
  readonly backend?: Backend;
  /** Features the device must have, e.g. `shader-f16`. */
  readonly features?: readonly string[];
  /** Features taken where the adapter grants them. `timestamp-query` always is one. */
  readonly optionalFeatures?: readonly string[];
  /** Takes the CPU's driver where there are several. */
  readonly forceFallback?: boolean;
  /** Further flags for Dawn. */
  readonly dawnFlags?: readonly string[];
}

/** What {@linkcode openDevice} gathers for a device. */
interface DeviceParts {
  readonly provider: GpuProvider;
  readonly device: GPUDevice;
  readonly info: AdapterSummary;
  readonly limits: DeviceLimits;
  readonly features: ReadonlySet<string>;
}

/** An open device: limits, features, errors that arrive late, and what is cached per device. */
export class GpuDevice implements Disposable {
  readonly provider: GpuProvider;
  readonly device: GPUDevice;
  readonly info: AdapterSummary;
  readonly limits: DeviceLimits;
  /** Features granted of those asked for. */
  readonly features: ReadonlySet<string>;
  /** Workgroups that run side by side, where that is known: a software device runs two a core. */
  readonly workgroupsInFlight: number | undefined;
  /** Whether passes can be timed on the device. */
  readonly timestamps: boolean;
  /** Pipelines by kernel name (`pipelines.ts`). */
  readonly pipelines: Map<string, CachedPipeline> = new Map();
  /** The query set and its buffers, made at first use (`timer.ts`). */
  timer?: PassTimer;

  #nsPerTick?: Promise<number>;
  #queue: Promise<unknown> = Promise.resolve();
  #scopes: Promise<void>[] = [];
  #errors: Error[] = [];
  #lost?: string;
  #closed = false;

  constructor(parts: DeviceParts) {
    this.provider = parts.provider;
    this.device = parts.device;
    this.info = parts.info;
    this.limits = parts.limits;
    this.features = parts.features;
    this.workgroupsInFlight = parts.info.software ? 2 * navigator.hardwareConcurrency : undefined;
    this.timestamps = parts.features.has("timestamp-query");
    this.device.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      const { error } = event as GPUUncapturedErrorEvent;
      this.#errors.push(new DeviceError(oneLine(error.message)));
    });
    this.device.lost.then((info) => {
      if (!this.#closed) this.#lost = oneLine(info.message || info.reason);
    });
  }

  /**
   * Nanoseconds per timestamp tick. Deno hands out raw ticks and hides their length, so it is measured
   * against the clock once, at the first call (about 0.2 s); 1 for Dawn, which converts.
   */
  nsPerTick(): Promise<number> {
    this.#nsPerTick ??= this.exclusive(() => measureNsPerTick(this)).catch((error) => {
      // An error of other work that surfaced here is no reason not to try again.
      this.#nsPerTick = undefined;
      throw error;
    });
    return this.#nsPerTick;
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
      throw new DeviceError(`${doing}: the device was lost: ${this.#lost}`);
    }
    const first = this.#errors[0];
    this.#errors = [];
    if (first instanceof UnsupportedError) throw first;
    if (first !== undefined) throw new DeviceError(`${doing}: ${first.message}`);
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

  /** Ends the device and frees what it holds. A second call does nothing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.timer?.destroy();
    this.pipelines.clear();
    this.device.destroy();
    this.provider.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Opens a device with the adapter's own limits for everything in `DeviceLimits`.
 *
 * @throws {UnsupportedError} naming what is missing: the adapter, or features
 */
export async function openDevice(options: DeviceOptions = {}): Promise<GpuDevice> {
  const backend = options.backend ?? "wgpu";
  const provider = await loadProvider(backend, { dawnFlags: options.dawnFlags });
  const { adapter, info } = await findAdapter(provider, options.forceFallback ?? false);
  const required = options.features ?? [];
  const optional = ["timestamp-query", ...options.optionalFeatures ?? []];
  let features = [...new Set([...required, ...optional])];
  const limits = requestedLimits(adapter);
  // All at once first: finding out one by one costs a device each.
  let device = backend === "dawn" ? undefined : await tryDevice(adapter, features, limits);
  if (device === undefined) {
    const granted = await grantedFeatures(adapter, features, backend === "dawn");
    const missing = required.filter((name) => !granted.includes(name));
    if (missing.length > 0) {
      throw new UnsupportedError(
        `Cannot open the device: ${info.adapter} (${backend}) has no ${missing.join(", ")}`,
      );
    }
    features = granted;
    device = await tryDevice(adapter, features, limits);
  }
  if (device === undefined) {
    throw new UnsupportedError(
      `Cannot open the device: ${info.adapter} (${backend}) refuses its own limits and features`,
    );
  }
  return new GpuDevice({
    provider,
    device,
    info,
    limits: readLimits(device.limits),
    features: new Set(features),
  });
}

/** The adapter's values of the limits kernels may use. */
function requestedLimits(adapter: GPUAdapter): Record<string, number> {
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, adapter.limits[name]]));
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
