import { deviceOf } from "../device/h200.ts";
import { partialBytes, resultBytes } from "../tensors.ts";
import { filterDepth } from "../../kernels/slices/filter_transform.ts";
import { stepCount, tapCount, tileCount } from "../../kernels/slices/geometry.ts";
import { sliceWorkgroups } from "../../kernels/slices/loop.ts";
import { slicePolicyName, sliceThreads } from "../../kernels/slices/policy.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { amplification, amplification2d } from "../../winograd/amplification.ts";
import { parseTile } from "../../winograd/tile.ts";
import { winogradTransform } from "../../winograd/transform.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { filterShape, runTile, sliceGeometry, type TileRun } from "./geometry.ts";
import { choosePolicy, flushEvery, policyShares } from "./policies.ts";
import { type TileRuns, tileRuns } from "./tiles.ts";
import { type DeviceModel, moveTime, passTime, productTime, waveTime } from "../device/model.ts";

/** Registers of a thread with up to 16 results, up to 64 and more. */
const REGISTERS = { thin: 64, few: 128, many: 256 };
/** Places of a small tile, of one slice. */
const SMALL_TILE = 1024;
/** Results of a thread that 64 and 128 registers hold. */
const THIN_RESULTS = 16;
const FEW_RESULTS = 64;

/** What a workgroup takes before its first product, in steps of its loop. */
const FILL_STEPS = 0.5;

/** Images for which a cut is chosen: all chunks of a batch have the same, and so the same bits. */
const IMAGES = 64;

/** The kernels of a request, cut in the way that is predicted to be fastest for a usual batch. */
export function fusedRuns(request: PlanRequest, axes: 1 | 2): TileRuns {
  const { problem, tile } = request;
  const usual = { ...request, problem: { ...problem, batch: IMAGES } };
  const places = problem.op === "fwd" ? problem.outputSize : problem.inputSize;
  const ways = tileRuns(
    places.slice(-axes),
    problem.filterSize.slice(-axes),
    tile === undefined ? undefined : parseTile(tile),
  );
  const { maxWorkspaceBytes = Infinity } = request;
  let best = ways[0]!, least = Infinity;
  for (const runs of ways.length === 1 ? [] : ways) {
    const cost = runsCost(usual, runs);
    if (isRefusal(cost) || cost.bytes > maxWorkspaceBytes) continue;
    if (cost.time < least) [best, least] = [runs, cost.time];
  }
  return best;
}

/** How much the algorithm enlarges rounding errors. */
export function fusedAmplification(request: PlanRequest, axes: 1 | 2): number {
  return Math.max(
    ...fusedRuns(request, axes).map((runs) => {
      const [rows, columns] = runs.map(({ n, r }) => winogradTransform(n, r));
      return columns === undefined ? amplification(rows!) : amplification2d(rows!, columns);
    }),
  );
}

/**
 * Microseconds of fused Winograd: for each kernel a transform of the filter, then waves of workgroups, each of which
 * multiplies and then stores its results. Refused if no policy fits the device.
 */
export function fusedTime(request: PlanRequest, axes: 1 | 2): Planned<number> {
  const cost = runsCost(request, fusedRuns(request, axes));
  return isRefusal(cost) ? cost : cost.time;
}

/** Microseconds, and bytes of transformed filters. */
interface RunsCost {
  readonly time: number;
  readonly bytes: number;
}

function runsCost(request: PlanRequest, kernels: TileRuns): Planned<RunsCost> {
  const device = deviceOf(request);
  let time = 0, bytes = 0;
  for (const runs of kernels) {
    const cost = runCost(request, device, runs);
    if (isRefusal(cost)) return cost;
    time += cost.time;
    bytes += cost.bytes;
  }
  return { time, bytes };
}

function runCost(
  request: PlanRequest,
  device: DeviceModel,
  runs: readonly TileRun[],
): Planned<RunsCost> {
  const { problem, layout } = request;
  const alphas = runs.map(({ n, r }) => n + r - 1);
  const slices = elementCount(alphas);
  const lines = layout === "nhwc";
  const geometry = sliceGeometry(request, runs);
  const flush = flushEvery(request, slices, tapCount(geometry) * geometry.channels);
  const tiles = tileCount(geometry);
  const { targets } = geometry;
  const tile = runTile(runs);
  const policy = choosePolicy(request, { tile, slices, targets, tiles, flushed: flush > 0 });
  if (isRefusal(policy)) return policy;
  const workgroups = sliceWorkgroups({
    rows: lines ? tiles : targets,
    columns: lines ? targets : tiles,
    batches: problem.groups,
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
  const known = policyShares(request, tile);
  const rate = (runs.length > 1 ? two : wide ? oneWide : one) *
    (known[slicePolicyName(policy)] ?? Math.min(1, ...Object.values(known))) *
    (registers > device.registers ? shares.sliced.spilled : 1) *
    (flush > 0 ? shares.sliced.flushed : 1) *
    (thin
      ? shares.sliced.thin
      : runs.length === 1 && places <= SMALL_TILE
      ? shares.sliced.small
      : 1);
  const steps = stepCount(geometry, policy.depth) + FILL_STEPS;
  const products = places * slices * steps * policy.depth;
  const multiply = productTime(multiprocessors * products, rate);
  const store = moveTime(
    resultBytes(request) * multiprocessors * places * elementCount(runs.map(({ n }) => n)),
    lines ? rates.slicedStore.lines : rates.slicedStore.scattered,
  );
  // A thread of many results has as much to do side by side as two of few.
  const warps = threads / 32 * (wide ? 2 : 1);
  const loop = multiply * waveTime(device, workgroups, resident, warps) +
    store * Math.ceil(workgroups / multiprocessors);
  const shape = filterShape(
    request,
    runs,
    lines ? policy.columns : policy.rows,
    policy.depth,
  );
  const filter = shape.groups * slices * filterDepth(shape) * shape.paddedPlaces;
  const bytes = partialBytes(request) * filter;
  const time = passTime(0, moveTime(2 * bytes, rates.filterStream), device) + loop +
    device.times.dispatch;
  return { time, bytes };
}
