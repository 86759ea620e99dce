/** How int8 becomes words of four channels, which a product multiplies at once. */
import { unfoldedElements, type UnfoldShape } from "../../kernels/im2col.ts";
import { packBytesKernel, type PackBytesShape, packedWords } from "../../kernels/pack.ts";
import { type ConvTensor, tensorShape } from "../../problem/conv_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, passTime } from "../device/model.ts";
import { pass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import { productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import type { BufferList } from "../tensors.ts";
import { copyFits, copyPasses, imageCopy, MOST_UNFOLDED, withoutTaps } from "./channels_copy.ts";

/** Channels of a word, and of what matrix units load at once. */
const WORD = 4;
const VECTOR = 16;
/** How many times as large as a tensor its copy may be: one channel is padded to a vector. */
const MOST_GROWTH = VECTOR;

/** An operand that is written once more: rows of bytes that become rows of words, or taps that become channels. */
interface WordsCopy {
  readonly which: ConvTensor;
  readonly shape: PackBytesShape | UnfoldShape;
  /** That it writes. */
  readonly words: number;
}

/** A convolution of int8 as one of words, and what is written before. */
export interface Words {
  /** Of as many words of channels: to all but the product of two words it is a convolution like any other. */
  readonly request: PlanRequest;
  readonly copies: readonly WordsCopy[];
  /** What is written, in a note; undefined where operands are read as they lie. */
  readonly note: string | undefined;
}

/**
 * The ways to multiply words: as channels lie where groups have whole words of them, else padded with zeros; on matrix units also padded
 * to whole vectors, or with the taps of the last axis as channels where these are few.
 */
export function wordWays(request: PlanRequest): readonly [Words, ...Words[]] {
  const channels = request.problem.inChannels / request.problem.groups;
  const first = channels % WORD === 0 ? inWords(request, []) : padded(request, WORD);
  if (channels % VECTOR === 0 || productUnit(request) === undefined) return [first];
  const wide = [padded(request, VECTOR), unfolded(request)].filter((way) => way !== undefined);
  return [first, ...wide.filter((way) => fits(request, way))];
}

/** The request in words of a problem's channels. */
function inWords(
  request: PlanRequest,
  copies: readonly WordsCopy[],
  problem = request.problem,
  note?: string,
): Words {
  const inChannels = problem.inChannels / WORD;
  return { request: { ...request, problem: { ...problem, inChannels } }, copies, note };
}

/** A group's channels padded to a multiple of so many. */
function padded(request: PlanRequest, multiple: number): Words {
  const { problem } = request;
  const { groups, inChannels } = problem;
  const each = Math.ceil(inChannels / groups / multiple) * multiple;
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
function unfolded(request: PlanRequest): Words | undefined {
  const { problem } = request;
  const { groups, inChannels, filterSize } = problem;
  const taps = filterSize.at(-1)!;
  const channels = taps * inChannels;
  if (groups > 1 || taps === 1 || channels > MOST_UNFOLDED) return undefined;
  const whole = Math.ceil(channels / VECTOR) * VECTOR;
  const image = imageCopy(request, "input", whole, true);
  return inWords(
    request,
    [
      { which: "input", shape: image, words: unfoldedElements(image) / WORD },
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
): WordsCopy {
  const shape: PackBytesShape = {
    groups: elementCount(tensorShape(problem, which)) / depth,
    places: 1,
    paddedPlaces: 1,
    depth,
    paddedWords: whole / WORD,
    along: "depth",
    panel: 1,
  };
  return { which, shape, words: packedWords(shape) };
}

/** Whether what is written has room. */
function fits(request: PlanRequest, { copies }: Words): boolean {
  return copies.every(({ which, words }) => {
    const lying = elementCount(tensorShape(request.problem, which)) / WORD;
    return words <= MOST_GROWTH * lying && copyFits(request, lying, words, "u32");
  });
}

/** Bytes that are written. */
export function wordsBytes({ copies }: Words): number {
  return copies.reduce((sum, { words }) => sum + WORD * words, 0);
}

/** Microseconds of writing them, of a request as it is asked for. */
export function wordsTime(asked: PlanRequest, { copies }: Words): number {
  const device = deviceOf(asked);
  return copies.reduce((sum, { which, words }) => {
    const bytes = elementCount(tensorShape(asked.problem, which)) + WORD * words;
    return sum + passTime(0, moveTime(bytes, device.rates.filterStream), device);
  }, 0);
}

/** Adds the operands that are written and the passes that write them. */
export function wordsOperands(
  { copies }: Words,
  buffers: BufferList,
  tensor: Readonly<Record<ConvTensor, number>>,
): { places: Readonly<Record<ConvTensor, number>>; passes: Pass[] } {
  const passes: Pass[] = [];
  const places = { ...tensor };
  for (const { which, shape, words } of copies) {
    const packed = buffers.workspace(`${which} in words`, words, "u32");
    places[which] = packed;
    if (words === 0) continue;
    const at = { unpacked: tensor[which], packed };
    if ("axis" in shape) {
      passes.push(...copyPasses(shape, buffers, at, "i8"));
      continue;
    }
    const split = buffers.splits(at);
    const kernel = packBytesKernel(shape, buffers.mode, split.unpacked, split.packed);
    passes.push(pass(kernel, buffers, at));
  }
  return { places, passes };
}
