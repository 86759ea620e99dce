/** How a batch is cut into chunks, and what the checks of chunks say together. */
import { InputRangeError, UnsupportedError } from "../errors.ts";
import { type ConvTensor, operandTensors } from "../problem/conv_problem.ts";
import type { AccuracyRecord, ProjectionRecord, Verdict } from "../report/record.ts";
import type { Checked } from "./check.ts";
import { type ConvAsked, convSubject } from "./conv_subject.ts";
import { type Subject, subjectBytes, type SubjectTensor, tensorBytes } from "./subject.ts";

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
  const fits = subjectBytes(whole) <= WHOLE_BYTES &&
    largest([...whole.operands, whole.result]) <= maxBufferBytes;
  if (asked === undefined && fits) return undefined;
  const one = cutTensors(subject, subject.part(1));
  for (const tensor of one) {
    if (tensorBytes(tensor) <= maxBufferBytes) continue;
    throw new UnsupportedError(
      `Cannot convolve in chunks: one image of the ${tensor.role} [${tensor.shape}] takes ` +
        `${tensorBytes(tensor)} bytes, the device's largest buffer has ${maxBufferBytes}`,
    );
  }
  const image = one.reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
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
  return Math.max(...tensors.map(tensorBytes));
}

/** At most `most` images a chunk, in multiples of four from there on; as even as can be, or as many as can be. */
function evenly(batch: number, most: number, long: boolean): number {
  const unit = most < 4 ? 1 : 4;
  const units = Math.floor(most / unit);
  return unit * (long ? units : Math.ceil(batch / unit / Math.ceil(batch / unit / units)));
}

interface CheckedChunk {
  readonly checked: Checked;
  readonly first: number;
  readonly images: number;
}

/** What is said of a batch that was checked in chunks. */
interface ChunkChecks {
  add(chunk: CheckedChunk): void;
  readonly count: number;
  done(): Omit<Checked, "accuracy"> & { accuracy?: AccuracyRecord } | {
    readonly verdict: Verdict;
  };
}

/** Chunks whose reasons are said; the others are counted. */
const MOST_REASONS = 3;

/**
 * Puts the checks of chunks together, in the order they come.
 *
 * @param total Outputs of the whole result.
 * @param along Whether images are entries of the result's first canonical axis.
 */
export function chunkChecks(total: number, along: boolean): ChunkChecks {
  let accuracy: AccuracyRecord | undefined;
  let projection: ProjectionRecord | undefined;
  let count = 0;
  let failed = 0, passed = 0, unknown = 0;
  const said: string[] = [];
  return {
    add({ checked, first, images }) {
      count++;
      const where = images === 1 ? `image ${first}` : `images ${first} to ${first + images - 1}`;
      accuracy = joinAccuracy(accuracy, placed(checked.accuracy, where, along ? first : 0), total);
      if (checked.projection) projection = joinProjection(projection, checked.projection);
      if (checked.verdict === "fail") failed++;
      if (checked.verdict === "pass") passed++;
      // Outputs that are all NaN are nothing to compare; others have no verdict because no bound is known.
      if (checked.verdict === "none" && checked.accuracy.nan < checked.accuracy.checked) unknown++;
      if (checked.message === undefined) return;
      if (said.length < MOST_REASONS) said.push(`${where}: ${checked.message}`);
      else if (said.length === MOST_REASONS) said.push("and more");
    },
    get count() {
      return count;
    },
    done() {
      if (accuracy === undefined) return { verdict: "none" };
      // Each chunk checks what is added up.
      const checked = Math.min(total, accuracy.checked);
      return {
        accuracy: { ...accuracy, checked },
        ...(projection === undefined ? {} : { projection }),
        verdict: failed > 0 ? "fail" : passed > 0 && unknown === 0 ? "pass" : "none",
        ...(said.length === 0 ? {} : { message: said.join("; ") }),
      };
    },
  };
}

function placed(accuracy: AccuracyRecord, where: string, first: number): AccuracyRecord {
  const { worst, worst_group } = accuracy;
  return {
    ...accuracy,
    worst: worst.map((one) => ({ ...one, index: one.index.with(0, one.index[0]! + first) })),
    worst_group: worst_group === null ? null : `${worst_group} of ${where}`,
  };
}

function joinAccuracy(
  sum: AccuracyRecord | undefined,
  one: AccuracyRecord,
  total: number,
): AccuracyRecord {
  if (sum === undefined) return { ...one, total };
  const nearest = one.of_limit > sum.of_limit || Number.isNaN(one.of_limit) ? one : sum;
  const weigh = (of: AccuracyRecord) => of.checked - of.zero_ref;
  return {
    ...nearest,
    mare: mean(sum.mare, weigh(sum), one.mare, weigh(one)),
    mean_signed: mean(sum.mean_signed, sum.checked, one.mean_signed, one.checked) ?? 0,
    max_rel: most(sum.max_rel, one.max_rel),
    max_ulp: most(sum.max_ulp, one.max_ulp),
    nan: sum.nan + one.nan,
    inf: sum.inf + one.inf,
    mismatched: sum.mismatched + one.mismatched,
    zero_ref: sum.zero_ref + one.zero_ref,
    checked: sum.checked + one.checked,
    total,
  };
}

function joinProjection(
  sum: ProjectionRecord | undefined,
  one: ProjectionRecord,
): ProjectionRecord {
  if (sum === undefined) return one;
  // Whole numbers have no limit but 0.
  const share = ({ max_ratio, limit, patch_rms, patch_limit }: ProjectionRecord) =>
    limit === 0 ? max_ratio : Math.max(max_ratio / limit, patch_rms / patch_limit);
  const add = (a: number | undefined, b: number | undefined) => (a ?? 0) + (b ?? 0);
  return {
    ...(share(one) <= share(sum) ? sum : one),
    places: sum.places + one.places,
    size: Math.max(sum.size, one.size),
    masked: sum.masked + one.masked,
    masked_checked: sum.masked_checked + one.masked_checked,
    ...(one.activated === undefined ? {} : { activated: add(sum.activated, one.activated) }),
    reference_seconds: sum.reference_seconds + one.reference_seconds,
    seconds: sum.seconds + one.seconds,
    read_seconds: add(sum.read_seconds, one.read_seconds),
  };
}

function most(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}

function mean(a: number | null, of: number, b: number | null, others: number): number | null {
  if (a === null || of === 0) return b;
  if (b === null || others === 0) return a;
  return (a * of + b * others) / (of + others);
}
