import type { Backend, GpuProvider } from "./provider.ts";

/**
 * Variables that a WebGPU implementation reads before it is first asked for an adapter, with their values on Linux where
 * the user has set none.
 *
 * An OpenGL fallback calls itself by the same name as the Vulkan driver, so a machine without
 * Vulkan would be measured through OpenGL unseen: Vulkan or nothing. And Mesa complains on stderr where
 * `XDG_RUNTIME_DIR` is missing, as it is in containers.
 */
export const DEVICE_VARIABLES = { DENO_WEBGPU_BACKEND: "vulkan", XDG_RUNTIME_DIR: "/tmp" };

/** Those of {@linkcode DEVICE_VARIABLES} that are to be set. */
export function deviceVariables(): Record<string, string> {
  if (Deno.build.os !== "linux") return {};
  const unset = Object.entries(DEVICE_VARIABLES).filter(([variable]) => isUnset(variable));
  return Object.fromEntries(unset);
}

/** Sets them in this process. */
export function prepareEnvironment(): void {
  for (const [variable, value] of Object.entries(deviceVariables())) Deno.env.set(variable, value);
}

/** Whether this process may set a variable, and nobody has. */
function isUnset(variable: string): boolean {
  const permission = Deno.permissions.querySync({ name: "env", variable });
  return permission.state === "granted" && !Deno.env.has(variable);
}

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
