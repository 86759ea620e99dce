import { InputRangeError, UnsupportedError } from "../errors.ts";
import { type ConvTensor, operandTensors } from "../problem/conv_problem.ts";
import { dtypeBytes } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type ConvAsked, convSubject } from "./conv_subject.ts";
import type { Subject, SubjectTensor } from "./subject.ts";

/** A convolution as one of its batch's chunks after the other computes it. */
export interface BatchedSubject {
  /** Of the whole batch. */
  readonly whole: Subject;
  /** Images in all. */
  readonly batch: number;
  /** Which axis of its tensors in memory the batch is, of all but the filter. */
  readonly axis: number;
  /** The operands that have a batch. */
  readonly cut: readonly ConvTensor[];
  /** Whether results of chunks are added up; they follow each other along the batch otherwise. */
  readonly summed: boolean;
  /** The same of so many images. What is to be added up is not rounded to f16 before. */
  part(images: number): Subject;
}

/** What a run keeps on the device at once: a chunk is filled, one computes, one is fetched. */
export const SLOTS = 3;
/** Tensors of files that take no more than this together are not cut. */
const WHOLE_BYTES = 2 ** 30;
/** Bytes of a chunk's tensors where nothing else is said: three are held by the host, three by the device. */
const CHUNK_BYTES = 64 * 2 ** 20;

/** A convolution whose batch can be cut. */
export function batchedSubject(asked: ConvAsked): BatchedSubject {
  const { problem, layout } = asked;
  const { op, batch } = problem;
  const summed = op === "bwd-filter";
  return {
    whole: convSubject(asked),
    batch,
    axis: layout === "chwn" ? problem.inputSize.length + 1 : 0,
    cut: operandTensors(op).filter((which) => which !== "filter"),
    summed,
    part: (images) =>
      convSubject({
        ...asked,
        ...(summed ? { outDtype: "f32" } : {}),
        problem: { ...problem, batch: images },
      }),
  };
}

/** What a batch is cut by. */
interface CutNeeds {
  readonly subject: BatchedSubject;
  /** Largest buffer of the device. */
  readonly maxBufferBytes: number;
  readonly maxBytes?: number | undefined;
  readonly images?: number | undefined;
}

/** A batch that is cut into chunks of so many images; the last one may have fewer. */
export interface BatchCut {
  readonly images: number;
  readonly chunks: number;
  /** What a chunk's plan may take beside its tensors, where that is limited. */
  readonly maxWorkspaceBytes?: number;
}

/**
 * How a batch is cut; undefined where it is run whole: unless chunks are asked for, that is what fits into a GiB and
 * into the device's buffers.
 *
 * @throws {UnsupportedError} where one image exceeds a buffer.
 * @throws {RangeError} where one image exceeds what is allowed.
 */
export function cutBatch(needs: CutNeeds): BatchCut | undefined {
  const { subject, maxBufferBytes, maxBytes, images: asked } = needs;
  const { whole, batch } = subject;
  if (batch === 0 || whole.shape.includes(0)) return undefined;
  const tensors = [...whole.operands, whole.result];
  const bytes = tensors.map(bytesOf);
  const total = bytes.reduce((sum, one) => sum + one, 0);
  if (asked === undefined && total <= WHOLE_BYTES && Math.max(...bytes) <= maxBufferBytes) {
    return undefined;
  }
  const one = cutTensors(subject, subject.part(1));
  for (const tensor of one) {
    if (bytesOf(tensor) <= maxBufferBytes) continue;
    throw new UnsupportedError(
      `Cannot convolve in chunks: one image of the ${tensor.role} [${tensor.shape}] takes ` +
        `${bytesOf(tensor)} bytes, the device's largest buffer has ${maxBufferBytes}`,
    );
  }
  const image = one.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
  // Half of what is allowed is left to the plans' workspace.
  const share = maxBytes === undefined ? CHUNK_BYTES : Math.floor(maxBytes / SLOTS / 2);
  const fitting = Math.floor(
    Math.min(Math.min(share, CHUNK_BYTES) / image, maxBufferBytes / largest(one)),
  );
  if (maxBytes !== undefined && fitting === 0 && share < image) {
    throw new InputRangeError(
      `Cannot convolve in chunks: one image takes ${image} bytes, ${SLOTS} of them and as much ` +
        `workspace ${2 * SLOTS * image}, at most ${maxBytes} are allowed`,
    );
  }
  const images = Math.min(batch, asked ?? evenly(batch, Math.max(1, fitting), subject.axis > 0));
  if (images === batch) return undefined;
  if (images * largest(one) > maxBufferBytes) {
    throw new UnsupportedError(
      `Cannot convolve in chunks of ${images} images: one takes ${largest(one)} bytes, ` +
        `the device's largest buffer has ${maxBufferBytes}`,
    );
  }
  return {
    images,
    chunks: Math.ceil(batch / images),
    ...(maxBytes === undefined
      ? {}
      : { maxWorkspaceBytes: Math.max(0, Math.floor(maxBytes / SLOTS) - images * image) }),
  };
}

function cutTensors({ cut, summed }: BatchedSubject, part: Subject): SubjectTensor[] {
  const operands = part.operands.filter(({ role }) => (cut as readonly string[]).includes(role));
  return summed ? operands : [...operands, part.result];
}

function largest(tensors: readonly SubjectTensor[]): number {
  return Math.max(...tensors.map(bytesOf));
}

function bytesOf({ dtype, shape }: SubjectTensor): number {
  return dtypeBytes(dtype) * elementCount(shape);
}

/** At most `most` images a chunk, in multiples of four from there on; as even as can be, or as many as can be. */
function evenly(batch: number, most: number, long: boolean): number {
  const unit = most < 4 ? 1 : 4;
  const units = Math.floor(most / unit);
  return unit * (long ? units : Math.ceil(batch / unit / Math.ceil(batch / unit / units)));
}
