import {
  parseSlicePolicy,
  type SlicePolicy,
  slicePolicyName,
  threadResults,
} from "../../kernels/slices/policy.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, productTime, waveTime } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { partialBytes, resultBytes } from "../tensors.ts";
import { FEW_RESULTS, productBlocks, residents, splitBlocks, THIN_RESULTS } from "./split.ts";
import { chainSteps, imageVectors, type SlicedProduct } from "./product.ts";

/** Places of a small tile, of one slice. */
const SMALL_TILE = 1024;

/** Bytes that memory moves at once. */
const SECTOR = 32;

const FLOAT_BYTES = 4;

/** What a workgroup takes before its first product, in steps of its loop. */
const FILL_STEPS = 0.5;

/** Whether channels lie innermost. */
export function isLines({ layout }: PlanRequest): boolean {
  return layout === "nhwc";
}

/** Depth by which policies for few channels are named. */
const FEW_DEPTH = 4;

/** What policies reach of each other where that is measured, by name: those of any depth, and those for few channels. */
export function policyShares(
  request: PlanRequest,
  tile: string,
): Readonly<Record<"policies" | "few", Readonly<Record<string, number>>>> {
  const { policies, few } = deviceOf(request).shares.sliced;
  const way = imageVectors(request) ? "images" : isLines(request) ? "lines" : "scattered";
  return { policies: policies[way][tile] ?? {}, few: few[way][tile] ?? {} };
}

/** What a policy reaches; of one that was not measured no more than the slowest of its kind that was. */
function policyShare(request: PlanRequest, tile: string, policy: SlicePolicy): number {
  const { policies, few } = policyShares(request, tile);
  const known = { ...policies, ...few };
  const named = slicePolicyName({ ...policy, depth: Math.max(policy.depth, FEW_DEPTH) });
  const like = () =>
    Object.entries(known).filter(([name]) =>
      parseSlicePolicy(name)?.allSlices === policy.allSlices
    );
  return known[named] ?? Math.min(1, ...like().map(([, share]) => share));
}

/** Microseconds of a policy's main loop: waves of workgroups, each of which multiplies and stores its results, part by part. */
export function loopTime(
  request: PlanRequest,
  product: SlicedProduct,
  policy: SlicePolicy,
): number {
  const { slices, axes, aligned, targets, tiles, groups } = product;
  const device = deviceOf(request);
  const lines = isLines(request);
  const results = threadResults(policy, slices);
  const wide = results > FEW_RESULTS;
  const thin = results <= THIN_RESULTS;
  const { registers, blocks: resident, warps } = residents(device, policy, slices);
  const places = policy.rows * policy.columns;
  const { rates, shares, multiprocessors } = device;
  const { one, oneWide, two } = rates.sliced;
  const rate = (axes > 1 ? two : wide ? oneWide : one) *
    policyShare(request, product.tile, policy) *
    (registers > device.registers ? shares.sliced.spilled : 1) *
    (thin
      ? shares.sliced.thin
      : axes === 1 && places <= SMALL_TILE && !policy.allSlices
      ? shares.sliced.small
      : 1);
  const blocks = productBlocks(request, product, policy);
  // Neighbours store a vector of images each, which is half a sector where there are no more of them.
  const narrow = imageVectors(request) && request.problem.batch * resultBytes(request) < SECTOR;
  // What of blocks is no padding, which parts of splits store, too.
  const real = groups * targets * tiles / Math.max(1, blocks * places);
  /** Of so many workgroups, whose depth so many share: these store vectors side by side in all layouts. */
  const time = (workgroups: number, splits: number) => {
    const { longest, chain, chains } = chainSteps(request, { ...product, splits }, policy.depth);
    const summed = chains === "whole" ? 1 : shares.sliced.stored;
    const multiply = productTime(
      multiprocessors * places * slices * (longest + FILL_STEPS) * policy.depth,
      rate * summed,
    );
    const parts = chains === "stored" ? Math.ceil(longest / chain) : 1;
    const bytes = splits > 1 ? partialBytes(request) : resultBytes(request);
    const stored = parts * places * product.results;
    const vectors = lines || splits > 1 || imageVectors(request);
    const scattered = rates.slicedStore.scattered *
      (axes > 1 || request.layout !== "nchw"
        ? 1
        : shares.sliced.rowStores[aligned ? "fours" : "cut"]);
    const [own, filled] = splits > 1
      ? [rates.stream, 1]
      : [rates.stream * (vectors && !narrow ? 1 : shares.sliced.rowStores.own), real];
    // Threads that wait for no others to transform their sums store what there is, while other workgroups multiply.
    const store = policy.allSlices
      // Of f16 that was not measured: no more is expected than of f32.
      ? moveTime(
        Math.max(bytes, FLOAT_BYTES) * stored * workgroups * filled,
        vectors || aligned ? own : scattered,
      )
      : moveTime(bytes * stored * multiprocessors, vectors ? rates.slicedStore.lines : scattered) *
        Math.ceil(workgroups / multiprocessors);
    return multiply * waveTime(device, workgroups, resident, warps) + store;
  };
  const split = splitBlocks(request, product, policy);
  if (split === undefined) return time(blocks, 1);
  const shared = time(split.count * split.splits, split.splits);
  return split.first === 0 ? shared : time(split.first, 1) + shared;
}
