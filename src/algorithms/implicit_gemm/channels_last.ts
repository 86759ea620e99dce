import { elementsOf } from "../../elements/elements.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime } from "../device/model.ts";
import type { Pass } from "../plan.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes, type BufferList, resultElements } from "../tensors.ts";
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

/** Halves that a load of matrix units takes at once. */
const VECTOR = 8;
/** How many times as large as a tensor its copy may be: one channel is padded to a vector, 7 x 3 of a stem's become 24. */
const MOST_GROWTH = VECTOR;

/** Operands that are written once more before they are multiplied, so that matrix units load them by vectors. */
export interface ChannelsLast {
  /** What is multiplied then: channels are innermost, those that are no whole vectors padded with zeros. */
  readonly request: PlanRequest;
  /** The operands that are written, and how. */
  readonly operands: readonly { readonly which: ConvTensor; readonly copy: Copy }[];
  /** How a filter's gradient is turned that leaves otherwise than it is asked for, and what is padding dropped. */
  readonly gradient: Copy | undefined;
  /** Whether taps along the last axis have become channels. */
  readonly unfolded: boolean;
}

/**
 * The ways to write operands once more with channels innermost: images of nchw, which matrix units load one half at a time, and
 * images whose channels are no whole vectors, padded with zeros, or, where they are few, with the taps of the last axis as
 * channels. Without units where it is asked for alone, of nchw, and nothing is padded.
 */
export function channelsLastWays(request: PlanRequest): readonly ChannelsLast[] {
  const { layout, dtype, variant } = request;
  if (layout === "chwn" || dtype === "i8") return [];
  const ways = productUnit(request) === undefined
    ? []
    : [false, true].flatMap((unfolded) => channelsLast(request, VECTOR, unfolded) ?? []);
  return ways.length > 0 || !variant?.channelsLast
    ? ways
    : [channelsLast(request, 1, false) ?? []].flat();
}

/** Operands with channels in vectors; undefined where that takes no writing, or cannot be. */
function channelsLast(
  request: PlanRequest,
  vector: number,
  unfolded: boolean,
): ChannelsLast | undefined {
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
  const operands = [
    ...written.map((which) => ({
      which,
      copy: imageCopy(request, which, channels(which), unfolded && which === "input"),
    })),
    ...(grows && op !== "bwd-filter"
      ? [{ which: "filter" as const, copy: filterCopy(request, padded, taps) }]
      : []),
  ];
  const { storage, result } = elementsOf(request);
  const lying = (which: ConvTensor) => elementCount(tensorShape(problem, which));
  const fits =
    operands.every(({ which, copy }) =>
      copiedElements(copy) <= MOST_GROWTH * lying(which) &&
      copyFits(request, lying(which), copiedElements(copy), storage)
    ) &&
    (gradient === undefined || copyFits(request, lying("filter"), resultElements(padded), result));
  return !fits ? undefined : {
    request: {
      ...request,
      problem: padded,
      layout: "nhwc",
      filterLayout: gradient !== undefined || grows && op === "fwd" ? "krsc" : filterLayout,
    },
    operands,
    gradient,
    unfolded,
  };
}

/** Bytes of the operands as they are written, and of a filter's gradient before it is turned. */
export function channelsLastBytes({ request, operands, gradient }: ChannelsLast): number {
  const { storage, result } = elementsOf(request);
  return operands.reduce(
    (sum, { copy }) => sum + bufferBytes(copiedElements(copy), storage),
    gradient === undefined ? 0 : bufferBytes(resultElements(request.problem), result),
  );
}

/** Microseconds of writing them, of a request as it is asked for. */
export function channelsLastTime(
  asked: PlanRequest,
  { request, operands, gradient }: ChannelsLast,
): number {
  const device = deviceOf(asked);
  const { filterStream } = device.rates;
  const { storage, result } = elementsOf(asked);
  const time = (elements: number, element: Scalar) =>
    passTime(0, moveTime(scalarBytes(element) * elements, filterStream), device);
  const turned = gradient === undefined
    ? 0
    : time(resultElements(request.problem) + copiedElements(gradient), result);
  return operands.reduce((sum, { which, copy }) => {
    const elements = elementCount(tensorShape(asked.problem, which)) + copiedElements(copy);
    return sum + time(elements, storage);
  }, turned);
}

/** Adds the operands with channels innermost and the passes that write them. */
export function channelsLastOperands(
  { request, operands }: ChannelsLast,
  buffers: BufferList,
  tensor: Readonly<Record<ConvTensor, number>>,
): { places: Readonly<Record<ConvTensor, number>>; passes: Pass[] } {
  const { storage } = elementsOf(request);
  const passes: Pass[] = [];
  const places = { ...tensor };
  for (const { which, copy } of operands) {
    const name = `${which} with channels last`;
    places[which] = buffers.workspace(name, copiedElements(copy), storage);
    const at = { unpacked: tensor[which], packed: places[which] };
    passes.push(...copyPasses(copy, buffers, at, storage));
  }
  return { places, passes };
}

/** Adds a filter's gradient with channels innermost, and the passes that write the result by it; undefined where it leaves as it lies. */
export function channelsLastGradient(
  { request, gradient }: ChannelsLast,
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

/** What is written, in a note. */
export function channelsLastNote(
  { problem }: PlanRequest,
  { request, operands, unfolded }: ChannelsLast,
): string {
  const { inChannels, outChannels } = request.problem;
  const which = operands.map(({ which }) => which).join(" and ");
  const grown = unfolded
    ? `, the last axis's taps among them: ${inChannels}`
    : inChannels !== problem.inChannels || outChannels !== problem.outChannels
    ? `, padded to ${inChannels} and ${outChannels}`
    : "";
  return `${which} written once with channels innermost${grown}`;
}
