import { prepareEnvironment } from "./environment.ts";
import type { Backend, GpuProvider } from "./provider.ts";

export interface ProviderOptions {
  /** Flags for Dawn, e.g. `backend=null` or `enable-dawn-features=disable_robustness`. */
  readonly dawnFlags?: readonly string[];
}

/**
 * Loads a WebGPU implementation. Dawn is downloaded and imported only here and only when asked for.
 *
 * @throws {UnsupportedError} where Dawn cannot be loaded
 */
export async function loadProvider(
  backend: Backend,
  options: ProviderOptions = {},
): Promise<GpuProvider> {
  prepareEnvironment();
  if (backend === "dawn") {
    const { loadDawn } = await import("./dawn.ts");
    return await loadDawn(options.dawnFlags ?? []);
  }
  const { loadWgpu } = await import("./wgpu.ts");
  return loadWgpu();
}
