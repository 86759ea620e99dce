import { UnsupportedError } from "../errors.ts";
import type { GpuDevice } from "./gpu_device.ts";
import { openOn, type OpenOptions } from "./open.ts";
import { enabledText, type GpuProvider } from "./provider.ts";

/** As the WGSL specification has them. */
const DIRECTIVES = { "shader-f16": "f16", "subgroups": "subgroups" };

/**
 * The WebGPU of the browser that a page runs in.
 *
 * @throws {UnsupportedError} where it has none, as on pages that come without TLS from elsewhere than localhost
 */
export function browserProvider(): GpuProvider {
  const gpu = globalThis.navigator?.gpu;
  if (gpu === undefined) {
    throw new UnsupportedError(
      "Cannot open a GPU: this browser has no WebGPU, or none for pages without TLS",
    );
  }
  return {
    name: "browser",
    gpu,
    listsFeatures: true,
    matrixFeatures: [],
    noAdapterMessage: "Cannot open a GPU: the browser offers no adapter",
    identify: ({ description, device, architecture, vendor }) => ({
      adapter: description || device || [vendor, architecture].filter(Boolean).join(" "),
    }),
    textOf: (kernel) => enabledText(kernel, DIRECTIVES),
    close() {},
  };
}

/**
 * Opens a device of the browser's WebGPU with the adapter's own limits for everything in `DeviceLimits`, or one on a page's own
 * `GPUDevice` (`options.device`), as onnxruntime-web and other libraries have it.
 *
 * @throws {UnsupportedError} naming what is missing: WebGPU, the adapter, features, or limits
 * @throws {TypeError} where a device that is given is none
 * @example
 * ```ts
 * import { openBrowserDevice } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openBrowserDevice();
 * assert.ok(gpu.limits.maxBufferSize > 0, gpu.info.adapter);
 * ```
 */
export async function openBrowserDevice(options: OpenOptions = {}): Promise<GpuDevice> {
  return await openOn(browserProvider(), options);
}
