/** Operands of f32 in halves: what is written first, and how the mainloop loads it. */
import { ceilTo, spatialAxes, stridesOf } from "../geometry.ts";
import type { Operands } from "./access.ts";
import { type Copy, imageCopy } from "./channels_copy.ts";
import { classOperands } from "./class_operands.ts";
import { gatherOperands } from "./gather_operands.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import { shiftedInputLoader } from "../../kernels/loaders/correlation.ts";
import { packedLoader } from "../../kernels/loaders/matrix.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import { TILE_POLICIES, type TilePolicy } from "../../kernels/policy.ts";
import { type Extent, HALVES, halvesDepth, type SplitHalves } from "../../kernels/split_halves.ts";
import { type PlaceMarks, placeMarks } from "../../kernels/split_rescale.ts";
import { imagePlaces } from "../../kernels/split_rest.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  tensorShape,
} from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";

/** A way to multiply a request in halves. */
export interface HalvesOperands {
  /** What is multiplied: f16 with channels innermost; forward and backward-data as many channels more as there are low halves. */
  readonly request: PlanRequest;
  readonly operands: Operands;
}

/** An operand as it is written in halves, but for where its marks are. */
interface WrittenOperand {
  readonly which: ConvTensor;
  /** What its values are scaled by the largest of, and what is left of it. */
  readonly keys: readonly Extent[];
  readonly rest: readonly Extent[];
  readonly shape: Pick<
    SplitHalves,
    "batches" | "places" | "depth" | "strides" | "padded" | "depthInner"
  >;
}

export function writtenElements(
  { shape: { batches, places, padded, depthInner } }: WrittenOperand,
): number {
  return batches * padded.depth * (depthInner ? places : padded.places);
}

/** Values along a matrix of the unit that multiplies halves. */
function halvesUnit(request: PlanRequest): number {
  return unitDepth(productUnit(request)!.unit);
}

/** Whether the sum is over places: of a filter's gradient. */
export function sumsPlaces({ problem: { op } }: PlanRequest): boolean {
  return op === "bwd-filter";
}

/**
 * The request as its images lie when they are split: of a filter's gradient with channels innermost, as which passes before write
 * those of nchw.
 */
function lyingRequest(asked: PlanRequest): PlanRequest {
  return sumsPlaces(asked) ? { ...asked, layout: "nhwc" } : asked;
}

/** Images that are written with channels innermost before they are split. */
export function turnedImages(asked: PlanRequest): readonly { which: ConvTensor; copy: Copy }[] {
  if (lyingRequest(asked).layout === asked.layout) return [];
  return operandTensors(asked.problem.op).map((which) => {
    const channels = tensorShape(asked.problem, which)[1]!;
    return { which, copy: imageCopy(asked, which, channels, false) };
  });
}

/** The request whose channels, or images, are halves in turn, a matrix of each: what the loop's loaders go over. */
export function inHalves(request: PlanRequest): PlanRequest {
  const { problem, math: _, ...rest } = request;
  const unit = halvesUnit(request);
  const doubled: Partial<ConvProblem> = problem.op === "fwd"
    ? { inChannels: halvesDepth(problem.inChannels, unit) }
    : problem.op === "bwd-data"
    ? { outChannels: halvesDepth(problem.outChannels, unit) }
    : { batch: halvesDepth(problem.batch, unit) };
  return {
    ...rest,
    problem: { ...problem, ...doubled },
    dtype: "f16",
    outDtype: "f32",
    math: "f16x3",
    layout: "nhwc",
  };
}

/** The products that a request in halves may become, of operands that are written for them. */
export function halvesOperands(asked: PlanRequest, request: PlanRequest): readonly Operands[] {
  const { op, stride } = request.problem;
  if (op === "bwd-filter") return [correlatedHalves(asked, request)];
  const gathers = op === "fwd" || stride.every((step) => step === 1);
  return (gathers ? gatherOperands : classOperands)(request, asked.layout).filter(({ pack }) => {
    const shape = pack(TILE_POLICIES[0]!);
    return shape !== undefined && shape.classes === undefined;
  });
}

/** Halves that a load takes at once. */
const VECTOR = 8;

/**
 * Backward-filter's: of every place all images, a matrix of high halves and one of low ones in turn; gradients as they are packed, inputs
 * shifted by taps. Results of padded channels fall away.
 */
function correlatedHalves(asked: PlanRequest, { problem }: PlanRequest): Operands {
  const { batch, inChannels, outChannels: rows, outputSize, filterSize } = problem;
  // Of an input as its halves lie.
  const channels = ceilTo(inChannels, VECTOR);
  const taps = elementCount(filterSize);
  const depth = batch * elementCount(outputSize);
  const filter = stridesOf(asked, "filter");
  const inputStrides = problem.inputSize.map((_, d) =>
    elementCount(problem.inputSize.slice(d + 1)) * batch * channels
  );
  const access = { along: "place", vector: 4, value: HALVES.tile, steps: [] } as const;
  return {
    rows,
    columns: channels * taps,
    batches: 1,
    a: access,
    b: { ...access, steps: [channels] },
    left: "output",
    depth: () => depth,
    pack: () => undefined,
    loaders(module, policy, split) {
      const vector = policyVector(policy, 4, []);
      const gradient = loadedTensor(module, "output", vector, split("a"), HALVES);
      const input = loadedTensor(module, "input", vector, split("b"), HALVES);
      return [
        packedLoader(module, "a", gradient, {
          places: ceilTo(rows, policy.rows),
          depth,
          tileDepth: policy.depth,
          vector,
        }),
        shiftedInputLoader(module, input, {
          batch,
          places: outputSize,
          batchInner: true,
          tileDepth: policy.depth,
        }, {
          axes: spatialAxes(problem, "forward", [channels, 1, ...inputStrides]),
          channels,
          channelStride: 1,
          batchStride: channels,
          channelsInner: true,
          along: "place",
          vector,
        }),
      ];
    },
    result: {
      row: filter[0]!,
      group: rows * filter[0]!,
      period: channels,
      ...(channels === inChannels ? {} : { results: inChannels }),
      outer: taps > 1 ? filter.at(-1)! : 0,
      inner: filter[1]!,
    },
    crossesTaps: () => false,
    trait: () =>
      `${asked.layout}_${outputSize.length}d_halves${channels === inChannels ? "" : "_padded"}`,
  };
}

/** The operands of a request as they are written for a policy: that whose places are rows, and that whose places are columns. */
export function writtenOperands(
  request: PlanRequest,
  { request: doubled, operands }: HalvesOperands,
  policy: TilePolicy,
): { readonly a: WrittenOperand; readonly b: WrittenOperand } {
  const asked = lyingRequest(request);
  const { problem } = asked;
  const [image, other] = operandTensors(problem.op);
  const [batch, channels, ...sizes] = tensorShape(problem, image) as [number, number, ...number[]];
  const spots = elementCount(sizes);
  const strides = stridesOf(asked, image);
  const spotStride = strides.at(-1)!;
  const count = (count: number, stride: number): Extent => ({ count, stride });
  if (sumsPlaces(asked)) {
    const depth = doubled.problem.batch;
    const written = (which: ConvTensor, tile: number): WrittenOperand => {
      const [images, channels, ...sizes] = tensorShape(problem, which) as [number, number];
      const spots = elementCount(sizes);
      const [imageStride, channelStride] = stridesOf(asked, which) as [number, number];
      return {
        which,
        keys: [count(channels, channelStride)],
        rest: [count(images, imageStride), count(spots, channels)],
        shape: {
          batches: spots,
          places: channels,
          depth: images,
          strides: { batch: channels, place: channelStride, depth: imageStride },
          padded: { places: ceilTo(channels, tile), depth },
        },
      };
    };
    return { a: written(other, policy.rows), b: written(image, VECTOR) };
  }
  const { rows, taps, paddedRows, paddedChannels } = operands.pack(policy)!;
  const filters = stridesOf(asked, "filter");
  const [row, channel] = problem.op === "fwd"
    ? [filters[0]!, filters[1]!]
    : [filters[1]!, filters[0]!];
  const tap = filters.at(-1)!;
  const depth = problem.op === "fwd" ? problem.inChannels : problem.outChannels;
  return {
    a: {
      which: "filter",
      keys: [count(rows, row)],
      rest: [count(depth, channel), count(taps, tap)],
      shape: {
        batches: taps,
        places: rows,
        depth,
        strides: { batch: tap, place: row, depth: channel },
        padded: { places: paddedRows, depth: paddedChannels },
      },
    },
    b: {
      which: image,
      keys: [count(batch, strides[0]!)],
      rest: [count(channels, strides[1]!), count(spots, spotStride)],
      shape: {
        batches: batch,
        places: spots,
        depth: channels,
        strides: { batch: strides[0]!, place: spotStride, depth: strides[1]! },
        padded: { places: spots, depth: halvesDepth(channels, halvesUnit(doubled)) },
        depthInner: true,
      },
    },
  };
}

/** What is kept of the operands: of rows and columns of the product, and of images and their places, which columns are made of. */
export interface HalvesMarks extends PlaceMarks {
  /** Before the largest values of images, and before the counts of their places, which are two kinds. */
  readonly images: { readonly largest: number; readonly counts: number; readonly places: number };
  /** Before the words that say how fine B's values are, one of each largest value. */
  readonly fine: number;
}

export function halvesMarks(request: PlanRequest): HalvesMarks {
  const { problem } = request;
  const { op, inChannels, outChannels } = problem;
  if (sumsPlaces(request)) {
    const marks = placeMarks(outChannels, inChannels);
    return {
      ...marks,
      words: marks.words + inChannels,
      images: { largest: 0, counts: 0, places: 0 },
      fine: marks.words,
    };
  }
  const rows = op === "fwd" ? outChannels : inChannels;
  const marks = placeMarks(rows, imagePlaces(problem, "result"), 4);
  const places = imagePlaces(problem, "source");
  const counts = marks.words + problem.batch;
  return {
    ...marks,
    words: counts + 2 * places + problem.batch,
    images: { largest: marks.words, counts, places },
    fine: counts + 2 * places,
  };
}

/** Share of the values along the depth that are no padding. */
export function filledShare(
  { problem }: PlanRequest,
  { request: { problem: doubled } }: Pick<HalvesOperands, "request">,
): number {
  const { op } = problem;
  const count = ({ batch, inChannels, outChannels }: ConvProblem) =>
    op === "fwd" ? inChannels : op === "bwd-data" ? outChannels : batch;
  return 2 * count(problem) / count(doubled);
}

/** Mean share of a gradient's places that meet the input: others meet its padding. */
export function metShare({ problem }: PlanRequest): number {
  const { inputSize, outputSize, filterSize, stride, dilation, paddingBegin } = problem;
  return outputSize.reduce((share, places, d) => {
    let met = 0;
    for (let tap = 0; tap < filterSize[d]!; tap++) {
      const first = tap * dilation[d]! - paddingBegin[d]!;
      const begin = Math.max(0, Math.ceil(-first / stride[d]!));
      const end = Math.min(places, Math.ceil((inputSize[d]! - first) / stride[d]!));
      met += Math.max(0, end - begin);
    }
    return share * met / (places * filterSize[d]!);
  }, 1);
}
