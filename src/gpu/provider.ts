import { prepareEnvironment } from "./environment.ts";

/** A WebGPU implementation: Deno's own (`wgpu`), or the npm package `webgpu` (`dawn`). */
export type Backend = "wgpu" | "dawn";

/** All backends, the default first. */
export const BACKENDS: readonly Backend[] = ["wgpu", "dawn"];

/** Where a `GPU` object comes from, and what its WGSL dialect needs. */
export interface GpuProvider {
  readonly name: Backend;
  readonly gpu: GPU;
  /**
   * The `enable` directives this implementation needs in front of WGSL that uses `features`: one line
   * with its newline, or the empty string.
   */
  enableLines(features: readonly string[]): string;
  /** Ends the provider. Devices made from it must be closed before. */
  close(): void;
}

export interface ProviderOptions {
  /** Flags for Dawn, e.g. `backend=null` or `enable-dawn-features=disable_robustness`. */
  readonly dawnFlags?: readonly string[];
}

/** Writes one line of `enable` directives. */
export function enableLine(
  features: readonly string[],
  directives: Readonly<Record<string, string>>,
): string {
  const names = features.map((feature) => directives[feature]).filter((name) => name !== undefined);
  return names.length === 0 ? "" : `${names.map((name) => `enable ${name};`).join(" ")}\n`;
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
