import type { GpuDevice } from "../gpu/gpu_device.ts";
import type { TimeRecord } from "../report/record.ts";
import { planRoom, type TimedPlan } from "./time_plans.ts";
import { type Timed, timeRecord } from "./timing.ts";

/** Rounds of samples, a sample of each candidate in turn; the first half warm the device up. */
const ROUNDS = 12;
/** Calls of a sample fill this long. */
const FILL_MS = 2;
const MOST_REPEATS = 256;
/** What takes so many times the fastest in its first runs is not timed on. */
const HOPELESS = 3;

/** A candidate that can be made ready; a sentence where it cannot be run. */
export type Makeable = () => Promise<Timed | string>;

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
  for (const [place, make] of candidates.entries()) {
    const timed = await inTime(make(), end - now());
    if (timed === undefined || now() >= end) break;
    if (typeof timed === "string") continue;
    // The first run of a kernel may take longer than the others.
    const first = await attempt(() => timed.run({ warmup: 1 }));
    if (first === undefined) continue;
    const ns = Math.max(1, first.samplesNs[0]!);
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

/** {@linkcode timeCandidates} of plans on random data. */
export async function timeWithin(
  gpu: GpuDevice,
  plans: readonly TimedPlan[],
  budgetMs: number,
): Promise<(TimeRecord | undefined)[]> {
  using room = planRoom(gpu, true);
  return await timeCandidates(plans.map((plan) => () => room.prepare(plan)), budgetMs);
}

/** The place of the fastest; undefined where nothing was timed. */
export function fastestOf(times: readonly (TimeRecord | undefined)[]): number | undefined {
  let best: number | undefined;
  for (const [place, time] of times.entries()) {
    if (time !== undefined && (best === undefined || time.median < times[best]!.median)) {
      best = place;
    }
  }
  return best;
}
