/** Feature names that change what a kernel may do; `adapter.features` of Deno hides some of them. */
export const COMPUTE_FEATURES: readonly string[] = [
  "timestamp-query",
  "shader-f16",
  "shader-f64",
  "subgroups",
  "wgpu-subgroup-barrier",
  "wgpu-shader-int64",
  "wgpu-shader-float32-atomic",
  "chromium-experimental-subgroup-matrix",
];

/** Opens a device with exactly these features, or nothing where one of them is refused. */
export async function tryDevice(
  adapter: GPUAdapter,
  features: readonly string[],
  requiredLimits: Record<string, number> = {},
): Promise<GPUDevice | undefined> {
  try {
    // Native names are known to the implementation but not to its types.
    const requiredFeatures = [...features] as GPUFeatureName[];
    return await adapter.requestDevice({ requiredFeatures, requiredLimits });
  } catch {
    return undefined;
  }
}

/**
 * Which of `names` the adapter grants. Deno's `adapter.features` leaves native features out, so those
 * are found by opening a device for each (about 15 ms). Dawn's list is complete, and its adapters
 * may open one device only.
 */
export async function grantedFeatures(
  adapter: GPUAdapter,
  names: readonly string[],
  listIsComplete: boolean,
): Promise<string[]> {
  const listed: ReadonlySet<string> = new Set(adapter.features);
  const granted: string[] = [];
  for (const name of names) {
    if (listed.has(name)) granted.push(name);
    if (listed.has(name) || listIsComplete) continue;
    const device = await tryDevice(adapter, [name]);
    if (device === undefined) continue;
    device.destroy();
    granted.push(name);
  }
  return granted;
}
