import { sliceBlocks, type SplitBlocks } from "../../kernels/slices/loop.ts";
import { type SlicePolicy, threadResults, workgroupThreads } from "../../kernels/slices/policy.ts";
import { deviceOf } from "../device/h200.ts";
import type { DeviceModel } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { depthSteps, isWholeDepth, type SlicedProduct } from "./product.ts";

/** Registers of a thread with up to 16 results, up to 64 and more. */
const REGISTERS = { thin: 64, few: 128, many: 256 };
/** Results of a thread that 64 and 128 registers hold. */
export const THIN_RESULTS = 16;
export const FEW_RESULTS = 64;

/** What of a policy runs on a multiprocessor at once. */
export interface Residents {
  /** Registers of a workgroup. */
  readonly registers: number;
  /** Workgroups. */
  readonly blocks: number;
  /** Warps of a workgroup; a thread of many results has as much to do side by side as two of few. */
  readonly warps: number;
}

/** Workgroups of a policy that a multiprocessor runs at once. */
export function residents(device: DeviceModel, policy: SlicePolicy, slices: number): Residents {
  const threads = workgroupThreads(policy, slices);
  const results = threadResults(policy, slices);
  const wide = results > FEW_RESULTS;
  const registers = threads *
    REGISTERS[wide ? "many" : results <= THIN_RESULTS ? "thin" : "few"];
  return {
    registers,
    blocks: Math.max(1, Math.floor(device.registers / registers)),
    warps: threads / 32 * (wide ? 2 : 1),
  };
}

/** Blocks of a product. */
export function productBlocks(
  { layout }: PlanRequest,
  { tiles, targets, groups }: SlicedProduct,
  policy: SlicePolicy,
): number {
  const lines = layout === "nhwc";
  return sliceBlocks({
    rows: lines ? tiles : targets,
    columns: lines ? targets : tiles,
    batches: groups,
  }, policy);
}

/**
 * The blocks whose depth a product's splits share: those behind whole waves of others, where sums of a whole depth are one; all of them
 * where not, or where the user says how many share a depth. None where whole waves hold all.
 */
export function splitBlocks(
  request: PlanRequest,
  product: SlicedProduct,
  policy: SlicePolicy,
): SplitBlocks | undefined {
  const { splits } = product;
  if (splits === 1) return undefined;
  const blocks = productBlocks(request, product, policy);
  const device = deviceOf(request);
  const wave = device.multiprocessors * residents(device, policy, product.slices).blocks;
  const auto = request.splits === undefined;
  const first = auto && isWholeDepth(request, product) ? Math.floor(blocks / wave) * wave : 0;
  const count = blocks - first;
  return count === 0 ? undefined : {
    first,
    count,
    splits,
    steps: depthSteps(product, policy.depth),
  };
}
