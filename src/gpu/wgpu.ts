import { UnsupportedError } from "../errors.ts";
import { enableLine, type GpuProvider } from "./provider.ts";

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
  return {
    name: "wgpu",
    gpu,
    enableLines: (features) => enableLine(features, DIRECTIVES),
    close() {},
  };
}
