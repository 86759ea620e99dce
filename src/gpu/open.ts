import { DEFAULT_LIMITS, type DeviceLimits } from "../algorithms/plan.ts";
import { InputTypeError, UnsupportedError } from "../errors.ts";
import { said } from "../expect.ts";
import { SUBGROUP_SIZE_FEATURE } from "../kernels/matrix_units.ts";
import { grantedFeatures, narrowSize, tryDevice } from "./features.ts";
import { findAdapter, LIMIT_NAMES, readLimits, readMatrixUnits, summarize } from "./adapter.ts";
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
  /**
   * An application's own device, opened by the same WebGPU, to compute on with the features and limits that it has. It is never
   * destroyed: closing leaves it as it is. Errors of it that no scope catches fail the next call, whatever work they are of.
   */
  readonly device?: GPUDevice;
}

/**
 * Opens a provider's device with the adapter's own limits for everything in `DeviceLimits`.
 *
 * @throws {TypeError} where the device that is given is none
 * @throws {UnsupportedError} naming what is missing: the adapter, features, or limits
 */
export async function openOn(
  provider: GpuProvider,
  options: OpenOptions = {},
): Promise<GpuDevice> {
  if (options.device !== undefined) return adopt(provider, options.device, options);
  const { adapter, info } = await findAdapter(provider, options.request);
  const required = options.features ?? [];
  const optional = [
    "timestamp-query",
    ...provider.matrixFeatures,
    // What matrix units multiply, and how many threads do.
    ...(provider.matrixFeatures.length > 0 ? ["shader-f16", SUBGROUP_SIZE_FEATURE] : []),
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
    subgroupSize: narrowSize(adapter.info, features),
  });
}

/** Takes an application's device as it is. */
function adopt(
  provider: GpuProvider,
  device: GPUDevice,
  { features: required = [], request }: OpenOptions,
): GpuDevice {
  const doing = "Cannot open the device";
  if (typeof device?.createComputePipelineAsync !== "function") {
    throw new InputTypeError(`${doing}: it is ${said(device)}, expected a GPUDevice`);
  }
  if (request !== undefined) {
    throw new InputTypeError(`${doing}: it is given, so that request has no adapter to choose`);
  }
  // Deno puts its name before native features of a device.
  const features = [...device.features].flatMap((name) => [name, name.replace(/^wgpu-/, "")]);
  const missing = required.filter((name) => !features.includes(name));
  if (missing.length > 0) {
    throw new UnsupportedError(
      `${doing}: it was made without ${missing.join(", ")}, ask for that in requiredFeatures`,
    );
  }
  const limits = readLimits(device.limits);
  const small = (Object.keys(DEFAULT_LIMITS) as (keyof DeviceLimits)[])
    .find((name) => !(limits[name] >= DEFAULT_LIMITS[name]));
  if (small !== undefined) {
    throw new UnsupportedError(
      `${doing}: its ${small} is ${limits[small]}, at least ${DEFAULT_LIMITS[small]} is needed`,
    );
  }
  return new GpuDevice({
    provider,
    device,
    info: summarize({ info: device.adapterInfo }, provider),
    limits,
    matrixUnits: readMatrixUnits({ info: device.adapterInfo }, provider, features),
    features: new Set(features),
    adopted: true,
  });
}

/** The adapter's values of the limits kernels may use. */
function requestedLimits(adapter: GPUAdapter): Record<string, number> {
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, adapter.limits[name]]));
}
