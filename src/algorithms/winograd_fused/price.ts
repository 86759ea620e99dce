import { filterDepth } from "../../kernels/slices/filter_transform.ts";
import { amplification, amplification2d } from "../../winograd/amplification.ts";
import { parseTile } from "../../winograd/tile.ts";
import { winogradTransform } from "../../winograd/transform.ts";
import { deviceOf } from "../device/h200.ts";
import { type DeviceModel, moveTime, passTime } from "../device/model.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { partialBytes } from "../tensors.ts";
import { filterShape, type TileRun } from "./geometry.ts";
import { loopTime } from "./loop_time.ts";
import { choosePolicy } from "./policies.ts";
import { slicedProduct } from "./product.ts";
import { type TileRuns, tileRuns } from "./tiles.ts";

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
  const product = slicedProduct(request, runs);
  const policy = choosePolicy(request, product);
  if (isRefusal(policy)) return policy;
  const shape = filterShape(
    request,
    runs,
    request.layout === "nhwc" ? policy.columns : policy.rows,
    policy.depth,
  );
  const filter = shape.groups * product.slices * filterDepth(shape) * shape.paddedPlaces;
  const bytes = partialBytes(request) * filter;
  const time = passTime(0, moveTime(2 * bytes, device.rates.filterStream), device) +
    loopTime(request, product, policy) + device.times.dispatch;
  return { time, bytes };
}
