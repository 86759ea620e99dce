import { deviceOf } from "../device/h200.ts";
import { windowElements } from "../../kernels/im2win.ts";
import { cutProduct } from "../cut.ts";
import { productTime } from "../device/model.ts";
import { chunkedCost, gatheredTime, storedShare, transformedTime } from "../product_time.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { cutWindows, windowProduct } from "./plan.ts";
import { fusedProduct } from "./fused.ts";
import { windowFilter, windowShape, windowTarget } from "./geometry.ts";

/** Microseconds of im2win that builds its windows on the way. */
export function im2winFusedTime(request: PlanRequest): Planned<number> {
  const device = deviceOf(request);
  const { geometry, product, filter } = fusedProduct(request);
  const cut = cutProduct(request, product);
  if (isRefusal(cut)) return cut;
  const { policy, cost } = cut;
  const linear = filter(policy).paddedChannels % policy.depth !== 0;
  // Four images share it, but they are four loads where one could take four channels.
  const alone = geometry.interleave === 1 ||
    request.layout === "nhwc" && geometry.channels % 4 === 0;
  const share = linear && alone ? device.shares.linear : 1;
  // Windows are read by fours at most, of few channels one by one.
  const { narrowLoads, fewHalves } = device.shares;
  const fours = geometry.channels % 4 === 0 ? 1 : fewHalves.one;
  const units = policy.matrix === undefined ? 1 : narrowLoads * fours;
  const time = productTime(cost, share * units * device.rates.gathered);
  const stored = storedShare(request, windowTarget(geometry), geometry.rows);
  return gatheredTime(request, time, filter(policy), stored);
}

/** Microseconds of im2win: the filter, windows and their product, in chunks where there are several. */
export function im2winTime(request: PlanRequest): Planned<number> {
  const device = deviceOf(request);
  const windows = cutWindows(request);
  if (isRefusal(windows)) return windows;
  const { geometry, cut, chunks } = windows;
  const shape = windowShape(request, geometry, request.problem.batch, false);
  const share = device.shares.windows[request.layout === "nhwc" ? "along" : "across"];
  const chunk = windowProduct(request, geometry, chunks[0]!.images);
  return transformedTime(request, {
    cost: chunkedCost(request, cut, chunk, chunks.length),
    chunks: chunks.length,
    filter: windowFilter(request, geometry, cut.policy),
    elements: windowElements(shape),
    rate: share * device.rates.stream,
  });
}
