import { UnsupportedError } from "../errors.ts";
import { findAdapter, LIMIT_NAMES, readLimits, readMatrixUnits } from "./adapter.ts";
import { grantedFeatures, tryDevice } from "./features.ts";
import { GpuDevice } from "./gpu_device.ts";
import type { GpuProvider } from "./provider.ts";

/** What a device is to be. */
export interface OpenOptions {
  /** Features the device must have, e.g. `shader-f16`. */
  readonly features?: readonly string[];
  /** Features taken where the adapter grants them. `timestamp-query` always is one. */
  readonly optionalFeatures?: readonly string[];
  /** What the provider is asked for; its fastest adapter where absent. */
  readonly request?: GPURequestAdapterOptions;
}

/**
 * Opens a provider's device with the adapter's own limits for everything in `DeviceLimits`.
 *
 * @throws {UnsupportedError} naming what is missing: the adapter, or features
 */
export async function openOn(
  provider: GpuProvider,
  options: OpenOptions = {},
): Promise<GpuDevice> {
  const { adapter, info } = await findAdapter(provider, options.request);
  const required = options.features ?? [];
  const optional = [
    "timestamp-query",
    ...provider.matrixFeatures,
    // What matrix units multiply.
    ...(provider.matrixFeatures.length > 0 ? ["shader-f16"] : []),
    ...options.optionalFeatures ?? [],
  ];
  let features = [...new Set([...required, ...optional])];
  const limits = requestedLimits(adapter);
  // All at once first: finding out one by one costs a device each.
  let device = provider.listsFeatures ? undefined : await tryDevice(adapter, features, limits);
  if (device === undefined) {
    const granted = await grantedFeatures(adapter, features, provider.listsFeatures);
    const missing = required.filter((name) => !granted.includes(name));
    if (missing.length > 0) {
      throw new UnsupportedError(
        `Cannot open the device: ${info.adapter} (${provider.name}) has no ${missing.join(", ")}`,
      );
    }
    features = granted;
    device = await tryDevice(adapter, features, limits);
  }
  if (device === undefined) {
    throw new UnsupportedError(
      `Cannot open the device: ${info.adapter} (${provider.name}) refuses its own limits and features`,
    );
  }
  return new GpuDevice({
    provider,
    device,
    info,
    limits: readLimits(device.limits),
    matrixUnits: readMatrixUnits(adapter, provider, features),
    features: new Set(features),
  });
}

/** The adapter's values of the limits kernels may use. */
function requestedLimits(adapter: GPUAdapter): Record<string, number> {
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, adapter.limits[name]]));
}
