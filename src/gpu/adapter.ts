import type { DeviceLimits } from "../algorithms/plan.ts";
import { UnsupportedError } from "../errors.ts";
import {
  type MatrixUnit,
  type MatrixUnits,
  SUBGROUP_SIZE_FEATURE,
} from "../kernels/matrix_units.ts";
import type { GpuProvider, ProviderName } from "./provider.ts";

/** What is known of the adapter a device came from. */
export interface AdapterSummary {
  /** Its name, e.g. `NVIDIA H200`. */
  readonly adapter: string;
  /** Vendor as the backend writes it: a decimal PCI id through wgpu, a word through Dawn. */
  readonly vendor: string;
  /** What it was reached through. */
  readonly backend: ProviderName;
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

/** Whether a name is that of a driver for the CPU. */
export function isSoftwareName(name: string): boolean {
  return /llvmpipe|lavapipe|swiftshader|software|WARP/i.test(name);
}

/**
 * Asks the provider for an adapter.
 *
 * @throws {UnsupportedError} where there is none, with what to install
 */
export async function findAdapter(
  provider: GpuProvider,
  request?: GPURequestAdapterOptions,
): Promise<{ adapter: GPUAdapter; info: AdapterSummary }> {
  const adapter = await requestAdapter(provider, request);
  if (adapter === null) throw new UnsupportedError(provider.noAdapterMessage);
  return { adapter, info: summarize(adapter, provider) };
}

/** The provider's adapter, or null; what an implementation throws for "none" is null too. */
export async function requestAdapter(
  provider: GpuProvider,
  request: GPURequestAdapterOptions = { powerPreference: "high-performance" },
): Promise<GPUAdapter | null> {
  try {
    return await provider.gpu.requestAdapter(request);
  } catch {
    return null;
  }
}

/** What an adapter says of itself, in one form for all providers. */
export function summarize(
  adapter: Pick<GPUAdapter, "info">,
  provider: GpuProvider,
): AdapterSummary {
  const { description, vendor, isFallbackAdapter } = adapter.info;
  const { adapter: name, driver } = provider.identify(adapter.info);
  return {
    adapter: name || "unnamed adapter",
    vendor,
    backend: provider.name,
    software: isFallbackAdapter || isSoftwareName(`${name} ${description}`),
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

/** One of the matrix products of an adapter, as Dawn names its parts. */
interface SubgroupMatrixConfig {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** Operands and sums of the matrix products that kernels use. */
const UNIT_TYPES = ["f16 f32", "i8 i32"];

/**
 * The matrix units of an adapter whose features were granted; undefined without. Where subgroups are of several sizes, kernels fix the
 * least, in which AMD's and Intel's multiply.
 */
export function readMatrixUnits(
  { info }: Pick<GPUAdapter, "info">,
  { matrixFeatures }: Pick<GpuProvider, "matrixFeatures">,
  granted: readonly string[],
): MatrixUnits | undefined {
  const { vendor, subgroupMinSize, subgroupMaxSize } = info;
  const has = matrixFeatures.length > 0 && matrixFeatures.every((name) => granted.includes(name));
  const fixesSubgroups = subgroupMinSize !== subgroupMaxSize;
  if (!has || fixesSubgroups && !granted.includes(SUBGROUP_SIZE_FEATURE)) return undefined;
  // Not in WebGPU's types yet.
  const { subgroupMatrixConfigs = [] } = info as GPUAdapterInfo & {
    readonly subgroupMatrixConfigs?: Iterable<SubgroupMatrixConfig>;
  };
  const units = [...subgroupMatrixConfigs]
    .map(({ componentType, resultComponentType, M, N, K }) => ({
      component: componentType as MatrixUnit["component"],
      result: resultComponentType as MatrixUnit["result"],
      m: M,
      n: N,
      k: K,
      ...(fixesSubgroups && { fixesSubgroups }),
    }))
    .filter(({ component, result }) => UNIT_TYPES.includes(`${component} ${result}`))
    .filter(({ component }) => component !== "f16" || granted.includes("shader-f16"));
  if (units.length === 0) return undefined;
  return { lanes: subgroupMinSize, units, ...(vendor === "nvidia" && { cutsOff: true }) };
}
