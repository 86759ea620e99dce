import type { Entrant } from "../algorithms/cost/shortlist.ts";
import type { BufferRole, Plan } from "../algorithms/plan.ts";
import { DeviceError, UnsupportedError } from "../errors.ts";
import { createBuffer, fillBuffer, upload } from "../gpu/buffers.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { createPlanBuffers, preparePlan } from "../gpu/prepare.ts";
import type { TimeRecord } from "../report/record.ts";
import { dtypeBytes } from "../tensor/dtype.ts";
import { storedBytes } from "../tensor/convert.ts";
import { fillTensor } from "../tensor/fill.ts";
import type { Planning, Subject } from "./subject.ts";
import { type Timed, timedPlan, timeRecord, timeRivals, type TimingProtocol } from "./timing.ts";

export interface TimedPlan {
  readonly plan: Plan;
  readonly dtype: "f32" | "f16" | "bf16" | "i8" | "f64";
}

/** What a plan took, or why it did not run, as a sentence. */
export type PlanTime = TimeRecord | string;

/** Bytes of random data that buffers repeat: zeros would draw less power than real data, and run at higher clocks. */
const RANDOM_BYTES = 4 << 20;
/** Plans are timed in turn as long as their buffers fit into this together. */
const TOGETHER_BYTES = 1 << 30;
const MOST_TOGETHER = 8;

/** Where plans are made ready on random data, which they share; its buffers go with it. */
interface PlanRoom extends Disposable {
  /**
   * A plan that is ready to run; a sentence where the device cannot run it.
   *
   * @throws {DeviceError} where the device is lost.
   */
  prepare(plan: TimedPlan): Promise<Timed | string>;
  /** Frees what plans were made ready on. */
  clear(): void;
}

/**
 * Room for plans on a device.
 *
 * @param shared Whether all plans are of one problem, and share its tensors.
 */
export function planRoom(gpu: GpuDevice, shared = false): PlanRoom {
  const made = new Map<TimedPlan["dtype"], GPUBuffer>();
  let given: Partial<Record<BufferRole, GPUBuffer>> = {};
  let resources = new DisposableStack();
  const clear = () => {
    resources.dispose();
    resources = new DisposableStack();
    given = {};
  };
  return {
    prepare: (one) => prepared(gpu, one, made, resources, shared ? given : {}),
    clear,
    [Symbol.dispose]() {
      clear();
      made.forEach((buffer) => buffer.destroy());
    },
  };
}

/**
 * Times plans on random data, neighbours in turn. What a device cannot run has a sentence in place of a time.
 *
 * @throws {DeviceError} where the device is lost.
 */
export async function timePlans(
  gpu: GpuDevice,
  plans: readonly TimedPlan[],
  protocol: TimingProtocol,
  onDone: (count: number) => void = () => {},
): Promise<PlanTime[]> {
  using room = planRoom(gpu);
  const times: PlanTime[] = [];
  for (const some of together(plans)) {
    room.clear();
    const ready: (Timed | string)[] = [];
    for (const one of some) ready.push(await room.prepare(one));
    const timed = ready.filter((one) => typeof one !== "string");
    const taken = (await timeRivals(gpu.info.software, timed, protocol)).values();
    times.push(...ready.map((one) => typeof one === "string" ? one : taken.next().value!));
    onDone(times.length);
  }
  return times;
}

async function prepared(
  gpu: GpuDevice,
  { plan, dtype }: TimedPlan,
  made: Map<TimedPlan["dtype"], GPUBuffer>,
  resources: DisposableStack,
  given: Partial<Record<BufferRole, GPUBuffer>>,
): Promise<Timed | string> {
  try {
    const large = plan.buffers.filter(({ role, bytes }) => (given[role]?.size ?? 0) >= bytes);
    const shared = Object.fromEntries(large.map(({ role }) => [role, given[role]!]));
    const buffers = resources.use(createPlanBuffers(gpu, plan, shared));
    const random = randomBuffer(gpu, made, dtype);
    plan.buffers.forEach(({ role }, place) => {
      if (role === "workspace" || role in shared) return;
      given[role] ??= buffers.buffers[place]!;
      fillBuffer(gpu, buffers.buffers[place]!, random);
    });
    const timed = timedPlan(gpu, [resources.use(await preparePlan(gpu, plan, buffers))]);
    return { ...timed, run: (options) => gpu.guard(() => timed.run(options)) };
  } catch (error) {
    const cause = await gpu.causeOf(error);
    const refused = cause instanceof DeviceError || cause instanceof UnsupportedError;
    if (!refused || !gpu.isOpen) throw cause;
    return cause.message;
  }
}

function randomBuffer(
  gpu: GpuDevice,
  made: Map<TimedPlan["dtype"], GPUBuffer>,
  dtype: TimedPlan["dtype"],
): GPUBuffer {
  const known = made.get(dtype);
  if (known !== undefined) return known;
  const count = RANDOM_BYTES / dtypeBytes(dtype);
  const { data } = fillTensor(dtype, [count], dtype === "i8" ? "int8" : "uniform11", 1);
  const buffer = createBuffer(gpu, RANDOM_BYTES, "random data");
  made.set(dtype, buffer);
  upload(gpu, buffer, 0, storedBytes(dtype, data));
  return buffer;
}

/** Neighbours that the device can hold together. */
function together(plans: readonly TimedPlan[]): TimedPlan[][] {
  const parts: TimedPlan[][] = [];
  let used = Infinity;
  for (const one of plans) {
    const bytes = one.plan.buffers.reduce((sum, buffer) => sum + buffer.bytes, 0);
    const last = parts.at(-1);
    if (last === undefined || used + bytes > TOGETHER_BYTES || last.length >= MOST_TOGETHER) {
      parts.push([one]);
      used = bytes;
    } else {
      last.push(one);
      used += bytes;
    }
  }
  return parts;
}

/** Rounds of samples, a sample of each candidate in turn; the first half warm the device up. */
const ROUNDS = 12;
/** What takes no longer has three first runs: one may be disturbed. */
const BRIEF_MS = 20;
/** Calls of a sample fill this long. */
const FILL_MS = 2;
const MOST_REPEATS = 256;
/** What takes so many times the fastest in its first runs is not timed on. */
const HOPELESS = 3;

/** A candidate that can be made ready; a sentence where it cannot be run. */
type Makeable = () => Promise<Timed | string>;

/**
 * Times candidates in turn until they have their samples or the time is over, compilation included. Whatever fails, or is not ready
 * in time, drops out: its place is undefined.
 *
 * @param now The time in milliseconds.
 */
export async function timeCandidates(
  candidates: readonly Makeable[],
  budgetMs: number,
  now: () => number = () => performance.now(),
): Promise<(TimeRecord | undefined)[]> {
  const end = now() + budgetMs;
  const rivals: { place: number; timed: Timed; ns: number; samples: number[]; clock: string }[] =
    [];
  let longest = 0;
  for (const [place, make] of candidates.entries()) {
    const begin = now();
    // Drivers that compile in this thread cannot be left.
    if (begin + longest > end) break;
    const timed = await inTime(make(), end - begin);
    longest = Math.max(longest, now() - begin);
    if (timed === undefined || now() >= end) break;
    if (typeof timed === "string") continue;
    // The first run of a kernel may take longer than the others.
    const first = await attempt(() => timed.run({ warmup: 1 }));
    const again = first && first.samplesNs[0]! < 1e6 * BRIEF_MS
      ? await attempt(() => timed.run({ samples: 2 }))
      : first;
    if (first === undefined || again === undefined) continue;
    const ns = Math.max(1, Math.min(...first.samplesNs, ...again.samplesNs));
    rivals.push({ place, timed, ns, samples: [ns], clock: first.clock });
    if (now() >= end) break;
  }
  const fastest = Math.min(...rivals.map(({ ns }) => ns));
  let running = rivals.filter(({ ns }) => ns <= HOPELESS * fastest);
  for (let round = 0; round < ROUNDS && running.length > 1; round++) {
    const before = now();
    for (const rival of running) {
      const repeats = Math.max(1, Math.min(MOST_REPEATS, Math.ceil(FILL_MS * 1e6 / rival.ns)));
      const ran = await attempt(() =>
        rival.timed.run({ repeats, estimateNs: rival.ns, warmup: 1 })
      );
      if (ran === undefined) rival.samples = [];
      else rival.samples.push(rival.ns = Math.max(1, ran.samplesNs[0]!));
    }
    running = running.filter(({ samples }) => samples.length > 0);
    // A round that begins is ended, so that all have as many samples.
    if (now() + (now() - before) > end) break;
  }
  const times = candidates.map((): TimeRecord | undefined => undefined);
  for (const { place, samples, clock } of rivals) {
    if (samples.length === 0) continue;
    times[place] = timeRecord(samples.slice(Math.floor(samples.length / 2)), 1, clock);
  }
  return times;
}

async function attempt<T>(run: () => Promise<T>): Promise<T | undefined> {
  try {
    return await run();
  } catch {
    return undefined;
  }
}

/** What is made within a time, or a word where that fails; undefined beyond it. */
async function inTime<T>(made: Promise<T>, ms: number): Promise<T | "failed" | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<undefined>((done) => timer = setTimeout(() => done(undefined), ms));
  const one = await Promise.race([made.catch(() => "failed" as const), over]);
  clearTimeout(timer);
  return one;
}

/** Ways to compute a problem that are timed, and the most bytes of one's buffers. */
const CANDIDATES = 4;
const MOST_BYTES = 2 ** 31;

/** The ways to compute a subject that are worth timing, the planner's choice first; none where the choice is made or limited. */
export function entrantsOf({ planner }: Subject, planning: Planning): Entrant[] {
  const { exact, maxBoundRatio, maxWorkspaceBytes, maxWorkspaceShare } = planning;
  const limits = [maxBoundRatio, maxWorkspaceBytes, maxWorkspaceShare];
  // What is fastest within limits is not what is fastest.
  if (exact || limits.some((limit) => limit !== undefined)) return [];
  return planner.shortlist(planning, CANDIDATES)
    .filter(({ plan }) => plan.buffers.reduce((sum, { bytes }) => sum + bytes, 0) <= MOST_BYTES);
}

/** {@linkcode timeCandidates} of ways to compute a subject, on random data. */
export async function timeWithin(
  gpu: GpuDevice,
  { dtype: known }: Pick<Subject["traits"], "dtype">,
  entrants: readonly Entrant[],
  budgetMs: number,
): Promise<(TimeRecord | undefined)[]> {
  // Subjects are of types that kernels know.
  const dtype = known as TimedPlan["dtype"];
  using room = planRoom(gpu, true);
  return await timeCandidates(
    entrants.map(({ plan }) => () => room.prepare({ plan, dtype })),
    budgetMs,
  );
}

/** The place of the fastest by its least time, since what else runs only adds to it; undefined where nothing was timed. */
export function fastestOf(times: readonly (TimeRecord | undefined)[]): number | undefined {
  let best: number | undefined;
  for (const [place, time] of times.entries()) {
    if (time !== undefined && (best === undefined || time.min < times[best]!.min)) {
      best = place;
    }
  }
  return best;
}
