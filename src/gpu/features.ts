import type { Kernel } from "../kernels/kernel.ts";
import { SUBGROUP_SIZE_FEATURE } from "../kernels/matrix_units.ts";

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

/** Subgroups of a workgroup at most: Intel's drivers allow 64. */
const MOST_SUBGROUPS = 64;

/**
 * The size of subgroups that kernels should have which say none: the least of an Intel GPU with several. All threads of a subgroup
 * share its registers, so that those of the narrowest have the most; Intel's compiler takes the widest that spills nothing by
 * itself, but Dawn asks it for one twice as wide as the least. Undefined elsewhere.
 */
export function narrowSize(
  { vendor, subgroupMinSize, subgroupMaxSize }: GPUAdapterInfo,
  granted: readonly string[],
): number | undefined {
  const several = vendor === "intel" && subgroupMinSize < subgroupMaxSize;
  return several && granted.includes(SUBGROUP_SIZE_FEATURE) ? subgroupMinSize : undefined;
}

/** The kernel with subgroups of a size; as it is where it says one, is a user's, or has too many threads for that. */
export function narrowSubgroups(kernel: Kernel, size: number | undefined): Kernel {
  const { wgsl, features, file, workgroupSize: [across, down, deep] } = kernel;
  const own = file !== undefined || features.includes(SUBGROUP_SIZE_FEATURE);
  if (
    size === undefined || own || across % size !== 0 || across * down * deep > MOST_SUBGROUPS * size
  ) return kernel;
  return {
    ...kernel,
    features: [...new Set([...features, "subgroups", SUBGROUP_SIZE_FEATURE])],
    wgsl: wgsl.replace(/@compute @workgroup_size\([^)]*\)/, `$& @subgroup_size(${size})`),
  };
}
