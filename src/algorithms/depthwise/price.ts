import { directFlops, tensorBytes } from "../../problem/conv_problem.ts";
import { depthwiseRounds, runProducts } from "../../kernels/depthwise/taps.ts";
import { channelVectors, placeThreads } from "../../kernels/depthwise/text.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime, productTime } from "../device/model.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes, partialBytes, resultElements } from "../tensors.ts";
import {
  depthwiseFilterShape,
  depthwiseShape,
  gradientSlowness,
  groupOf,
  packsFilter,
} from "./geometry.ts";

/**
 * Microseconds of one filter a channel, small groups or few channels: tensors once through memory, or products; passes
 * beside it are short.
 */
export function depthwiseTime(request: PlanRequest): number {
  const device = deviceOf(request);
  const { problem } = request;
  const { products, rate, passes, partials, stream = 1 } = problem.op === "bwd-filter"
    ? gradientWork(request)
    : resultsWork(request);
  const bytes = tensorBytes(problem, operandBytes(request)) + 2 * partials;
  const product = productTime(products, rate);
  const movement = moveTime(bytes, stream * device.rates.stream);
  return passTime(product, movement, device) + passes * device.times.dispatch;
}

/**
 * A kernel's products, what it reaches in TFLOP/s, short passes beside it, bytes of its partial results, and of the rate of
 * memory its share.
 */
interface Work {
  readonly products: number;
  readonly rate: number;
  readonly passes: number;
  readonly partials: number;
  readonly stream?: number;
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

/** Forward and backward-data. */
function resultsWork(request: PlanRequest): Work {
  const shape = depthwiseShape(request, "uniform");
  const { segments, own, vector, filter, lanes } = shape;
  const partials = segments === 1
    ? 0
    : segments * partialBytes(request) * resultElements(request.problem);
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
  const { sources, hits, products } = depthwiseRounds(shape);
  const loads = (places + four * taps) / products;
  const threads = placeThreads(shape) * (lanes > 0 ? channelVectors(shape) : 1);
  const warps = threads / 32 / multiprocessors;
  const stream = vector === "sources" ? shares.fewSources : 1;
  const share = stream * warps / (warps + shares.fewWarps) / (1 + shares.fewLoad * loads);
  return {
    // With those of taps that a stride leaves out.
    products: threads / segments * sources * hits * products,
    rate: share * rates.few,
    passes,
    partials,
    stream,
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
  const partials = segments === 1
    ? 0
    : segments * partialBytes(request) * resultElements(request.problem);
  const rate = deviceOf(request).rates.planned /
    gradientSlowness(request, axes[run]!, places, shape);
  return { products, rate, passes, partials };
}
