import { elementsOf, sumOf } from "../../elements/elements.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import { depthwiseChain, depthwiseKernel } from "../../kernels/depthwise/convolve.ts";
import {
  depthwiseFilterBlocks,
  depthwiseFilterChains,
  depthwiseFilterKernel,
} from "../../kernels/depthwise/gradient.ts";
import {
  channelVectors,
  type DepthwiseGroup,
  depthwiseRounds,
  type DepthwiseShape,
  imageWidth,
  otherAxes,
  placeThreads,
  runProducts,
} from "../../kernels/depthwise/shape.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import type { SizeMode } from "../../kernels/module.ts";
import type { PackShape } from "../../kernels/pack.ts";
import {
  directFlops,
  FLOAT_DTYPES,
  resultTensor,
  tensorBytes,
} from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import type { Algorithm } from "../algorithm.ts";
import { packedFilter } from "../conv_product.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime, productTime } from "../device/model.ts";
import { groupOf, stridesOf } from "../geometry.ts";
import { convEpilogue, pass, reducePass } from "../passes.ts";
import type { Plan } from "../plan.ts";
import type { Planned } from "../refusal.ts";
import { bf16Apart } from "../product_time.ts";
import type { PlanRequest } from "../request.ts";
import {
  flatRow,
  operandBytes,
  partialBytes,
  problemBuffers,
  reduceShape,
  resultBytes,
  resultElements,
} from "../tensors.ts";
import {
  depthwiseFilterShape,
  depthwiseVector,
  gradientSlowness,
  SMALL_GROUP,
} from "./geometry.ts";
import { depthwiseShape, packsFilter } from "./results.ts";

/** What a request's kernel is made of: forward and backward-data, or backward-filter. */
interface DepthwiseGeometry {
  readonly request: PlanRequest;
  readonly results?: DepthwiseShape;
  readonly gradient?: ReturnType<typeof depthwiseFilterShape>;
}

function depthwiseGeometry(request: PlanRequest): DepthwiseGeometry {
  return request.problem.op === "bwd-filter"
    ? { request, gradient: depthwiseFilterShape(request) }
    : { request, results: depthwiseShape(request) };
}

/** Plans one filter a channel, small groups, or results of few channels. */
function planDepthwise(
  { request, results, gradient }: DepthwiseGeometry,
  mode: SizeMode,
): Planned<Plan> {
  return results === undefined
    ? planGradient(request, gradient!, mode)
    : planResults(request, results, mode);
}

/** Forward and backward-data: one kernel, one that orders long filters, and one that sums segments. */
function planResults(request: PlanRequest, shape: DepthwiseShape, mode: SizeMode): Planned<Plan> {
  const { problem } = request;
  const tensors = problemBuffers(request, mode);
  const { buffers, tensor, ends, elements: types } = tensors;
  const { packed: filter, passes: pack } = packsFilter(request)
    ? packedFilter(packShape(request), tensors)
    : { packed: tensor.filter, passes: [] };
  const result = resultTensor(problem.op);
  const { segments } = shape;
  const elements = resultElements(problem);
  const partials = segments > 1
    ? buffers.workspace("partial results", segments * elements, sumOf(types))
    : tensor[result];
  const epilogue = convEpilogue(request);
  const places = { ...tensor, filter, [result]: partials };
  const module = buffers.module(places);
  const kernel = depthwiseKernel(module, shape, segments > 1 ? NO_STEPS : epilogue);
  const multiplications = directFlops(problem) / 2;
  const main = pass(kernel, buffers, { ...places, ...ends }, multiplications);
  const between = { partials, result: tensor[result], ...ends };
  const sum = segments === 1
    ? []
    : [reducePass(reduceShape(request, segments), epilogue, buffers, between, types.result)];
  const inSegment = depthwiseChain(shape);
  return buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "depthwise",
    passes: elements === 0 ? [] : [...pack, main, ...sum],
    multiplications,
    arithmetic: {
      inner: "taps",
      ...(segments * shape.sharing === 1 ? {} : { chain: inSegment, segment: inSegment }),
    },
    schedule: { ...request.schedule, ...(segments === 1 ? {} : { splits: segments }) },
    notes: [
      `${groupsText(shape)}, a thread makes ${shape.results} ${
        shape.results === 1 ? "result" : "results"
      }` +
      (shape.own > 1 ? ` of each of ${shape.own} channels` : "") +
      (shape.vector === "none" || shape.vector === "sources" ? "" : ` of four ${shape.vector}`) +
      (shape.sharing === 1 ? "" : `, ${shape.sharing} threads share what it sums`) +
      (segments === 1 ? "" : `, ${segments} segments of the channels that it sums`),
    ],
  });
}

/** Backward-filter: sums of segments, and one or two passes that add them up. */
function planGradient(
  request: PlanRequest,
  { shape, grouped }: ReturnType<typeof depthwiseFilterShape>,
  mode: SizeMode,
): Planned<Plan> {
  const { problem } = request;
  const { segments, taps, walkers } = shape;
  const { buffers, tensor, elements: types } = problemBuffers(request, mode);
  const elements = resultElements(problem);
  const sum = sumOf(types);
  const partials = segments > 1
    ? buffers.workspace("partial results", segments * elements, sum)
    : tensor.filter;
  const { input, output } = tensor;
  const places = { input, output, filter: partials };
  const kernel = depthwiseFilterKernel(buffers.module(places), shape);
  const multiplications = directFlops(problem) / 2;
  const passes = [pass(kernel, buffers, places, multiplications)];
  const reduce = (partials: number, splits: number, parts: number, result: number, of: Scalar) =>
    reducePass(flatRow(parts * elements, splits), NO_STEPS, buffers, { partials, result }, of);
  if (grouped > 1) {
    const sums = buffers.workspace("sums of segments", grouped * elements, sum);
    passes.push(reduce(partials, segments / grouped, grouped, sums, sum));
    passes.push(reduce(sums, grouped, 1, tensor.filter, types.result));
  } else if (segments > 1) {
    passes.push(reduce(partials, segments, 1, tensor.filter, types.result));
  }
  return buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "depthwise",
    passes: elements === 0 ? [] : passes,
    multiplications,
    arithmetic: depthwiseFilterChains(shape),
    notes: [
      `${groupsText(shape)}, a thread sums ${taps.run * taps.others} taps` +
      (shape.vector === "none" ? "" : ` of four ${shape.vector}`) +
      `, a workgroup ${walkers} threads, ${segments} segments of the places`,
    ],
  });
}

/** What the groups are, for notes. */
function groupsText({ group: { inputs, outputs } }: { readonly group: DepthwiseGroup }): string {
  return inputs === 1 ? "one filter a channel" : `${inputs} to ${outputs} channels a group`;
}

/** The filter as [taps][channels], or where a load brings four sources as [taps][channels that are not summed][sources]. */
function packShape(request: PlanRequest): PackShape {
  const { problem } = request;
  const taps = elementCount(problem.filterSize);
  const [output, input, ...axes] = stridesOf(request, "filter") as [number, number];
  const sides = [[problem.outChannels, output], [groupOf(request).inputs, input]] as const;
  const turned = depthwiseVector(request).vector === "sources" && problem.op === "fwd";
  const [[rows, rowStride], [channels, channelStride]] = turned ? [sides[1], sides[0]] : sides;
  return {
    groups: 1,
    rows,
    paddedRows: rows,
    channels,
    paddedChannels: channels,
    taps,
    depth: taps * channels,
    strides: {
      group: 0,
      row: rowStride,
      channel: channels === 1 ? 0 : channelStride,
      tap: axes.at(-1)!,
    },
  };
}

/**
 * Microseconds of one filter a channel, small groups or few channels: tensors once through memory, or products; passes
 * beside it are short.
 */
export function depthwiseTime(request: PlanRequest): number {
  return timeOf(depthwiseGeometry(request));
}

function timeOf({ request, results, gradient }: DepthwiseGeometry): number {
  const device = deviceOf(request);
  const { problem } = request;
  const { products, rate, passes, partials, loading } = results === undefined
    ? gradientWork(request, gradient!)
    : resultsWork(request, results);
  const stored = results?.vector === "none" ? bf16Apart(request) : 1;
  const result = resultBytes(request) / stored;
  const bytes = tensorBytes(problem, operandBytes(request), result) + 2 * partials;
  const movement = moveTime(bytes, device.rates.stream);
  return passTime(Math.max(loading, productTime(products, rate)), movement, device) +
    passes * device.times.dispatch;
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

/** Share of f32's rate that groups of several input channels reach: f16 and bf16 are converted, and take as many loads. */
function halfShare(request: PlanRequest): number {
  const several = groupOf(request).inputs > 1;
  const short = scalarBytes(elementsOf(request).storage) === 2;
  return short && several ? deviceOf(request).shares.halfGroups : 1;
}

/**
 * What a thread does beside its rounds, in products: it finds its places, tests which there are, and stores; brings its part of a
 * filter to workgroup memory; and passes each of its sums through that, where threads share a run.
 */
const BESIDE = { thread: 20, staging: 20, sharing: 4 };

/** How much faster loads of places that lie apart are where threads take neighbouring groups. */
const NEIGHBOURS = 3;

/**
 * Forward and backward-data: a kernel's products, what it reaches in TFLOP/s, short passes beside it, bytes of its partial results, and
 * microseconds of loads that lie apart.
 */
function resultsWork(request: PlanRequest, shape: DepthwiseShape) {
  const { segments, own, vector, filter, lanes, sharing } = shape;
  const partials = partialsOf(request, segments);
  const passes = (packsFilter(request) ? 1 : 0) + (segments > 1 ? 1 : 0);
  if (isSingle(request)) {
    const rate = tapsRate(request, "depthwise", shape.axes[shape.run]!.taps);
    return { products: directFlops(request.problem) / 2, rate, passes, partials, loading: 0 };
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
  const rounds = threads / segments * sources * hits;
  // Neighbouring places of a strided input's gradient meet the same ones of the output's.
  const shared = request.problem.op === "fwd"
    ? 1
    : otherAxes(shape).reduce((all, d) => all * shape.axes[d]!.stride, 1);
  const read = shared * shares.fewSources * rates.stream * (lanes > 1 ? NEIGHBOURS : 1);
  const beside = BESIDE.thread + (filter.staged ? BESIDE.staging : 0) +
    (sharing > 1 ? BESIDE.sharing * shape.results * own : 0);
  return {
    // With those of taps that a stride leaves out.
    products: rounds * products * images + beside * threads,
    rate: halfShare(request) * share * rates.few,
    passes,
    partials,
    loading: vector === "sources" && sharing === 1
      ? moveTime(4 * operandBytes(request) * rounds * places, halfShare(request) * read)
      : 0,
  };
}

/** Share that is left of that where gradients of filters load halves one at a time: channels lie apart (fitted by an H200). */
const HALVES_ACROSS = 0.8;

/** What a sum of a thread costs, in products, by the way from the threads of a workgroup to memory (fitted by an H200). */
const SUM = { along: 32, across: 55 };

/** The same of backward-filter. */
function gradientWork(
  request: PlanRequest,
  { shape, grouped }: ReturnType<typeof depthwiseFilterShape>,
) {
  const { segments, axes, run, places } = shape;
  const passes = segments === 1 ? 0 : grouped === 1 ? 1 : 2;
  const products = directFlops(request.problem) / 2;
  if (isSingle(request)) {
    const rate = tapsRate(request, "depthwiseGradient", axes[run]!.taps);
    return { products, rate, passes, partials: 0, loading: 0 };
  }
  const partials = partialsOf(request, segments);
  // Fewer channels than a warp has lanes: the rest of it walks other places.
  const apart = shape.lanesInner ? Math.max(1, 32 / shape.lanes) : 1;
  const half = halfShare(request);
  const across = half < 1 && request.layout === "nchw" ? HALVES_ACROSS : 1;
  const slowness = gradientSlowness(request, axes[run]!, places, shape, apart);
  const { taps, own, lanes, walkers } = shape;
  const sums = taps.run * taps.others * own.filters * own.inputs;
  const threads = depthwiseFilterBlocks(shape) * segments * lanes * walkers;
  return {
    products: products * slowness / (half * across) +
      threads * sums * SUM[shape.lanesInner ? "along" : "across"],
    rate: deviceOf(request).rates.fewGradient,
    passes,
    partials,
    loading: 0,
  };
}

/** Squares of strides are counted in 32 bits. */
const MOST_STRIDE = 65_535;

/** Channels of a group's result, or of one side of a filter, that are few. */
const MOST_FEW = 8;

/**
 * One filter a channel, small groups, and results of few channels: nothing is multiplied as a matrix, a thread holds the sums
 * of a run of places.
 */
export const depthwise: Algorithm<DepthwiseGeometry> = {
  name: "depthwise",
  options: ["splits"],
  dtypes: FLOAT_DTYPES,
  takesParts: true,
  refuse(request) {
    const { problem: { op, groups, stride } } = request;
    const { inputs, outputs } = groupOf(request);
    const small = groups > 1 && Math.max(inputs, outputs) <= SMALL_GROUP;
    const results = op === "fwd" ? outputs : op === "bwd-data" ? inputs : Math.min(inputs, outputs);
    // One output a channel of one input is depthwise, whatever the multiplier.
    if (inputs !== 1 && !small && results > MOST_FEW) {
      return `it is for few channels: up to ${MOST_FEW} on a side, or several groups of up to ${SMALL_GROUP}`;
    }
    return stride.some((one) => one > MOST_STRIDE)
      ? `it takes strides up to ${MOST_STRIDE}`
      : undefined;
  },
  // One filter a channel of several, and groups of few rows, are its own without a comparison.
  candidates: (request) => isWeighed(request) ? [{ algorithm: "depthwise", amplification: 1 }] : [],
  geometry: depthwiseGeometry,
  price: timeOf,
  plan: planDepthwise,
};

/** Whether `auto` weighs it: several channels are summed, or there is but one group. */
function isWeighed(request: PlanRequest): boolean {
  return groupOf(request).inputs > 1 || request.problem.groups === 1;
}
