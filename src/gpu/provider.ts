import type { Kernel } from "../kernels/kernel.ts";

/** A WebGPU implementation for Deno: its own (`wgpu`), or the npm package `webgpu` (`dawn`). */
export type Backend = "wgpu" | "dawn";

/** What may stand behind a device: a backend of Deno's, or the browser a web page runs in. */
export type ProviderName = Backend | "browser";

/** All backends, the default first. */
export const BACKENDS: readonly Backend[] = ["wgpu", "dawn"];

/** What a command may be told: a backend, or to take the one that is faster for what it computes. */
export const BACKEND_CHOICES: readonly (Backend | "auto")[] = [...BACKENDS, "auto"];

/** Where a `GPU` object comes from, and what its WGSL dialect needs. */
export interface GpuProvider {
  /** Its name. */
  readonly name: ProviderName;
  /** WebGPU's entry. */
  readonly gpu: GPU;
  /**
   * Whether `adapter.features` names every feature. Where it does not, devices are opened to find out; where it
   * does, an adapter may open one device only.
   */
  readonly listsFeatures: boolean;
  /** Features of an adapter that multiplies on matrix units; empty where the implementation knows none. */
  readonly matrixFeatures: readonly string[];
  /** Why there may be no adapter and what to do, in one sentence. */
  readonly noAdapterMessage: string;
  /** What an adapter says of itself: its name, empty where it has none, and its driver where it can be known. */
  identify(
    info: GPUAdapterInfo,
  ): { readonly adapter: string; readonly driver?: string | undefined };
  /** A kernel's WGSL as this implementation takes it, behind the `enable` directives that it needs for the kernel's features. */
  textOf(kernel: Pick<Kernel, "wgsl" | "features">): string;
  /** Ends the provider. Devices made from it must be closed before. */
  close(): void;
}

/** WGSL behind one line of the `enable` directives of its features, where there are any. */
export function enabledText(
  { wgsl, features }: Pick<Kernel, "wgsl" | "features">,
  directives: Readonly<Record<string, string>>,
): string {
  const names = features.map((feature) => directives[feature]).filter((name) => name !== undefined);
  return names.length === 0 ? wgsl : `${names.map((name) => `enable ${name};`).join(" ")}\n${wgsl}`;
}

/** Why there is no adapter and what to do, in one sentence. */
export function noAdapterMessage(backend: Backend, os: string = Deno.build.os): string {
  if (os !== "linux") {
    const through = backend === "dawn" ? " through Dawn" : "";
    return `Cannot open a GPU${through}: the system offers no adapter`;
  }
  if (backend === "dawn") {
    return "Cannot open a GPU through Dawn: it accepts no Vulkan driver of this machine " +
      "(lavapipe before 23 is refused); without a GPU install SwiftShader, which Debian's package " +
      "chromium brings, and set VK_DRIVER_FILES=/usr/lib/chromium/vk_swiftshader_icd.json";
  }
  return "Cannot open a GPU: no Vulkan driver was found; install the GPU's own, or for the CPU " +
    "`apt-get install mesa-vulkan-drivers libvulkan1`";
}
