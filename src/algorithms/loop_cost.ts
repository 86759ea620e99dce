import { dealsRows, vectorSide } from "../kernels/loader.ts";
import { policyThreads, type TilePolicy } from "../kernels/policy.ts";
import { type DeviceModel, policyWarps, residentWorkgroups, waveTime } from "./device/model.ts";
import type { Product, TileAccess } from "./product.ts";

/** A software device gains nothing from large tiles, and pays for compiling what they unroll. */
export const FEW_MULTIPROCESSORS = 16;

/** What a tile costs there beside its steps. */
const SMALL_DEVICE = { fill: 2, store: 0 };

/** Share of the best rate that the policy's inner loop reaches on these operands. */
function efficiencyOf(
  { shares }: DeviceModel,
  policy: TilePolicy,
  { a, b }: Product,
): number {
  const threads = policyThreads(policy);
  const side = (access: TileAccess, extent: number) => {
    if (access.packing?.(policy) !== undefined) return 1;
    const across = vectorSide(access) === "depth" && extent >= 128 ? shares.storedAcross : 1;
    const loader = { ...access, vector: access.vector ?? 1 };
    return dealsRows(loader, extent, policy.depth, threads)
      ? across
      : across * shares.dealtUnevenly;
  };
  return (shares.policies[policy.name] ?? 1) * side(a, policy.rows) * side(b, policy.columns);
}

/** Cost, in multiply-adds of a fully used device, of workgroups of at most so many steps, and of filling and storing a tile. */
export function loopCost(
  device: DeviceModel,
  product: Product,
  policy: TilePolicy,
  workgroups: number,
  steps: number,
): number {
  const { multiprocessors } = device;
  const { share = 1 } = product;
  const few = multiprocessors < FEW_MULTIPROCESSORS;
  const { fill, store } = few ? SMALL_DEVICE : device.costs;
  const one = (steps: number) =>
    policy.rows * policy.columns * (policy.depth * (steps + fill) + store);
  if (few) return multiprocessors * one(steps * share) * Math.ceil(workgroups / multiprocessors);
  const warps = policyWarps(policy);
  const time = (count: number) => waveTime(device, count, residentWorkgroups(device, warps), warps);
  // Of uneven tiles none is done before the deepest is.
  const work = Math.max(
    one(steps * share) * time(workgroups),
    one(steps) * time(Math.min(workgroups, 1)),
  );
  return multiprocessors * (work / efficiencyOf(device, policy, product));
}
