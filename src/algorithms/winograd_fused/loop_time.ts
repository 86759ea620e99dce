import { sliceWorkgroups } from "../../kernels/slices/loop.ts";
import { type SlicePolicy, slicePolicyName, sliceThreads } from "../../kernels/slices/policy.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, productTime, waveTime } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { resultBytes } from "../tensors.ts";
import { chainSteps, imageVectors, type SlicedProduct } from "./product.ts";

/** Registers of a thread with up to 16 results, up to 64 and more. */
const REGISTERS = { thin: 64, few: 128, many: 256 };
/** Places of a small tile, of one slice. */
const SMALL_TILE = 1024;
/** Results of a thread that 64 and 128 registers hold. */
const THIN_RESULTS = 16;
const FEW_RESULTS = 64;

/** What a workgroup takes before its first product, in steps of its loop. */
const FILL_STEPS = 0.5;

/** Whether channels lie innermost. */
function isLines({ layout }: PlanRequest): boolean {
  return layout === "nhwc";
}

/** What policies reach of each other where that is measured, by name. */
export function policyShares(
  request: PlanRequest,
  tile: string,
): Readonly<Record<string, number>> {
  const { policies } = deviceOf(request).shares.sliced;
  return policies[imageVectors(request) ? "images" : isLines(request) ? "lines" : "scattered"][
    tile
  ] ?? {};
}

/** Microseconds of a policy's main loop: waves of workgroups, each of which multiplies and stores its results, part by part. */
export function loopTime(
  request: PlanRequest,
  product: SlicedProduct,
  policy: SlicePolicy,
): number {
  const { slices, tiles, targets, axes, splits } = product;
  const { longest, chain, chains } = chainSteps(request, product, policy.depth);
  const device = deviceOf(request);
  const lines = isLines(request);
  const workgroups = sliceWorkgroups({
    rows: lines ? tiles : targets,
    columns: lines ? targets : tiles,
    batches: product.groups * splits,
  }, policy);
  const threads = sliceThreads(policy) * slices;
  const results = policy.threadRows * policy.threadColumns;
  const wide = results > FEW_RESULTS;
  const thin = results <= THIN_RESULTS;
  const registers = threads * REGISTERS[wide ? "many" : thin ? "thin" : "few"];
  const resident = Math.max(1, Math.floor(device.registers / registers));
  const places = policy.rows * policy.columns;
  const { rates, shares, multiprocessors } = device;
  const { one, oneWide, two } = rates.sliced;
  // Of a policy that was not measured no more is expected than of the slowest that was.
  const known = policyShares(request, product.tile);
  const rate = (axes > 1 ? two : wide ? oneWide : one) *
    (known[slicePolicyName(policy)] ?? Math.min(1, ...Object.values(known))) *
    (registers > device.registers ? shares.sliced.spilled : 1) *
    (chains === "whole" ? 1 : shares.sliced[chains === "registers" ? "flushed" : "stored"]) *
    (thin ? shares.sliced.thin : axes === 1 && places <= SMALL_TILE ? shares.sliced.small : 1);
  const multiply = productTime(
    multiprocessors * places * slices * (longest + FILL_STEPS) * policy.depth,
    rate,
  );
  const parts = chains === "stored" ? Math.ceil(longest / chain) : 1;
  const store = parts * moveTime(
    resultBytes(request) * multiprocessors * places * product.results,
    lines || imageVectors(request) ? rates.slicedStore.lines : rates.slicedStore.scattered,
  );
  // A thread of many results has as much to do side by side as two of few.
  const warps = threads / 32 * (wide ? 2 : 1);
  return multiply * waveTime(device, workgroups, resident, warps) +
    store * Math.ceil(workgroups / multiprocessors);
}
