import type { DeviceLimits } from "../algorithms/plan.ts";
import { UnsupportedError } from "../errors.ts";
import { nvidiaDriverVersion } from "./drivers.ts";
import type { Backend, GpuProvider } from "./provider.ts";

/** What is known of the adapter a device came from. */
export interface AdapterSummary {
  /** Its name, e.g. `NVIDIA H200`. */
  readonly adapter: string;
  /** Vendor as the backend writes it: a decimal PCI id through wgpu, a word through Dawn. */
  readonly vendor: string;
  readonly backend: Backend;
  /** Whether it computes on the CPU. */
  readonly software: boolean;
  /** The driver's version or name, where it can be read. */
  readonly driver?: string;
}

/** The limits a device is opened with at the adapter's values. */
export const LIMIT_NAMES = [
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupsPerDimension",
  "maxStorageBufferBindingSize",
  "maxBufferSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
] as const;

const SOFTWARE = /llvmpipe|lavapipe|swiftshader|software|WARP/i;
const NVIDIA = new Set(["4318", "nvidia"]);

/**
 * Asks the provider for an adapter.
 *
 * @throws {UnsupportedError} where there is none, with what to install
 */
export async function findAdapter(
  provider: GpuProvider,
  forceFallback: boolean,
): Promise<{ adapter: GPUAdapter; info: AdapterSummary }> {
  const adapter = await requestAdapter(provider, forceFallback);
  if (adapter === null) throw new UnsupportedError(noAdapterMessage(provider.name));
  return { adapter, info: summarize(adapter, provider.name) };
}

/** The provider's adapter, or null; what an implementation throws for "none" is null too. */
export async function requestAdapter(
  provider: GpuProvider,
  forceFallback: boolean,
): Promise<GPUAdapter | null> {
  try {
    return await provider.gpu.requestAdapter({
      powerPreference: "high-performance",
      forceFallbackAdapter: forceFallback,
    });
  } catch {
    return null;
  }
}

/** What an adapter says of itself, in one form for both backends. */
export function summarize(adapter: GPUAdapter, backend: Backend): AdapterSummary {
  const { description, device, vendor, isFallbackAdapter } = adapter.info;
  // Dawn's description is the driver's and its device the name; wgpu's device is a number.
  const name = (backend === "dawn" ? device || description : description) || "unnamed adapter";
  const driver = backend === "dawn"
    ? description
    : NVIDIA.has(vendor)
    ? nvidiaDriverVersion()
    : undefined;
  return {
    adapter: name,
    vendor,
    backend,
    software: isFallbackAdapter || SOFTWARE.test(`${name} ${description}`),
    ...(driver ? { driver } : {}),
  };
}

/** Picks the limits that planning depends on. */
export function readLimits(limits: GPUSupportedLimits): DeviceLimits {
  return {
    maxComputeWorkgroupStorageSize: limits.maxComputeWorkgroupStorageSize,
    maxComputeInvocationsPerWorkgroup: limits.maxComputeInvocationsPerWorkgroup,
    maxComputeWorkgroupsPerDimension: limits.maxComputeWorkgroupsPerDimension,
    maxStorageBufferBindingSize: limits.maxStorageBufferBindingSize,
    maxBufferSize: limits.maxBufferSize,
    maxStorageBuffersPerShaderStage: limits.maxStorageBuffersPerShaderStage,
  };
}

/** Why there is no adapter and what to do, in one sentence. */
export function noAdapterMessage(backend: Backend): string {
  if (backend === "dawn") {
    return "Cannot open a GPU through Dawn: it accepts no Vulkan driver of this machine " +
      "(lavapipe before 23 is refused); without a GPU install SwiftShader, which Debian's package " +
      "chromium brings, and set VK_DRIVER_FILES=/usr/lib/chromium/vk_swiftshader_icd.json";
  }
  if (Deno.build.os !== "linux") return "Cannot open a GPU: the system offers no adapter";
  return "Cannot open a GPU: no Vulkan driver was found; install the GPU's own, or for the CPU " +
    "`apt-get install mesa-vulkan-drivers libvulkan1`";
}
