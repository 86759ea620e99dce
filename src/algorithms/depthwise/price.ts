import { directFlops, tensorBytes } from "../../problem/conv_problem.ts";
import {
  channelVectors,
  depthwiseRounds,
  imageWidth,
  otherAxes,
  placeThreads,
  runProducts,
} from "../../kernels/depthwise/shape.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime, productTime } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes, partialBytes, resultBytes, resultElements } from "../tensors.ts";
import { groupOf, RUN } from "./geometry.ts";
import { depthwiseFilterShape, gradientSlowness } from "./gradient.ts";
import { depthwiseShape, packsFilter } from "./results.ts";

/**
 * Microseconds of one filter a channel, small groups or few channels: tensors once through memory, or products; passes
 * beside it are short.
 */
export function depthwiseTime(request: PlanRequest): number {
  const device = deviceOf(request);
  const { problem } = request;
  const { products, rate, passes, partials, loading = 0 } = problem.op === "bwd-filter"
    ? gradientWork(request)
    : resultsWork(request);
  const bytes = tensorBytes(problem, operandBytes(request), resultBytes(request)) + 2 * partials;
  const product = Math.max(loading, productTime(products, rate));
  const movement = moveTime(bytes, device.rates.stream);
  return passTime(product, movement, device) + passes * device.times.dispatch;
}

/**
 * A kernel's products, what it reaches in TFLOP/s, short passes beside it, bytes of its partial results, and microseconds of
 * loads that lie apart.
 */
interface Work {
  readonly products: number;
  readonly rate: number;
  readonly passes: number;
  readonly partials: number;
  readonly loading?: number;
}

/** Bytes of what so many segments leave; none of one. */
function partialsOf(request: PlanRequest, segments: number): number {
  return segments === 1 ? 0 : segments * partialBytes(request) * resultElements(request.problem);
}

/** Whether every group is one filter of one channel. */
function isSingle(request: PlanRequest): boolean {
  const { inputs, outputs } = groupOf(request);
  return inputs * outputs === 1;
}

/** The rate of `taps` that a load is worth. */
function tapsRate(request: PlanRequest, which: "depthwise" | "depthwiseGradient", taps: number) {
  const { rates, shares } = deviceOf(request);
  const side = request.layout === "nhwc" ? "along" : "across";
  return taps / (taps + shares.depthwiseTaps) * rates[which][side];
}

/** Share of f32's rate that groups of several input channels reach: halves are converted, and take as many loads. */
function halfShare(request: PlanRequest): number {
  const several = groupOf(request).inputs > 1;
  return request.dtype === "f16" && several ? deviceOf(request).shares.halfGroups : 1;
}

/**
 * What a thread does beside its rounds, in products: it finds its places, tests which there are, and stores; brings its part of a
 * filter to workgroup memory; and passes each of its sums through that, where threads share a run.
 */
const BESIDE = { thread: 20, staging: 20, sharing: 4 };

/** Forward and backward-data. */
function resultsWork(request: PlanRequest): Work {
  const shape = depthwiseShape(request, "uniform");
  const { segments, own, vector, filter, lanes, sharing } = shape;
  const partials = partialsOf(request, segments);
  const passes = (packsFilter(request) ? 1 : 0) + (segments > 1 ? 1 : 0);
  if (isSingle(request)) {
    const rate = tapsRate(request, "depthwise", shape.axes[shape.run]!.taps);
    return { products: directFlops(request.problem) / 2, rate, passes, partials };
  }
  const { rates, shares, multiprocessors } = deviceOf(request);
  const met = runProducts(shape);
  const places = new Set(met.map(({ place }) => place)).size;
  const taps = new Set(met.map(({ tap }) => tap)).size * own;
  const four = vector === "sources" && !filter.vector ? 4 : 1;
  // Images of a vector are places of their own, and share taps.
  const images = imageWidth(shape);
  const { sources, hits, products } = depthwiseRounds(shape);
  const loads = (images * places + four * taps) / (images * products);
  const threads = placeThreads(shape) * (lanes > 0 ? channelVectors(shape) : 1) * sharing;
  const warps = Math.max(1, threads) / 32 / multiprocessors;
  const share = warps / (warps + shares.fewWarps) / (1 + shares.fewLoad * loads);
  // Neighbouring places of a strided input's gradient meet the same ones of the output's.
  const shared = request.problem.op === "fwd"
    ? 1
    : otherAxes(shape).reduce((all, d) => all * shape.axes[d]!.stride, 1);
  // Places of a warp lie a pixel apart: the more warps that run at once, the fewer lines stay until their other channels are
  // wanted. Short runs have fewer lines, and so have those that others share.
  const lines = Math.min(warps, shares.fewApart) * Math.min(1, places / RUN) / shared;
  const apart = shares.fewSources * shares.fewApart / lines * rates.stream *
    (lanes > 1 ? shares.fewNeighbours : 1);
  const rounds = threads / segments * sources * hits;
  const half = halfShare(request);
  const beside = BESIDE.thread + (filter.staged ? BESIDE.staging : 0) +
    (sharing > 1 ? BESIDE.sharing * shape.results * own : 0);
  return {
    // With those of taps that a stride leaves out.
    products: rounds * products * images + beside * threads,
    rate: half * share * rates.few,
    passes,
    partials,
    ...(vector === "sources" && sharing === 1
      ? { loading: moveTime(4 * operandBytes(request) * rounds * places / shared, half * apart) }
      : {}),
  };
}

/** Backward-filter. */
function gradientWork(request: PlanRequest): Work {
  const { shape, grouped } = depthwiseFilterShape(request, "constant");
  const { segments, axes, run, places } = shape;
  const passes = segments === 1 ? 0 : grouped === 1 ? 1 : 2;
  const products = directFlops(request.problem) / 2;
  if (isSingle(request)) {
    return {
      products,
      rate: tapsRate(request, "depthwiseGradient", axes[run]!.taps),
      passes,
      partials: 0,
    };
  }
  const partials = partialsOf(request, segments);
  // Fewer channels than a warp has lanes: the rest of it walks other places.
  const apart = shape.lanesInner ? Math.max(1, 32 / shape.lanes) : 1;
  const rate = halfShare(request) * deviceOf(request).rates.fewGradient /
    gradientSlowness(request, axes[run]!, places, shape, apart);
  return { products, rate, passes, partials };
}
