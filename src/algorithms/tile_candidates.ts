import { policyVector, tapReach, tapRingOf, tapRowOf, vectorSide } from "../kernels/loader.ts";
import { productBytes } from "../kernels/product_kernel.ts";
import type { KernelVariant } from "../kernels/variant.ts";
import {
  GATHERED_POLICY_NAMES,
  HALF_POLICY_NAMES,
  isMatrixPolicyName,
  isMatrixTile,
  LOADED,
  MATRIX_POLICY_NAMES,
  matrixPolicies,
  parseMatrixPolicy,
  TAP_POLICY_NAMES,
  type TapWalk,
} from "../kernels/matrix_policies.ts";
import { unitDepth, unitShape } from "../kernels/matrix_units.ts";
import {
  findPolicy,
  policyThreads,
  THIN_POLICIES,
  TILE_POLICIES,
  type TilePolicy,
} from "../kernels/policy.ts";
import { fitsPart } from "../kernels/tile_scheduler.ts";
import { suggestion } from "../problem/closest.ts";
import { deviceOf } from "./device/h200.ts";
import { weighsPolicy } from "./device/model.ts";
import type { DeviceLimits } from "./plan.ts";
import type { OperandAccess, Product } from "./product.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

/** Whether a device can run the mainloop with this policy, these tile loaders and the variant's buffers. */
export function policyFits(
  policy: TilePolicy,
  limits: DeviceLimits,
  a: OperandAccess,
  b: OperandAccess,
  variant?: KernelVariant,
): boolean {
  // Whether loads are of four halves or of eight is their loaders' to say, and with it how tiles lie, but of operands that say what they
  // step over. Of rows of taps B takes whole vectors alone.
  const wide = ({ vector = 1, ...access }: OperandAccess, steps: readonly number[] = []) => ({
    ...access,
    vector: vector === 8 ? vector : policyVector(policy, vector, steps),
  });
  const taps = b.sharedTaps !== undefined;
  const known = taps || a.steps !== undefined && b.steps !== undefined;
  const bytes = known
    ? productBytes(policy, wide(a, a.steps), wide(b, taps ? [] : b.steps), variant)
    : Math.max(
      productBytes(policy, a, b, variant),
      productBytes(policy, wide(a), wide(b), variant),
    );
  return policyThreads(policy) <= limits.maxComputeInvocationsPerWorkgroup &&
    bytes <= limits.maxComputeWorkgroupStorageSize;
}

/**
 * Registers of a thread for sums and what a ring's taps keep, beside which an H200's compiler still finds those for loads and places
 * (84 to 101 of tiles of 128x192x64).
 */
const RING_REGISTERS = 144;

/** Whether a thread's registers hold what a ring's taps keep. */
function keepsRing({ matrix, depth }: TilePolicy, { b }: Product): boolean {
  const tapRing = tapRingOf(b);
  if (matrix === undefined || tapRing === undefined) return true;
  const { unit, lanes, matrices: [rows, columns] } = matrix;
  const sums = rows * columns * unit.m * unit.n / lanes;
  // Halves, two to a register.
  const kept = columns / tapRing.taps * tapReach(tapRing) * depth * unit.n / lanes / 2;
  return sums + kept <= RING_REGISTERS;
}

export type TileRequest = Pick<PlanRequest, "schedule" | "limits" | "device">;

/** The policy that is asked for, or all that the device can run and are worth weighing. Refused if what is asked for is none, or does not fit. */
export function tileCandidates(
  request: TileRequest,
  product: Product,
): Planned<readonly TilePolicy[]> {
  const { limits } = request;
  const { matrix } = product;
  const row = tapRingOf(product.b)?.row?.steps;
  // Parts of sums are of whole rows, where a product has such.
  const fits = (policy: TilePolicy) =>
    policyFits(policy, limits, product.a, product.b, request.schedule) &&
    (row === undefined || fitsPart(policy, matrix?.chain, row));
  const matrices = matrix === undefined
    ? []
    : matrixPolicies(matrix.unit, matrix.lanes, matrix.split, tapWalk(product));
  if (request.schedule?.policy !== undefined) {
    const policy = namedPolicy(request.schedule?.policy, product, matrices);
    if (isRefusal(policy)) return policy;
    if (fits(policy)) return [policy];
    return refusal(
      "limit",
      `policy ${policy.name} does not fit the device's ` +
        `${limits.maxComputeWorkgroupStorageSize} bytes of workgroup memory and ` +
        `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    );
  }
  const device = deviceOf(request);
  const weighed = (policies: readonly TilePolicy[]) =>
    policies.filter((policy) =>
      weighsPolicy(device, policy) && fits(policy) && keepsRing(policy, product) &&
      // Nothing is gained by a step of all the depth.
      (policy.deeper === undefined || product.steps(policy) > 1)
    );
  const halves = matrix?.unit.component === "f16" && !matrix.split;
  const units = weighed(
    halves ? matrices : matrices.filter(({ name }) => !HALF_POLICY_NAMES.includes(name)),
  );
  // Where there are matrix units, all but the thin ones are slower.
  const candidates = unitsAlone(product)
    ? units
    : units.length > 0
    ? [...units, ...weighed(TILE_POLICIES.filter(({ name }) => THIN_POLICIES.includes(name)))]
    : weighed(TILE_POLICIES);
  return candidates.some((policy) => product.elements * product.steps(policy) === 0)
    ? candidates.slice(0, 1)
    : candidates;
}

/** How a product walks taps. */
function tapWalk({ matrix, b }: Product): TapWalk {
  const halves = matrix?.unit.component === "f16" && !matrix.split;
  const gathered = b.gathered && halves && vectorSide(b) === "depth";
  return { row: tapRowOf(b)?.taps, ring: tapRingOf(b)?.taps, gathered };
}

/** What of a product only matrix units multiply, in a refusal of others. */
function unitsAlone({ matrix, b }: Product): string | undefined {
  return matrix?.split
    ? "math f16x3 multiplies on"
    : b.sharedTaps === undefined
    ? undefined
    : "rows of taps are multiplied on";
}

function namedPolicy(
  name: string,
  product: Product,
  matrices: readonly TilePolicy[],
): Planned<TilePolicy> {
  const { matrix, b } = product;
  const [tapRow, tapRing] = [tapRowOf(b), tapRingOf(b)];
  const policy = matrices.find((one) => one.name === name) ??
    (matrix &&
      parseMatrixPolicy(name, matrix.unit, matrix.lanes, matrix.split, tapWalk(product))) ??
    findPolicy(name);
  const alone = unitsAlone(product);
  if (policy !== undefined && policy.matrix === undefined && alone !== undefined) {
    return refusal("problem", `policy ${policy.name} has no matrix units, which ${alone}`);
  }
  if (tapRow !== undefined && matrix !== undefined) {
    const one = Math.max(LOADED, unitDepth(matrix.unit));
    // Of policies with a name those of one matrix's depth alone are none of rows.
    const depth = policy?.depth ?? (MATRIX_POLICY_NAMES.includes(name) ? one : undefined);
    if (depth !== undefined && depth % (tapRow.taps * one) !== 0) {
      return refusal(
        "problem",
        `policy ${name} has steps of ${depth}, rows of ${tapRow.taps} taps take multiples of ${
          tapRow.taps * one
        }`,
      );
    }
  }
  // Of policies with a name those that rings cannot use are none of theirs.
  const across = policy?.matrix?.matrices[1] ??
    (isMatrixPolicyName(name) && !isMatrixTile(name) ? 1 : undefined);
  if (tapRing !== undefined && across !== undefined && across % tapRing.taps !== 0) {
    return refusal(
      "problem",
      `policy ${name} has no steps of two matrices' depth whose subgroups have multiples of ${tapRing.taps} ` +
        `matrices beside each other, as rows of ${tapRing.taps} taps take them`,
    );
  }
  return policy ?? noPolicy(name, product, matrices);
}

function noPolicy(name: string, { matrix }: Product, matrices: readonly TilePolicy[]): Refusal {
  if (isMatrixPolicyName(name)) {
    if (matrix === undefined) {
      return refusal(
        "limit",
        `policy ${name} wants matrix units for the types, and there are none: wgconv devices ` +
          "--backend dawn lists a device's",
      );
    }
    if (TAP_POLICY_NAMES.includes(name)) {
      return refusal(
        "problem",
        `policy ${name} multiplies rows of taps, which f16 and int8 in nhwc have with 2 to 7 taps and stride 1 along the last axis, of backward-filter ` +
          "with 2 to 5 on tiles with a multiple of so many matrices beside each other in a subgroup" +
          (GATHERED_POLICY_NAMES.includes(name)
            ? ", and images of such that are read tap by tap"
            : ""),
      );
    }
    return refusal(
      "problem",
      matrix.split && MATRIX_POLICY_NAMES.includes(name)
        ? `policy ${name} has steps of an odd number of matrices, math f16x3 takes them in pairs, of high and ` +
          "of low halves"
        : `policy ${name} is no tile of ${unitShape(matrix.unit)} matrices, expected one ` +
          `such as 128x256x32_64x64m (rows x columns x depth of a workgroup${
            matrix.split ? ", of an even number of matrices" : ""
          }, rows x columns of ` +
          "a subgroup: whole matrices, up to 256 results a thread, whose sums fall to whole " +
          "vectors of its threads, in 16 KiB)",
    );
  }
  const names = [...TILE_POLICIES, ...matrices].map(({ name }) => name);
  return refusal(
    "problem",
    /^\d+x\d/.test(name)
      ? `policy ${name} is no tile such as 128x32x8_8x4 (rows x columns x depth of a ` +
        "workgroup, rows x columns of a thread: multiples of 4 that divide the workgroup's, " +
        "up to 256 in all, whose threads fill warps of 32)"
      : `policy ${name} is none of ${names.join(", ")}, nor a tile such as ` +
        `128x32x8_8x4${suggestion(name, names)}`,
  );
}
