import { InputTypeError } from "../errors.ts";
import type { GpuDevice } from "./gpu_device.ts";
import { chooseAdapter } from "./list_adapters.ts";
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
   * on matrix units are faster with, and shaders of one's own on the device must. Other backends ignore it.
   */
  readonly robust?: boolean;
}

/**
 * Opens a device of Deno's WebGPU, or of Dawn, with the adapter's own limits for everything in `DeviceLimits`.
 *
 * @throws {UnsupportedError} naming what is missing: the backend, the adapter, features, or limits; or why an adapter cannot be
 * chosen
 * @throws {TypeError} where a device that is given is none
 * @example
 * ```ts
 * import { openDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * assert.ok(gpu.limits.maxBufferSize > 0, gpu.info.adapter);
 *
 * // On an application's own device, which outlives it.
 * const adapter = await navigator.gpu.requestAdapter();
 * const device = await adapter!.requestDevice({ requiredLimits: { maxBufferSize: 2 ** 28 } });
 * const own = await openDevice({ device });
 * assert.equal(own.device, device);
 * own.close();
 * device.destroy();
 * ```
 */
export async function openDevice(options: DeviceOptions = {}): Promise<GpuDevice> {
  const { backend = "wgpu", adapter, device } = options;
  if (adapter !== undefined && device !== undefined) {
    throw new InputTypeError(
      "Cannot open the device: it is given, so that there is no adapter to choose",
    );
  }
  if (adapter === undefined) return await openOn(await loadProvider(backend, options), options);
  const { provider, request } = await chooseAdapter({ ...options, backend, adapter });
  return await openOn(provider, { ...options, ...(request === undefined ? {} : { request }) });
}
