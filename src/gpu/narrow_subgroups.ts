import type { Kernel } from "../kernels/kernel.ts";
import { SUBGROUP_SIZE_FEATURE } from "../kernels/matrix_units.ts";

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
