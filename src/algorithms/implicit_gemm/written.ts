/** Operands that are written once more before they are multiplied: with channels innermost, or of int8 in words of four channels. */
import { elementsOf } from "../../elements/elements.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import { unfoldedElements, type UnfoldShape } from "../../kernels/im2col.ts";
import { type PackBytesShape, packedWords, type PackShape } from "../../kernels/pack.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../../problem/conv_problem.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime } from "../device/model.ts";
import { ceilTo } from "../geometry.ts";
import type { Pass } from "../plan.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import {
  bufferBytes,
  type BufferList,
  resultElements,
  tensorElements,
  tensorScalar,
} from "../tensors.ts";
import {
  copiedElements,
  type Copy,
  copyFits,
  copyPasses,
  filterCopy,
  gradientCopy,
  imageCopy,
  MOST_UNFOLDED,
  withoutTaps,
} from "./channels_copy.ts";

/** Halves, or int8, that a load of matrix units takes at once. Copies may be so many times as large as a tensor: one channel is padded to a vector. */
const VECTOR = { f16: 8, i8: 16 };
/** Channels of a word. */
const WORD = 4;

/** An operand that is written once more, and the elements that are written. */
interface WrittenOperand {
  readonly which: ConvTensor;
  readonly copy: Copy;
  readonly elements: number;
}

/** A convolution as one of operands that are written before. */
export interface Written {
  /** What is multiplied then: channels are innermost, padded with zeros where they are no whole vectors; of int8 words of them. */
  readonly request: PlanRequest;
  readonly operands: readonly WrittenOperand[];
  /** How a filter's gradient is turned that leaves otherwise than it is asked for, and what is padding dropped. */
  readonly gradient?: Copy | undefined;
  /** What is written; undefined where operands are read as they lie. */
  readonly note: string | undefined;
}

/**
 * The ways to write operands once more with channels innermost: images of nchw, which matrix units load one half at a time, and
 * images whose channels are no whole vectors, padded with zeros, or, where they are few, with the taps of the last axis as
 * channels. Without units where it is asked for alone, of nchw, and nothing is padded.
 */
export function channelsLastWays(request: PlanRequest): readonly Written[] {
  const { layout, dtype, schedule, within } = request;
  if (layout === "chwn" || dtype === "i8" || within !== undefined) return [];
  const ways = productUnit(request) === undefined
    ? []
    : [false, true].flatMap((unfolded) => channelsLast(request, VECTOR.f16, unfolded) ?? []);
  return ways.length > 0 || !schedule?.channelsLast
    ? ways
    : [channelsLast(request, 1, false) ?? []].flat();
}

/** Operands with channels in vectors; undefined where that takes no writing, or cannot be. */
function channelsLast(
  request: PlanRequest,
  vector: number,
  unfolded: boolean,
): Written | undefined {
  const { problem, layout, filterLayout } = request;
  const { op, groups, inChannels, outChannels } = problem;
  const taps = unfolded ? problem.filterSize.at(-1)! : 1;
  if (unfolded) {
    const few = inChannels % vector !== 0 && taps * inChannels <= MOST_UNFOLDED;
    if (op === "bwd-data" || groups > 1 || taps === 1 || !few) return undefined;
  }
  const images = operandTensors(op).filter((which) => which !== "filter");
  // Channels of several groups would be padded apart.
  const whole = (channels: number) =>
    groups === 1 ? Math.ceil(channels / vector) * vector : channels;
  const padded: ConvProblem = {
    ...unfolded ? withoutTaps(problem) : problem,
    inChannels: images.includes("input") ? whole(taps * inChannels) : inChannels,
    outChannels: images.includes("output") ? whole(outChannels) : outChannels,
  };
  const channels = (which: ConvTensor) => tensorShape(padded, which)[1]!;
  if (images.some((which) => channels(which) / groups % vector !== 0)) return undefined;
  const grows = padded.inChannels !== inChannels || padded.outChannels !== outChannels;
  const written = images.filter((which) =>
    layout === "nchw" || channels(which) !== tensorShape(problem, which)[1]
  );
  if (written.length === 0 || grows && filterLayout === "crsk") return undefined;
  const gradient = op === "bwd-filter" && (grows || layout === "nchw" && filterLayout === "kcrs")
    ? gradientCopy(request, padded, taps)
    : undefined;
  const copies: { which: ConvTensor; copy: PackShape | UnfoldShape }[] = written.map((which) => ({
    which,
    copy: imageCopy(request, which, channels(which), unfolded && which === "input"),
  }));
  if (grows && op !== "bwd-filter") {
    copies.push({ which: "filter", copy: filterCopy(request, padded, taps) });
  }
  const operands = copies.map((one) => ({ ...one, elements: copiedElements(one.copy) }));
  const { result } = elementsOf(request);
  const lying = tensorElements(problem, "filter");
  const turned = gradient === undefined || copyFits(request, lying, resultElements(padded), result);
  if (!fits(request, operands) || !turned) return undefined;
  const which = operands.map(({ which }) => which).join(" and ");
  const grown = unfolded
    ? `, the last axis's taps among them: ${padded.inChannels}`
    : grows
    ? `, padded to ${padded.inChannels} and ${padded.outChannels}`
    : "";
  return {
    request: {
      ...request,
      problem: padded,
      layout: "nhwc",
      filterLayout: gradient !== undefined || grows && op === "fwd" ? "krsc" : filterLayout,
    },
    operands,
    gradient,
    note: `${which} written once with channels innermost${grown}`,
  };
}

/**
 * The ways to multiply words: as channels lie where groups have whole words of them, else padded with zeros; on matrix units also padded
 * to whole vectors, or with the taps of the last axis as channels where these are few.
 */
export function wordWays(request: PlanRequest): readonly [Written, ...Written[]] {
  const channels = request.problem.inChannels / request.problem.groups;
  const first = channels % WORD === 0 ? inWords(request, []) : padded(request, WORD);
  if (channels % VECTOR.i8 === 0 || productUnit(request) === undefined) return [first];
  const wide = [padded(request, VECTOR.i8), unfolded(request)].filter((way) => way !== undefined);
  return [first, ...wide.filter(({ operands }) => fits(request, operands))];
}

/** The request in words of a problem's channels. */
function inWords(
  request: PlanRequest,
  operands: readonly WrittenOperand[],
  problem = request.problem,
  note?: string,
): Written {
  const inChannels = problem.inChannels / WORD;
  return { request: { ...request, problem: { ...problem, inChannels } }, operands, note };
}

/** A group's channels padded to a multiple of so many. */
function padded(request: PlanRequest, multiple: number): Written {
  const { problem } = request;
  const { groups, inChannels } = problem;
  const each = ceilTo(inChannels / groups, multiple);
  return inWords(
    request,
    (["input", "filter"] as const).map((which) =>
      rowsCopy(request, which, inChannels / groups, each)
    ),
    { ...problem, inChannels: groups * each },
    `channels of a group are padded to ${each}, whole ${
      multiple === WORD ? "words of four" : "vectors of four words"
    }`,
  );
}

/** The taps of the last axis as channels; undefined where these are not few. */
function unfolded(request: PlanRequest): Written | undefined {
  const { problem } = request;
  const { groups, inChannels, filterSize } = problem;
  const taps = filterSize.at(-1)!;
  const channels = taps * inChannels;
  if (groups > 1 || taps === 1 || channels > MOST_UNFOLDED) return undefined;
  const whole = ceilTo(channels, VECTOR.i8);
  const image = imageCopy(request, "input", whole, true);
  return inWords(
    request,
    [
      { which: "input", copy: image, elements: unfoldedElements(image) / WORD },
      // Taps of a row follow each other in the filter.
      rowsCopy(request, "filter", channels, whole),
    ],
    { ...withoutTaps(problem), inChannels: whole },
    `channels and the last axis's taps are written once as ${whole} channels`,
  );
}

/** Runs of so many bytes of an operand, each padded to so many. */
function rowsCopy(
  { problem }: PlanRequest,
  which: ConvTensor,
  depth: number,
  whole: number,
): WrittenOperand {
  const copy: PackBytesShape = {
    groups: tensorElements(problem, which) / depth,
    places: 1,
    paddedPlaces: 1,
    depth,
    paddedWords: whole / WORD,
    along: "depth",
    panel: 1,
  };
  return { which, copy, elements: packedWords(copy) };
}

/** Elements of an operand as it lies, of int8 words. */
function lyingElements({ problem, dtype }: PlanRequest, which: ConvTensor): number {
  return tensorElements(problem, which) / (dtype === "i8" ? WORD : 1);
}

function fits(request: PlanRequest, operands: readonly WrittenOperand[]): boolean {
  const { storage } = elementsOf(request);
  const growth = VECTOR[request.dtype === "i8" ? "i8" : "f16"];
  return operands.every(({ which, elements }) => {
    const lying = lyingElements(request, which);
    return elements <= growth * lying && copyFits(request, lying, elements, storage);
  });
}

/** Bytes of the operands as they are written, and of a filter's gradient before it is turned. */
export function writtenBytes({ request, operands, gradient }: Written): number {
  const { storage, result } = elementsOf(request);
  return operands.reduce(
    (sum, { elements }) => sum + bufferBytes(elements, storage),
    gradient === undefined ? 0 : bufferBytes(resultElements(request.problem), result),
  );
}

/**
 * Microseconds of writing them, of a request as it is asked for. Images whose channels are padded where they lie, to twice as many at
 * most, are read in one run: they take as long as matrices (im2col) that are written.
 */
export function writingTime(asked: PlanRequest, { request, operands, gradient }: Written): number {
  const device = deviceOf(asked);
  const { rates, shares } = device;
  const { storage, result } = elementsOf(asked);
  const time = (elements: number, element: Scalar, rate = rates.filterStream) =>
    copyTime(scalarBytes(element) * elements, rate, device);
  const turned = gradient === undefined
    ? 0
    : time(resultElements(request.problem) + copiedElements(gradient), result);
  const padded = asked.layout === "nhwc" && asked.dtype !== "i8" &&
    request.problem.filterSize.at(-1) === asked.problem.filterSize.at(-1);
  return operands.reduce((sum, { which, elements }) => {
    const lying = lyingElements(asked, which);
    const run = padded && which !== "filter" && elements <= 2 * lying;
    return sum +
      time(lying + elements, storage, run ? shares.matrices.along * rates.stream : undefined);
  }, turned);
}

/** Adds the operands that are written and the passes that write them. */
export function writeOperands(
  { request, operands }: Written,
  buffers: BufferList,
  tensor: Readonly<Record<ConvTensor, number>>,
): { places: Readonly<Record<ConvTensor, number>>; passes: Pass[] } {
  const places = { ...tensor };
  const how = request.dtype === "i8" ? "in words" : "with channels last";
  const passes = operands.flatMap(({ which, copy, elements }) => {
    const packed = buffers.workspace(`${which} ${how}`, elements, elementsOf(request).storage);
    places[which] = packed;
    const at = { unpacked: tensor[which], packed };
    return copyPasses(copy, buffers, at, tensorScalar(request, which));
  });
  return { places, passes };
}

/** Adds a filter's gradient with channels innermost, and the passes that write the result by it; undefined where it leaves as it lies. */
export function turnGradient(
  { request, gradient }: Written,
  buffers: BufferList,
  result: number,
): { place: number; passes: Pass[] } | undefined {
  if (gradient === undefined) return undefined;
  const { problem } = request;
  const { result: element } = elementsOf(request);
  const name = `${resultTensor(problem.op)} with channels last`;
  const place = buffers.workspace(name, resultElements(problem), element);
  const at = { unpacked: place, packed: result };
  return { place, passes: copyPasses(gradient, buffers, at, element) };
}
