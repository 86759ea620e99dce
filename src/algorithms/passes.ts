import { foldGrid, type SizedKernel, type SizeMode } from "../kernels/module.ts";
import {
  type ReduceShape,
  reduceSplitsKernel,
  reduceTilesKernel,
  type TilePartials,
} from "../kernels/reduce.ts";
import type { EpilogueFactory } from "../kernels/epilogue.ts";
import { canonicalName } from "../kernels/kernel.ts";
import type { Scalar } from "../elements/scalar.ts";
import type { DeviceLimits, Pass, Plan, PlanBinding } from "./plan.ts";
import { type Refusal, refusal } from "./refusal.ts";
import type { BufferList } from "./tensors.ts";

/**
 * A pass of a kernel.
 *
 * @param places For each tensor name the kernel binds, the plan's buffer, or bindings of a part of it.
 */
export function pass(
  { kernel, tensors, workgroups, uniforms, iterations, tooLarge }: SizedKernel,
  buffers: BufferList,
  places: Readonly<Record<string, number | readonly PlanBinding[] | undefined>>,
  limits: DeviceLimits,
  multiplications = 0,
): Pass {
  const bindings = tensors.flatMap((name) => {
    const place = places[name];
    if (place === undefined) {
      throw new Error(`Cannot plan: no buffer for ${name} of ${kernel.name}`);
    }
    return typeof place === "number" ? buffers.bindings(place) : place;
  });
  if (tooLarge !== undefined) {
    const name = canonicalName(kernel);
    buffers.refuse(refusal("problem", `${name}: ${tooLarge}, kernels count up to 2^32`));
  }
  const grid = foldGrid(workgroups, limits.maxComputeWorkgroupsPerDimension);
  if (grid === undefined) {
    buffers.refuse(refusal("limit", `${workgroups} workgroups exceed the device's grid`));
  }
  return {
    kernel,
    bindings,
    ...(uniforms === undefined ? {} : { uniforms }),
    grid: grid ?? [1, 1, 1],
    multiplications,
    iterations,
  };
}

/** The pass that sums the partial results of split depth and finishes them. */
export function reducePass(
  shape: ReduceShape,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  buffers: BufferList,
  places: { partials: number; result: number } & Readonly<Record<string, number | undefined>>,
  limits: DeviceLimits,
  element: Scalar,
  onto = false,
): Pass {
  const splits = {
    partials: buffers.split(places.partials),
    result: buffers.split(places.result),
  };
  const kernel = reduceSplitsKernel(shape, mode, epilogue, splits, element, onto);
  return pass(kernel, buffers, places, limits);
}

/**
 * The pass that sums the partial results of a range of tiles and finishes them.
 *
 * @param rowIndex As `reduceTilesKernel()` has it.
 */
export function reduceTilesPass(
  shape: TilePartials,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  buffers: BufferList,
  places: { partials: number; result: number } & Readonly<Record<string, number | undefined>>,
  limits: DeviceLimits,
  element: Scalar,
  rowIndex?: Parameters<typeof reduceTilesKernel>[5],
): Pass {
  const splits = {
    partials: buffers.split(places.partials),
    result: buffers.split(places.result),
  };
  const kernel = reduceTilesKernel(shape, mode, epilogue, splits, element, rowIndex);
  return pass(kernel, buffers, places, limits);
}

/** Refuses a plan whose kernels have more bindings than the device. */
export function refuseBindings(
  { passes }: Pick<Plan, "passes">,
  { maxStorageBuffersPerShaderStage: most }: DeviceLimits,
): Refusal | undefined {
  const one = passes.find(({ bindings }) => bindings.length > most);
  return one && refusal(
    "limit",
    `kernel ${one.kernel.name} binds ${one.bindings.length} storage buffers, ` +
      `the device's maxStorageBuffersPerShaderStage is ${most}`,
  );
}
