import type { Backend } from "../gpu/provider.ts";

/** Which GPU a command computes on. */
export interface GpuChoice {
  readonly backend: Backend;
  /** Its index or a part of its name; the backend's own choice where absent. */
  readonly adapter?: string | undefined;
}

export const ADAPTER_HELP = "which GPU: its index, or part of its name, in wgconv devices";

export const BACKEND_HELP = "WebGPU implementation: wgpu (Deno's), or dawn (Chromium's)";

export const DEVICE_HELP = "gpu, or cpu: compute with the FP64 reference, without a driver";
