/** Runs a convolution in chunks of its batch: one is read while another computes and a third is checked and written. */
import { expectPlanned } from "../algorithms/refusal.ts";
import { defined } from "../defined.ts";
import { InputRangeError } from "../errors.ts";
import type { TensorSource } from "../npy/mod.ts";
import type { CaseRecord } from "../report/record.ts";
import { convertDType } from "../tensor/convert.ts";
import { arrayConstructor, type TensorData } from "../tensor/dtype.ts";
import { elementCount, tensor } from "../tensor/tensor.ts";
import {
  aheadOf,
  chunkedOperands,
  type OperandsAhead,
  type OperandSource,
  readOperands,
} from "./operands.ts";
import { type CaseChecks, caseChecks } from "./case_checks.ts";
import { caseRecord } from "./case_record.ts";
import { type BatchCut, type BatchedSubject, chunkChecks, SLOTS } from "./batch.ts";
import type { CheckMode } from "./coverage.ts";
import type { Executor } from "./executor.ts";
import {
  caseSetup,
  type Job,
  planCase,
  type PlannedCase,
  runCases,
  type Station,
  stationOf,
} from "./runner.ts";
import {
  type HostData,
  type HostOperands,
  type OperandData,
  type PlanOperands,
  type Subject,
  subjectBytes,
  type SubjectTensor,
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
export interface StreamJob extends Omit<Job, "source"> {
  readonly subject: BatchedSubject;
  readonly cut: BatchCut;
  readonly source: Omit<OperandSource, "files"> & { readonly files: OperandFiles };
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
  readonly station: Station<PlannedCase>;
  /** What was read of the chunk, where the host needs it too. */
  readonly kept: HostOperands | undefined;
  /** Memory that each result is fetched to: to make it anew takes longer than to fetch. */
  readonly room: HostData;
}

/** A chunk is timed once, and not warmed up for. */
const ONE_RUN = { samples: 1, fillMs: 0, once: true } as const;

/**
 * Plans, runs and checks a convolution chunk by chunk. All chunks run one plan: the last one is filled up with zeros. The
 * device is timed once a chunk.
 *
 * @throws {RangeError | UnsupportedError} where there is no plan, or the device does not suffice.
 */
export async function runStream(executor: Executor, job: StreamJob): Promise<CaseRecord> {
  const begin = performance.now();
  const { subject: { whole, summed }, cut, source } = job;
  const check = executor.isReference ? "none" : job.check;
  const part = chunkSubject(job, cut.images);
  const { maxWorkspaceBytes } = cut;
  const planning = { ...job.planning, ...defined({ maxWorkspaceBytes }) };
  const { plan, linear } = expectPlanned(planCase(executor, part, planning, check));
  if (plan) job.onPlan?.(plan);
  const cases = [{ plan, linear, caches: ["hot"] }] as const;
  const chunks = chunksOf(job, check);
  const changing = only(part, (one) => hasBatch(job.subject, one));
  const fixed = await readOperands(only(part, (one) => !hasBatch(job.subject, one)), source);
  const checks = chunkChecks(elementCount(whole.shape), !summed);
  const sums = summed ? new Float64Array(elementCount(whole.result.shape)) : undefined;
  let ms = 0, clock = "", finished = 0, hostBytes = 0;
  using resources = new DisposableStack();
  await inTurn<Chunk, Slot, OperandsAhead>(chunks, {
    async make() {
      const inMemory = check !== "none" || executor.isReference;
      const kept = inMemory ? emptyOperands(changing) : undefined;
      const station = await stationOf(executor, part, cases, { ...fixed, ...kept });
      return { station: resources.use(station), kept, room: emptyData(part.result) };
    },
    read: (chunk) => aheadOf(chunkedOperands(changing, { ...source, files: partsOf(job, chunk) })),
    async fill({ station, kept }, chunk, { operands: read }) {
      // What no check looks at needs no copy, which would keep this thread from reading on.
      const needed = chunk.checked || executor.isReference;
      await station.loaded.replace(kept && needed ? keptOnTheWay(read, kept) : read);
    },
    async run({ station, kept, room }, chunk, turn) {
      const { first, count: images } = chunk;
      const operands = { ...fixed, ...kept };
      const own = chunk.checked ? { checks: checksOf(job, chunk, operands) } : {};
      const asked = { protocol: ONE_RUN, ...own, fetched: true, room, onResult: turn };
      const [ran] = await Array.fromAsync(runCases(station, asked));
      const { times: [time], result, outcome } = ran!;
      if ("accuracy" in outcome) checks.add({ checked: outcome, first, images });
      if (sums === undefined) await job.take?.(result!, { first, count: images, size: cut.images });
      else addTo(sums, result!);
      ms += time!.median;
      clock = time!.clock;
      hostBytes = Math.max(hostBytes, Deno.memoryUsage().rss);
      job.onProgress?.(++finished, chunks.length);
    },
  });
  if (sums !== undefined) {
    const size = whole.result.shape[0]!;
    await job.take?.(rounded(whole, sums), { first: 0, count: size, size });
  }
  return caseRecord(caseSetup(whole, job), {
    plan,
    time: timeRecord([ms * 1e6], 1, clock),
    ...checks.done(),
    stream: {
      images: cut.images,
      chunks: chunks.length,
      checked_chunks: checks.count,
      bytes: subjectBytes(whole),
      seconds: (performance.now() - begin) / 1000,
      host_bytes: hostBytes,
    },
  });
}

/** A chunk of so many images, with its share of the sample; of what is added up each has all. */
function chunkSubject({ subject, cut }: StreamJob, images: number): Subject {
  const part = subject.part(images);
  const { sample: whole } = subject.whole.sums;
  const sample = subject.summed ? whole : Math.max(LEAST_SAMPLE, Math.ceil(whole / cut.chunks));
  return { ...part, sums: { ...part.sums, sample } };
}

/** What is done with each of some chunks. */
interface Stages<C, S, A extends AsyncDisposable> {
  /** Makes a slot; there are {@linkcode SLOTS} at most. */
  make(): Promise<S>;
  /** Begins to read a chunk: when the one before has filled its slot, and its own may not be free yet. */
  read(chunk: C): A;
  /** Fills a slot: one chunk after the other. */
  fill(slot: S, chunk: C, read: A): Promise<void>;
  /**
   * Computes what a slot was filled with, beside others, and after `turn()` takes what came out, in the order of chunks. The
   * slot is filled anew when it is done.
   */
  run(slot: S, chunk: C, turn: () => Promise<void>): Promise<void>;
}

/** Brings chunks through slots in turn. After the first error nothing begins and no turn comes; it is thrown when all has ended. */
async function inTurn<C, S, A extends AsyncDisposable>(
  chunks: readonly C[],
  { make, read, fill, run }: Stages<C, S, A>,
): Promise<void> {
  const slots: { readonly slot: S; readonly done: Promise<void> }[] = [];
  let order = Promise.resolve();
  let failure: { readonly error: unknown } | undefined;
  let next: A | undefined;
  const fillFrom = async (slot: S, chunk: C, from: A) => {
    await using own = from;
    await fill(slot, chunk, own);
  };
  const turnAfter = (before: Promise<void>) => async () => {
    await before;
    if (failure) throw failure.error;
  };
  try {
    for (const [index, chunk] of chunks.entries()) {
      const at = index % SLOTS;
      await slots[at]?.done;
      if (failure) break;
      const slot = slots[at]?.slot ?? await make();
      await fillFrom(slot, chunk, next ?? read(chunk));
      // Not before, since a pipe is read in sequence.
      next = index + 1 < chunks.length ? read(chunks[index + 1]!) : undefined;
      order = run(slot, chunk, turnAfter(order))
        .catch((error) => void (failure ??= { error }));
      slots[at] = { slot, done: order };
    }
  } finally {
    // Nothing that is under way may lose its buffers, or its file.
    await Promise.all([...slots.map(({ done }) => done), next?.[Symbol.asyncDispose]()]);
  }
  if (failure) throw failure.error;
}

function addTo(sums: Float64Array, values: HostData): void {
  for (let i = 0; i < sums.length; i++) sums[i]! += values[i]!;
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

function hasBatch({ cut }: BatchedSubject, { role }: SubjectTensor): boolean {
  return (cut as readonly string[]).includes(role);
}

/** A subject that reads some of its operands. */
function only(subject: Subject, wanted: (one: Subject["operands"][number]) => boolean): Subject {
  return { ...subject, operands: subject.operands.filter(wanted) };
}

/** Room for a subject's operands, which the reference's workers share. */
function emptyOperands({ operands }: Subject): HostOperands {
  return Object.fromEntries(operands.map(({ role, dtype, shape }) => {
    const kind = arrayConstructor(dtype);
    const buffer: unknown = new SharedArrayBuffer(elementCount(shape) * kind.BYTES_PER_ELEMENT);
    return [role, new kind(buffer as ArrayBuffer)];
  }));
}

function emptyData({ dtype, shape }: SubjectTensor): HostData {
  return new (arrayConstructor(dtype))(elementCount(shape)) as HostData;
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

/** What a chunk's result is checked against, without the zeros that the last one was filled up with. */
function checksOf(
  job: StreamJob,
  { first, count }: Chunk,
  operands: HostOperands,
): Pick<CaseChecks, "check"> {
  const { subject, cut, source, check } = job;
  const full = chunkSubject(job, cut.images);
  const own = (data: HostData, tensor: SubjectTensor) =>
    count === cut.images ? data : firstImages(data, tensor.shape, subject.axis, count);
  const ownResult = (data: HostData) => subject.summed ? data : own(data, full.result);
  return {
    async check({ result, linear, ...ran }) {
      const checks = caseChecks({
        subject: chunkSubject(job, count),
        operands: Object.fromEntries(full.operands.map((one) => {
          const data = operands[one.role]!;
          return [one.role, hasBatch(subject, one) ? own(data, one) : data];
        })),
        mode: check as CheckMode,
        linear: true,
        seed: source.seed + first,
      }, false);
      return await checks.check({
        ...ran,
        result: ownResult(result),
        linear: linear && ownResult(linear),
      });
    },
  };
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
