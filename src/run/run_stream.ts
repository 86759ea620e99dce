/** Runs a convolution in chunks of its batch: one is read while another computes and a third is checked and written. */
import { expectPlanned } from "../algorithms/refusal.ts";
import type { Plan } from "../algorithms/plan.ts";
import { InputRangeError } from "../errors.ts";
import type { TensorSource } from "../npy/mod.ts";
import type { CaseRecord } from "../report/record.ts";
import { convertDType } from "../tensor/convert.ts";
import { arrayConstructor, dtypeBytes, type TensorData } from "../tensor/dtype.ts";
import { elementCount, tensor } from "../tensor/tensor.ts";
import { caseChecks } from "./case_checks.ts";
import { caseRecord } from "./case_record.ts";
import type { Checked } from "./check.ts";
import { chunkChecks } from "./chunk_checks.ts";
import type { CheckMode } from "./coverage.ts";
import { type BatchCut, type BatchedSubject, SLOTS } from "./cut_batch.ts";
import type { Executor, Loaded, Ready } from "./executor.ts";
import { chunkedOperands, type OperandSource, readOperands } from "./operands.ts";
import { linearPlan } from "./run_group.ts";
import {
  type HostData,
  type HostOperands,
  lossScaleTrait,
  type OperandData,
  type Planning,
  type PlanOperands,
  type Subject,
} from "./subject.ts";
import { timeRecord } from "./timing.ts";

/** Files of operands: parts of them are read. */
export type OperandFiles = { readonly [role in keyof HostOperands]?: TensorSource };

/** Takes the next entries of the result along the batch, as they lie in memory: `count` of `size` that `data` has. */
export type TakePart = (
  data: HostData,
  part: { readonly first: number; readonly count: number; readonly size: number },
) => Promise<void>;

/** A computation in chunks. */
export interface StreamJob {
  readonly subject: BatchedSubject;
  readonly cut: BatchCut;
  /** Its tensors with a batch have files. */
  readonly source: Omit<OperandSource, "files"> & { readonly files: OperandFiles };
  readonly planning: Partial<Planning>;
  /** What records call its algorithm, and what computes it. */
  readonly algorithm: string;
  readonly device: string;
  readonly check: CheckMode | "none";
  readonly onPlan?: (plan: Plan) => void;
  /** Told of chunks that are done. */
  readonly onProgress?: (done: number, chunks: number) => void;
  /** Takes the result; of what is added up all at once, at the end. */
  readonly take?: TakePart | undefined;
}

/** Chunks that a sample is taken of, spread over all. Each has a part in what is added up, so there all are. */
const SAMPLED_CHUNKS = 8;
/** Fewest outputs of a chunk's sample. */
const LEAST_SAMPLE = 256;

/** A part of the batch. */
interface Chunk {
  readonly first: number;
  readonly count: number;
  /** Whether it is compared with its reference. */
  readonly checked: boolean;
}

/** Where chunks are computed: one after the other, each in the buffers of the one before. */
interface Slot {
  readonly loaded: Loaded;
  readonly ready: Ready;
  readonly linear: Ready | undefined;
  /** What was read of the chunk, where the host needs it too. */
  readonly kept: HostOperands | undefined;
  /** The end of its last chunk. */
  done: Promise<void>;
}

/**
 * Plans, runs and checks a convolution chunk by chunk. All chunks run one plan: the last one is filled up with zeros. The
 * device is timed once a chunk.
 *
 * @throws {RangeError | UnsupportedError} where there is no plan, or the device does not suffice.
 */
export async function runStream(executor: Executor, job: StreamJob): Promise<CaseRecord> {
  const { subject, cut, source } = job;
  const begin = performance.now();
  const check = executor.isReference ? "none" : job.check;
  const inMemory = check !== "none" || executor.isReference;
  const part = subject.part(cut.images);
  const planning = cut.maxWorkspaceBytes === undefined
    ? job.planning
    : { ...job.planning, maxWorkspaceBytes: cut.maxWorkspaceBytes };
  const plan = expectPlanned(executor.plan(part, planning));
  if (plan) job.onPlan?.(plan);
  const linear = linearPlan(executor, part, planning, check);
  const chunks = chunksOf(job, check);
  const isCut = ({ role }: { readonly role: string }) =>
    (subject.cut as readonly string[]).includes(role);
  const fixed = await readOperands(only(part, (one) => !isCut(one)), source);
  const changing = only(part, isCut);
  const checks = chunkChecks(elementCount(subject.whole.shape), !subject.summed);
  const sums = subject.summed
    ? new Float64Array(elementCount(subject.whole.result.shape))
    : undefined;
  let ns = 0;
  let clock = "";
  let finished = 0;
  let hostBytes = 0;
  let failure: { readonly error: unknown } | undefined;
  let order = Promise.resolve();
  const slots: Slot[] = [];
  using resources = new DisposableStack();

  /** Runs a chunk whose operands are on the device, and takes its result when its turn comes. */
  async function finish(slot: Slot, chunk: Chunk, turn: Promise<void>) {
    const ran = await slot.ready.run({});
    ns += ran.samplesNs[0]!;
    clock = ran.clock;
    const start = performance.now();
    const result = await slot.ready.fetch();
    const readSeconds = (performance.now() - start) / 1000;
    let bare: HostData | undefined;
    if (chunk.checked && slot.linear !== undefined) {
      await slot.linear.run({});
      bare = await slot.linear.fetch();
    }
    await turn;
    if (failure) return;
    if (chunk.checked && check !== "none") {
      const operands = { ...fixed, ...slot.kept };
      const request = { operands, result, linear: bare, readSeconds };
      checks.add({ checked: await checkChunk(job, plan, chunk, request), ...imagesOf(chunk) });
    }
    const size = { first: chunk.first, count: chunk.count, size: cut.images };
    if (sums !== undefined) { for (let i = 0; i < sums.length; i++) sums[i]! += result[i]!; }
    else await job.take?.(result, size);
    hostBytes = Math.max(hostBytes, Deno.memoryUsage().rss);
    job.onProgress?.(++finished, chunks.length);
  }

  async function makeSlot(): Promise<Slot> {
    const kept = inMemory ? emptyOperands(changing) : undefined;
    const loaded = resources.use(executor.load(part, { ...fixed, ...kept }));
    return {
      loaded,
      kept,
      ready: await loaded.prepare(plan, 1),
      linear: linear && await loaded.prepare(linear, 1, part.linear!.result),
      done: Promise.resolve(),
    };
  }

  try {
    for (const [index, chunk] of chunks.entries()) {
      let slot = slots[index % SLOTS];
      await slot?.done;
      if (failure) break;
      slot ??= await makeSlot();
      slots[index % SLOTS] = slot;
      const read = chunkedOperands(changing, { ...source, files: partsOf(job, chunk) });
      await slot.loaded.replace(slot.kept ? keptOnTheWay(read, slot.kept) : read);
      const turn = order;
      slot.done = finish(slot, chunk, turn)
        .catch((error) => void (failure ??= { error }));
      order = slot.done;
    }
  } finally {
    // Nothing that is under way may lose its buffers.
    await Promise.all(slots.map(({ done }) => done));
  }
  if (failure) throw failure.error;
  if (sums !== undefined) await job.take?.(rounded(subject.whole, sums), allOf(subject.whole));
  const outcome = checks.done();
  const { whole } = subject;
  const setup = {
    ...whole.traits,
    algorithm: job.algorithm,
    device: job.device,
    ...lossScaleTrait(whole, source.lossScale),
  };
  return caseRecord(setup, {
    plan,
    time: timeRecord([ns], 1, clock),
    ...outcome,
    stream: {
      images: cut.images,
      chunks: chunks.length,
      checked_chunks: checks.count,
      bytes: [...whole.operands, whole.result]
        .reduce((sum, { dtype, shape }) => sum + dtypeBytes(dtype) * elementCount(shape), 0),
      seconds: (performance.now() - begin) / 1000,
      host_bytes: hostBytes,
    },
  });
}

/** The chunks of a batch, and which of them a check looks at. */
function chunksOf({ subject, cut }: StreamJob, check: CheckMode | "none"): Chunk[] {
  const sampled = check === "sample" && !subject.summed
    ? Math.min(SAMPLED_CHUNKS, cut.chunks)
    : cut.chunks;
  const looked = new Set(Array.from(
    { length: check === "none" ? 0 : sampled },
    (_, i) => sampled === 1 ? 0 : Math.round(i * (cut.chunks - 1) / (sampled - 1)),
  ));
  return Array.from({ length: cut.chunks }, (_, index) => {
    const first = index * cut.images;
    const count = Math.min(cut.images, subject.batch - first);
    return { first, count, checked: looked.has(index) };
  });
}

function imagesOf({ first, count }: Chunk) {
  return { first, images: count };
}

/** A subject that reads some of its operands. */
function only(subject: Subject, wanted: (one: Subject["operands"][number]) => boolean): Subject {
  return { ...subject, operands: subject.operands.filter(wanted) };
}

/** Room for a subject's operands, which the reference's workers share. */
function emptyOperands({ operands }: Subject): HostOperands {
  return Object.fromEntries(operands.map(({ role, dtype, shape }) => {
    const buffer: unknown = new SharedArrayBuffer(elementCount(shape) * dtypeBytes(dtype));
    return [role, new (arrayConstructor(dtype))(buffer as ArrayBuffer)];
  }));
}

/** Operands that are copied as they are read. */
function keptOnTheWay(operands: PlanOperands, kept: HostOperands): PlanOperands {
  const copy = async function* (data: OperandData, into: HostData) {
    let offset = 0;
    for await (const chunk of typeof data === "function" ? data() : [data]) {
      // Both are of the subject's type, which the types cannot say.
      (into as Float32Array).set(chunk as Float32Array, offset);
      offset += chunk.length;
      yield chunk;
    }
  };
  return Object.fromEntries(
    Object.entries(operands).map(([role, data]) => {
      return [role, () => copy(data as OperandData, kept[role as keyof HostOperands]!)];
    }),
  );
}

/** The parts of files that a chunk reads; behind the batch they have zeros. */
function partsOf({ subject, cut, source }: StreamJob, { first }: Chunk): OperandSource["files"] {
  return Object.fromEntries(subject.cut.map((role) => {
    const file = source.files[role];
    if (file === undefined) throw new InputRangeError(`Cannot cut the batch: ${role} has no file`);
    return [role, file.part(subject.axis, first, cut.images)];
  }));
}

/** Checks a chunk's result, without the zeros that the last one was filled up with. */
async function checkChunk(
  { subject, cut, source, check }: StreamJob,
  plan: Plan | undefined,
  chunk: Chunk,
  { operands, result, linear, readSeconds }: {
    readonly operands: HostOperands;
    readonly result: HostData;
    readonly linear: HostData | undefined;
    readonly readSeconds: number;
  },
): Promise<Checked> {
  const full = subject.part(cut.images);
  const part = subject.part(chunk.count);
  const shorter = (data: HostData, shape: readonly number[]) =>
    chunk.count === cut.images ? data : firstImages(data, shape, subject.axis, chunk.count);
  const shorterResult = (data: HostData) =>
    subject.summed ? data : shorter(data, full.result.shape);
  const own = Object.fromEntries(full.operands.map(({ role, shape }) => {
    const data = operands[role]!;
    return [role, (subject.cut as readonly string[]).includes(role) ? shorter(data, shape) : data];
  }));
  const sample = subject.summed
    ? subject.whole.sample
    : Math.max(LEAST_SAMPLE, Math.ceil(subject.whole.sample / cut.chunks));
  const checks = caseChecks({
    subject: { ...part, sample },
    operands: own,
    mode: check as CheckMode,
    linear: true,
    seed: source.seed + chunk.first,
  }, false);
  return await checks.check({
    result: shorterResult(result),
    linear: linear && shorterResult(linear),
    arithmetic: plan?.arithmetic ?? {},
    readSeconds,
  });
}

/** The first entries along an axis of a tensor in memory. */
function firstImages(
  data: HostData,
  shape: readonly number[],
  axis: number,
  count: number,
): HostData {
  const inner = elementCount(shape.slice(axis + 1));
  const rows = elementCount(shape.slice(0, axis));
  const [from, to] = [shape[axis]! * inner, count * inner];
  if (rows === 1) return data.subarray(0, to) as HostData;
  const kind = data.constructor as new (length: number) => HostData;
  const kept: TensorData = new kind(rows * to);
  for (let row = 0; row < rows; row++) {
    const own: TensorData = data.subarray(row * from, row * from + to);
    // Both are of one type, which the types cannot say.
    (kept as Float32Array).set(own as Float32Array, row * to);
  }
  return kept as HostData;
}

/** Sums of chunks in the result's type. */
function rounded({ result: { dtype, shape } }: Subject, sums: Float64Array<ArrayBuffer>): HostData {
  return convertDType(tensor("f64", shape, sums), dtype).data as HostData;
}

function allOf({ result }: Subject) {
  const size = result.shape[0]!;
  return { first: 0, count: size, size };
}
