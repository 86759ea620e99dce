import { elementsTrait } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { windowGatherLoader } from "../../kernels/loaders/im2win.ts";
import { packedLoader } from "../../kernels/loaders/matrix.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { FLOAT_DTYPES } from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import {
  addsUp,
  cutPasses,
  cutTiles,
  packedFilter,
  type ProductPart,
  productPass,
  streamsOf,
  tapDepth,
} from "../conv_product.ts";
import { gatheredTime, storedShare, withHalfTile } from "../product_time.ts";
import { cutArithmetic, cutProduct, cutSchedule } from "../cut.ts";
import { cutNotes } from "../cut_notes.ts";
import { deviceOf } from "../device/h200.ts";
import { productTime } from "../device/model.ts";
import type { Pass, Plan } from "../plan.ts";
import { type Product, productUnit } from "../product.ts";
import { isRefusal, type Planned, type Refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes, problemBuffers, resultElements } from "../tensors.ts";
import { windowFilter, type WindowGeometry, windowGeometry, windowTarget } from "./geometry.ts";
import {
  cutTransformed,
  IM2COL,
  IM2WIN,
  planTransformed,
  type TransformedCut,
  transformedTime,
} from "./transformed.ts";
import { SCHEDULE_FIELDS } from "../schedule.ts";

/** Which elements of the input a load takes, and which way neighbouring threads go. */
function gatherAccess(request: PlanRequest, { interleave, channels }: WindowGeometry) {
  const { layout } = request;
  const along = layout === "nhwc" ? "depth" as const : "place" as const;
  // chwn has its images together; nhwc its channels, of which only single images can take four.
  const together = interleave === 4
    ? layout === "chwn"
    : layout === "nhwc" && channels % 4 === 0 && channels > 0;
  return {
    along,
    sourceVector: together ? 4 as const : 1 as const,
    vector: interleave === 4 || together ? 4 as const : 1 as const,
    ...(interleave === 4 && along === "depth" ? { vectorAlong: "place" as const } : {}),
  };
}

/** The product of a request and what its loads take, before it is cut. */
function fusedProduct(request: PlanRequest) {
  const { problem } = request;
  const geometry = windowGeometry(request);
  const access = gatherAccess(request, geometry);
  const filter = (policy: TilePolicy) =>
    windowFilter(request, geometry, policy, tapDepth(geometry.channels, policy.depth));
  const product: Product = {
    rows: geometry.rows,
    columns: problem.batch * geometry.spots,
    batches: problem.groups,
    steps: (policy) => filter(policy).depth / policy.depth,
    elements: resultElements(problem),
    streams: streamsOf(request),
    workspaceBytes: (policy) => operandBytes(request) * packedElements(filter(policy)),
    matrix: productUnit(request, addsUp(windowTarget(geometry), geometry.rows)),
    a: { along: "place", vector: 4 },
    b: access,
  };
  return { geometry, access, filter, product };
}

/** The same with how it is cut. */
function fusedGeometry(request: PlanRequest) {
  const made = fusedProduct(request);
  const cut = cutProduct(request, made.product);
  return isRefusal(cut) ? cut : { request, ...made, cut };
}

type FusedGeometry = Exclude<ReturnType<typeof fusedGeometry>, Refusal>;

/** Plans im2win without its tensor: window rows are built in workgroup memory, a strip at a time. */
function planIm2winFused(asked: FusedGeometry, mode: SizeMode): Planned<Plan> {
  const request = withHalfTile(asked.request, asked.cut);
  const chosen = request === asked.request ? asked : fusedGeometry(request);
  if (isRefusal(chosen)) return chosen;
  const { problem } = request;
  const { geometry, access, filter: filterOf, product: whole, cut } = chosen;
  const { taps, channels, interleave } = geometry;
  const { rows, columns } = whole;
  const { policy } = cut;
  const padded = tapDepth(geometry.channels, policy.depth);
  const filter = filterOf(policy);

  const tensors = problemBuffers(request, mode);
  const { buffers, tensor, elements } = tensors;
  const { packed, passes: pack } = packedFilter(filter, tensors, "filter in window order");
  const target = { ...windowTarget(geometry), buffer: tensor.output, element: elements.result };
  const shape = { cut, rows, columns, target };
  const main = cutPasses(request, shape, tensors, product);
  return buffers.plan({
    kernel: canonicalName(main.product.kernel),
    algorithm: "im2win-fused",
    passes: resultElements(problem) === 0 ? [] : [...pack, main.product, ...main.sums],
    multiplications: main.product.multiplications,
    arithmetic: cutArithmetic(main.cut, whole.steps(policy), whole.matrix?.chain),
    schedule: cutSchedule(main.cut, request),
    notes: [
      `window rows built in workgroup memory, ` +
      `${interleave === 4 ? "four images a vector" : "single images"}, ` +
      `a product of ${rows} x ${columns} x ${filter.depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : ""),
      ...cutNotes(main.cut, cutTiles(shape, problem.groups), request),
    ],
  });

  function product(part: ProductPart): Pass {
    const module = moduleBuilder(mode);
    const { storage, tile } = elements;
    const read = (name: string, vector: 1 | 4, buffer: number) =>
      module.tensor(name, "read", vector, buffers.split(buffer), storage, tile);
    const a = read("packed", 4, packed);
    const { along, sourceVector } = access;
    const b = read("input", sourceVector, tensor.input);
    const { axes, input } = geometry;
    const lies = { places: filter.paddedRows, depth: filter.depth, tileDepth: policy.depth };
    return productPass({
      name: `im2win_fused_fwd_${elementsTrait(elements)}`,
      chain: whole.matrix?.chain,
      trait: `${request.layout}_${problem.filterSize.length}d_${
        padded % policy.depth === 0 ? "tap" : "linear"
      }_i${interleave}b${sourceVector}`,
      module,
      depth: taps * padded,
      a: packedLoader(module, "a", a, lies),
      b: windowGatherLoader(module, b, {
        axes,
        interleave,
        channels,
        paddedChannels: padded,
        batchStride: input[0]!,
        channelStride: input[1]!,
        sourceVector,
        along,
        tileDepth: policy.depth,
      }),
      places: { packed, input: tensor.input },
      ...part,
    }, buffers);
  }
}

/** What windows of four images in turn, with steps within taps and across them, and of single ones reach of `narrowLoads` (170 cases on an H200). */
const WINDOW_LOADS = { 4: { tap: 1, linear: 0.8 }, 1: { tap: 1.33, linear: 1.19 } };

/** Microseconds of im2win that builds its windows on the way. */
function im2winFusedTime({ request, geometry, filter, cut }: FusedGeometry): number {
  const device = deviceOf(request);
  const { policy, cost } = cut;
  const linear = filter(policy).paddedChannels % policy.depth !== 0;
  // Four images share it, but they are four loads where one could take four channels.
  const alone = geometry.interleave === 1 ||
    request.layout === "nhwc" && geometry.channels % 4 === 0;
  const share = linear && alone ? device.shares.linear : 1;
  const windows = WINDOW_LOADS[geometry.interleave][linear ? "linear" : "tap"];
  const { singles, narrowLoads } = device.shares;
  const single = geometry.interleave === 1 && !policy.matrix?.split;
  const tile = single ? singles[policy.name] ?? 1 : 1;
  const units = policy.matrix === undefined ? 1 : narrowLoads * windows * tile;
  const time = productTime(cost, share * units * device.rates.gathered);
  const stored = storedShare(request, windowTarget(geometry), geometry.rows);
  return gatheredTime(request, time, filter(policy), stored);
}

const ALIKE = { options: SCHEDULE_FIELDS, dtypes: FLOAT_DTYPES } as const;

/** Share of a rate at which the input is written. */
function writingRate(request: PlanRequest, written: "matrices" | "windows"): number {
  const { rates, shares } = deviceOf(request);
  return shares[written][request.layout === "nhwc" ? "along" : "across"] * rates.stream;
}

/** An explicit matrix and a product, forward. */
export const im2col: Algorithm<TransformedCut> = {
  name: "im2col",
  ...ALIKE,
  refuse: ({ problem: { op } }) =>
    op === "fwd" ? undefined : "it is forward only, implicit-gemm multiplies gradients",
  geometry: (request) => cutTransformed(request, IM2COL),
  price: (cut) => transformedTime(cut, writingRate(cut.request, "matrices")),
  plan: planTransformed,
};

/** Why a problem cannot be done by windows, or undefined if it can. */
function refuseWindows({ problem: { op } }: PlanRequest): string | undefined {
  return op === "fwd" ? undefined : `windows are of the input of fwd, ${op} sums over other ones`;
}

/** The input in window order, then a product. */
export const im2win: Algorithm<TransformedCut> = {
  name: "im2win",
  ...ALIKE,
  refuse: refuseWindows,
  geometry: (request) => cutTransformed(request, IM2WIN),
  price: (cut) => transformedTime(cut, writingRate(cut.request, "windows")),
  plan: planTransformed,
};

/** The same with windows built on the way. */
export const im2winFused: Algorithm<FusedGeometry> = {
  name: "im2win-fused",
  ...ALIKE,
  refuse: refuseWindows,
  // Where four images are a vector: single ones are gathered as implicit GEMM does, but for images on matrix units, whose places it finds
  // by rows of windows.
  candidates(request) {
    const candidate = { algorithm: "im2win-fused", amplification: 1 } as const;
    const fours = windowGeometry(request).interleave === 4;
    const single = request.layout === "nchw" && productUnit(request) !== undefined;
    const reason = refuseWindows(request) ??
      (fours || single ? undefined : "it would take single images");
    return [reason === undefined ? candidate : { ...candidate, reason }];
  },
  geometry: fusedGeometry,
  price: im2winFusedTime,
  plan: planIm2winFused,
};
