import { type SlicePolicy, slicePolicyName } from "../../kernels/slices/policy.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, productTime, waveTime } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { partCount } from "../../kernels/slices/split_blocks.ts";
import { partialBytes, resultBytes } from "../tensors.ts";
import { FEW_RESULTS, productBlocks, residents, splitBlocks, THIN_RESULTS } from "./split.ts";
import { chainSteps, imageVectors, type SlicedProduct } from "./product.ts";

/** Places of a small tile, of one slice. */
const SMALL_TILE = 1024;

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
  const { slices, axes, joined, aligned } = product;
  const device = deviceOf(request);
  const lines = isLines(request);
  const results = policy.threadRows * policy.threadColumns;
  const wide = results > FEW_RESULTS;
  const thin = results <= THIN_RESULTS;
  const { registers, blocks: resident, warps } = residents(device, policy, slices);
  const places = policy.rows * policy.columns;
  const { rates, shares, multiprocessors } = device;
  const { one, oneWide, two } = rates.sliced;
  // Of a policy that was not measured no more is expected than of the slowest that was.
  const known = policyShares(request, product.tile);
  const rate = (axes > 1 ? two : wide ? oneWide : one) *
    (known[slicePolicyName(policy)] ?? Math.min(1, ...Object.values(known))) *
    (registers > device.registers ? shares.sliced.spilled : 1) *
    (joined ? shares.sliced.joined : 1) *
    (thin ? shares.sliced.thin : axes === 1 && places <= SMALL_TILE ? shares.sliced.small : 1);
  /** Of so many workgroups, whose depth so many share in so many spans a workgroup: these store vectors side by side in all layouts. */
  const time = (workgroups: number, splits: number, spans = 1) => {
    const { longest, chain, chains } = chainSteps(request, { ...product, splits }, policy.depth);
    const summed = chains === "whole"
      ? 1
      : shares.sliced[chains === "registers" ? "flushed" : "stored"];
    const multiply = productTime(
      multiprocessors * places * slices * (longest + spans * FILL_STEPS) * policy.depth,
      rate * summed,
    );
    const parts = spans * (chains === "stored" ? Math.ceil(longest / chain) : 1);
    const bytes = splits > 1 ? partialBytes(request) : resultBytes(request);
    const store = parts * moveTime(
      bytes * multiprocessors * places * product.results,
      lines || splits > 1 || imageVectors(request)
        ? rates.slicedStore.lines
        : rates.slicedStore.scattered *
          (axes > 1 || request.layout !== "nchw"
            ? 1
            : shares.sliced.rowStores[aligned ? "fours" : "cut"]),
    );
    return multiply * waveTime(device, workgroups, resident, warps) +
      store * Math.ceil(workgroups / multiprocessors);
  };
  const blocks = productBlocks(request, product, policy);
  const split = splitBlocks(request, product, policy);
  if (split === undefined) return time(blocks, 1);
  const { count, workgroups } = split;
  const shared = time(workgroups, workgroups / count, partCount(split) / workgroups);
  return split.first === 0 ? shared : time(split.first, 1) + shared;
}
