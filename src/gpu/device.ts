import type { GpuDevice } from "./gpu_device.ts";
import { chooseAdapter } from "./choose_adapter.ts";
import { loadProvider } from "./load_provider.ts";
import { openOn, type OpenOptions } from "./open.ts";
import type { Backend } from "./provider.ts";

export { GpuDevice } from "./gpu_device.ts";

/** What a device of Deno's is to be. */
export interface DeviceOptions extends OpenOptions {
  /** Default `wgpu`. */
  readonly backend?: Backend;
  /** Its index or a part of its name as `wgconv devices` lists them; the backend's own choice where absent. */
  readonly adapter?: string | undefined;
  /** Further flags for Dawn. */
  readonly dawnFlags?: readonly string[];
  /**
   * Whether Dawn holds every index within its buffer; default true. Without, the texts of plans' kernels do, which products
   * on matrix units are faster with, and shaders of one's own on the device must. No other backend heeds it.
   */
  readonly robust?: boolean;
}

/**
 * Opens a device of Deno's WebGPU, or of Dawn, with the adapter's own limits for everything in `DeviceLimits`.
 *
 * @throws {UnsupportedError} naming what is missing: the backend, the adapter, or features; or why an adapter cannot be chosen
 * @example
 * ```ts
 * import { openDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * assert.ok(gpu.limits.maxBufferSize > 0, gpu.info.adapter);
 * ```
 */
export async function openDevice(options: DeviceOptions = {}): Promise<GpuDevice> {
  const { backend = "wgpu", adapter } = options;
  if (adapter === undefined) return await openOn(await loadProvider(backend, options), options);
  const { provider, request } = await chooseAdapter({ ...options, backend, adapter });
  return await openOn(provider, { ...options, ...(request === undefined ? {} : { request }) });
}
