import template from "../../shaders/channel_sums.wgsl" with { type: "text" };
import { type Scalar, scalarBytes, sumScalar, typeName, zeroOf } from "../elements/scalar.ts";
import { compensationText } from "./sums.ts";
import type { ModuleBuilder } from "./module.ts";
import { loopIterations, type SizedKernel, templateKernel } from "./sized_kernel.ts";

/** Threads of a workgroup. */
const THREADS = 256;
/** Channels, or vectors of four, that neighbouring threads take where channels lie innermost. */
const MOST_ACROSS = 32;
/** Loads that a thread has on their way at once. */
const AT_ONCE = 4;

/** A tensor of [outer][channels][inner] that is summed over all but its channels. */
export interface ChannelSumsShape {
  readonly outer: number;
  readonly channels: number;
  readonly inner: number;
  /** Parts that the places of a channel are dealt to, a workgroup each. */
  readonly segments: number;
}

/** How the threads of a workgroup lie: `across` channels (or vectors of four), `along` places of each. */
export interface ChannelSumsThreads {
  /** Four channels at a time where they lie innermost, else four places. */
  readonly width: 1 | 4;
  readonly across: number;
  readonly along: number;
  /** Workgroups beside each other that all channels take. */
  readonly blocks: number;
  /** Loads of a channel, or of four. */
  readonly places: number;
}

/** Deals a tensor to threads. */
export function channelSumsThreads(
  { outer, channels, inner }: Omit<ChannelSumsShape, "segments">,
): ChannelSumsThreads {
  const innermost = inner === 1;
  const width = (innermost ? channels : inner) % 4 === 0 ? 4 : 1;
  const vectors = innermost ? channels / width : channels;
  let across = 1;
  while (innermost && across < MOST_ACROSS && across < vectors) across *= 2;
  return {
    width,
    across,
    along: THREADS / across,
    blocks: Math.ceil(vectors / across),
    places: innermost ? outer : outer * inner / width,
  };
}

/**
 * Sums a tensor over all but its channels: what a bias' gradient is of an output's. Threads, lanes and segments are added in
 * a fixed order, with compensation (which compilers may drop). Binds `output` and `sums` of [segment][channel].
 *
 * @param element Of the tensor.
 * @param result Of the sums.
 */
export function channelSumsKernel(
  module: ModuleBuilder,
  shape: ChannelSumsShape,
  element: Scalar,
  result: Scalar,
): SizedKernel {
  const { width, across, along, blocks, places } = channelSumsThreads(shape);
  const innermost = shape.inner === 1;
  // Of four places of a channel one sum is left.
  const kept = innermost ? width : 1;
  const sum = sumScalar(element);
  const output = module.bind("output", "read", width, element);
  const sums = module.bind("sums", "write", kept, result);
  const name = `channel_sums_${innermost ? "channels" : "places"}x${width}_${element}` +
    `${element === result ? "" : `_to_${result}`}_l${across}${module.splitTrait()}`;
  const perSegment = Math.ceil(places / shape.segments);
  const channels = module.size("channels", innermost ? shape.channels / width : shape.channels);
  const inner = module.size("inner", innermost ? 1 : Math.max(1, shape.inner / width));
  const load = (place: string) =>
    output.load(
      innermost
        ? `${place} * ${channels} + channel`
        : `(${place} / ${inner} * ${channels} + channel) * ${inner} + ${place} % ${inner}`,
    );
  const total = kept === width ? "total" : "(total.x + total.y) + (total.z + total.w)";
  const values = {
    type: typeName(sum, width),
    none: zeroOf(sum, width),
    compensation: compensationText(sum, width),
    across,
    along,
    blocks: module.size("blocks", blocks),
    segments: module.size("segments", shape.segments),
    perSegment: module.size("per_segment", perSegment),
    places: module.size("places", places),
    channels,
    load,
    store: sums.store(`segment * ${channels} + channel`, total),
  };
  return templateKernel(module, name, template, values, {
    workgroups: blocks * shape.segments,
    bytes: 2 * THREADS * width * scalarBytes(sum),
    iterations: loopIterations(Math.ceil(perSegment / (AT_ONCE * along))) +
      loopIterations(Math.log2(along)),
  });
}
