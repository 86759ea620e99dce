import { prepareEnvironment } from "./environment.ts";
import type { Backend, GpuProvider } from "./provider.ts";

export interface ProviderOptions {
  /** Flags for Dawn, e.g. `backend=null` or `enable-dawn-features=disable_robustness`. */
  readonly dawnFlags?: readonly string[];
  /**
   * Whether Dawn holds every index within its buffer; default true. Without, the texts of plans' kernels do, which products
   * on matrix units are faster with, and shaders of one's own on the device must. Other backends ignore it.
   */
  readonly robust?: boolean;
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
    return await loadDawn(options.dawnFlags ?? [], options.robust ?? true);
  }
  const { loadWgpu } = await import("./wgpu.ts");
  return loadWgpu();
}
