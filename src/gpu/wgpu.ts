import { UnsupportedError } from "../errors.ts";
import { nvidiaDriverVersion } from "./drivers.ts";
import { enabledText, type GpuProvider, noAdapterMessage } from "./provider.ts";

/** naga knows subgroups without an `enable` line and refuses the line. */
const DIRECTIVES = { "shader-f16": "f16" };

/** NVIDIA's PCI id, as wgpu writes vendors. */
const NVIDIA = "4318";

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
    listsFeatures: false,
    matrixFeatures: [],
    noAdapterMessage: noAdapterMessage("wgpu"),
    // Its `device` is a number.
    identify: ({ description, vendor }) => ({
      adapter: description,
      driver: vendor === NVIDIA ? nvidiaDriverVersion() : undefined,
    }),
    textOf: (kernel) => enabledText(kernel, DIRECTIVES),
    close() {},
  };
}
