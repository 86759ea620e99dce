import { UnsupportedError } from "../errors.ts";
import { enableLine, type GpuProvider } from "./provider.ts";

const BACKEND_VARIABLE = "DENO_WEBGPU_BACKEND";

/** naga knows subgroups without an `enable` line and refuses the line. */
const DIRECTIVES = { "shader-f16": "f16" };

/**
 * Deno's own WebGPU.
 *
 * @throws {UnsupportedError} where this runtime has none
 */
export function loadWgpu(): GpuProvider {
  const gpu = navigator.gpu;
  if (gpu === undefined) {
    throw new UnsupportedError("Cannot open a GPU: this runtime has no WebGPU, Deno 2.9 has");
  }
  preferVulkan();
  return {
    name: "wgpu",
    gpu,
    enableLines: (features) => enableLine(features, DIRECTIVES),
    close() {},
  };
}

/**
 * On Linux an OpenGL fallback calls itself by the same name as the Vulkan driver, so a machine without
 * Vulkan would be measured through OpenGL unseen. Read at each `requestAdapter`, so setting it here works.
 */
function preferVulkan(): void {
  if (Deno.build.os !== "linux") return;
  const permission = Deno.permissions.querySync({ name: "env", variable: BACKEND_VARIABLE });
  if (permission.state !== "granted" || Deno.env.has(BACKEND_VARIABLE)) return;
  Deno.env.set(BACKEND_VARIABLE, "vulkan");
}
