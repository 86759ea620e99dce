import { execute, type ExecuteOptions, type Execution } from "../gpu/execute.ts";
import type { GpuDevice } from "../gpu/device.ts";
import type { PreparedPlan } from "../gpu/prepare.ts";
import type { TimeRecord } from "../report/record.ts";
import { median, medianAbsoluteDeviation } from "../report/stats.ts";
import { type During, untimed } from "./timeline.ts";

/** How a plan is timed. */
export interface TimingProtocol {
  /** Samples to take; the most of them where a spread is given. */
  readonly samples: number;
  /** Back-to-back calls fill at least this long in a sample; 0 for one call a sample. */
  readonly fillMs: number;
  /** Enough is when the samples' median absolute deviation is at most this share of their median. */
  readonly spread?: number;
  /** How long the device is warmed up; as long as benches do where absent. */
  readonly warmUpMs?: WarmUp;
  /** Whether a plan runs once, and this run is its sample. */
  readonly once?: boolean;
}

/** How long devices are warmed up, in ms: until their times are steady, but ... */
interface WarmUp {
  /** ... the first of several plans for this long at least, ... */
  readonly first: number;
  /** ... each of the others for this long, which is a batch's length too, ... */
  readonly next: number;
  /** ... and none for much longer than this; as long as benches do where absent. */
  readonly most?: number;
}

/** Enough for the clocks of most devices, by whoever wants a result rather than a figure. */
export const BRIEF_WARM_UP: WarmUp = { first: 60, next: 20, most: 300 };

/** However little they spread, samples are as many as these, ... */
const FEWEST_SAMPLES = 9;
/** ... unless they would take longer than this. */
const LONGEST_MS = 60_000;

/**
 * An H200 that idled between two cases ran at 345 MHz, and once at less than half its speed through 300 ms of warm-up
 * and 100 ms of samples. So calls warm it up for at least this long, ...
 */
const WARM_UP_MS = 600;
/** ... in batches of this length, ... */
const BATCH_MS = 150;
/** ... until two in a row agree to this share, ... */
const STEADY = 0.02;
/** ... or this has passed. */
const LONGEST_WARM_UP_MS = 3000;
/** A software device has no clocks to raise. */
const WARM_UP_SOFTWARE_MS = 20;
const MOST_WARM_UPS = 8192;
const MOST_BATCHES = 64;
/** What is slow gets fewer samples, so that a case ends in about this time. */
const BUDGET_MS = 10_000;
const MOST_REPEATS = 4096;

/** What can be timed. */
export interface Timed {
  readonly copies: number;
  /** Runs it, beginning with the copy `first`. */
  run(options: ExecuteOptions, first?: number): Promise<Execution>;
}

/** A plan on a device, prepared on copies of its data. */
export function timedPlan(gpu: GpuDevice, prepared: readonly PreparedPlan[]): Timed {
  const copies = prepared.length;
  const run: Timed["run"] = (options, first = 0) =>
    execute(gpu, [...prepared.slice(first), ...prepared.slice(0, first)], options);
  return { copies, run };
}

/** One of several that are timed together. */
interface Sampling {
  readonly timed: Timed;
  readonly samplesNs: number[];
  estimateNs: number;
  repeats: number;
  most: number;
  clock: string;
}

/**
 * Times rivals in turn, a sample of each after the other, so that what changes the device's speed meets all
 * alike. Sampling ends when all are steady, or have their samples.
 *
 * @param software Whether there are no clocks to raise.
 * @throws as {@linkcode execute}.
 */
export async function timeRivals(
  software: boolean,
  all: readonly Timed[],
  protocol: TimingProtocol,
  during: During = untimed,
): Promise<TimeRecord[]> {
  const rivals: Sampling[] = [];
  for (const timed of all) {
    const { samplesNs, clock } = await during(
      "run",
      () => timed.run(protocol.once ? {} : { warmup: 1 }),
    );
    const estimateNs = Math.max(1, samplesNs[0]!);
    const most = protocolSamples(protocol, estimateNs / 1e6);
    // What is slow, or asked for once, has its sample.
    const taken = most <= 1 ? samplesNs : [];
    rivals.push({ timed, samplesNs: taken, estimateNs, repeats: 1, most, clock });
  }
  const { first, next, most = LONGEST_WARM_UP_MS } = protocol.warmUpMs ??
    { first: WARM_UP_MS, next: BATCH_MS };
  let warmUpMs = first;
  for (const rival of rivals.filter(isPending)) {
    rival.estimateNs = await during(
      "warm-up",
      () =>
        warmUp(software, rival, {
          leastMs: warmUpMs,
          eachMs: Math.min(BATCH_MS, next),
          mostMs: most,
        }),
    );
    rival.repeats = protocolRepeats(protocol, rival.estimateNs / 1e6);
    rival.most = protocolSamples(protocol, rival.estimateNs / 1e6);
    // The first one has raised the clocks for all.
    warmUpMs = next;
  }
  while (rivals.some((rival) => isPending(rival) && !isSteady(rival.samplesNs, protocol))) {
    const pending = rivals.filter(isPending);
    for (const rival of pending) {
      await during("run", () => takeSamples(rival, protocol, pending.length > 1));
    }
  }
  const brief = !software && protocol.warmUpMs === BRIEF_WARM_UP;
  return rivals.map(({ samplesNs, repeats, clock }) => ({
    ...timeRecord(samplesNs, repeats, clock),
    ...(brief ? { warm_up: "brief" as const } : {}),
  }));
}

function isPending({ samplesNs, most }: Sampling): boolean {
  return samplesNs.length < most;
}

/** Whether samples spread little enough to do without more. */
export function isSteady(samples: readonly number[], { spread }: TimingProtocol): boolean {
  return spread !== undefined && samples.length >= FEWEST_SAMPLES &&
    medianAbsoluteDeviation(samples) <= spread * median(samples);
}

async function takeSamples(
  rival: Sampling,
  protocol: TimingProtocol,
  inTurn: boolean,
): Promise<void> {
  const { timed, samplesNs, repeats, estimateNs, most } = rival;
  const least = samplesNs.length === 0 ? FEWEST_SAMPLES : 3;
  const wanted = inTurn ? 1 : protocol.spread === undefined ? most : least;
  const samples = Math.min(wanted, most - samplesNs.length);
  // Copies go on where the last sample stopped, or the first ones would be warm.
  const next = (samplesNs.length * repeats) % timed.copies;
  // Another rival has been at the caches; copies have none to warm.
  const warmup = inTurn && timed.copies === 1 ? 1 : 0;
  const run = await timed.run({ samples, repeats, estimateNs, warmup }, next);
  samplesNs.push(...run.samplesNs);
  rival.clock = run.clock;
}

/**
 * Runs a rival until the device's clocks are steady.
 *
 * @param how How long to warm up at least and about at most, and how long a batch is.
 * @returns What a run takes now, in nanoseconds.
 */
async function warmUp(
  software: boolean,
  { timed, estimateNs }: Sampling,
  { leastMs, eachMs, mostMs }: {
    readonly leastMs: number;
    readonly eachMs: number;
    readonly mostMs: number;
  },
): Promise<number> {
  const batchMs = software ? WARM_UP_SOFTWARE_MS : eachMs;
  let last = estimateNs;
  let spentMs = 0;
  for (let batch = 0; batch < MOST_BATCHES && spentMs < mostMs; batch++) {
    const repeats = Math.max(1, Math.min(MOST_WARM_UPS, Math.ceil(batchMs * 1e6 / last)));
    const { samplesNs } = await timed.run({ repeats, estimateNs: last });
    const now = Math.max(1, samplesNs[0]!);
    spentMs += now * repeats / 1e6;
    const steady = Math.abs(now - last) < STEADY * last;
    last = now;
    if (software || (steady && spentMs >= leastMs)) break;
  }
  return last;
}

/** Calls a sample: enough to fill the protocol's time. */
export function protocolRepeats({ fillMs }: TimingProtocol, estimateMs: number): number {
  return Math.max(1, Math.min(MOST_REPEATS, Math.ceil(fillMs / estimateMs)));
}

/** Samples to take at most: the protocol's, or fewer of what is slow. */
export function protocolSamples(protocol: TimingProtocol, estimateMs: number): number {
  const sampleMs = estimateMs * protocolRepeats(protocol, estimateMs);
  const within = (ms: number) => Math.max(1, Math.floor(ms / sampleMs));
  const fewest = protocol.spread === undefined ? 1 : Math.min(FEWEST_SAMPLES, within(LONGEST_MS));
  return Math.min(protocol.samples, Math.max(fewest, within(BUDGET_MS)));
}

/** Samples in nanoseconds a call as a record. One that began and ended within a tick of a coarse clock counts as a nanosecond. */
export function timeRecord(
  samplesNs: readonly number[],
  repeats: number,
  clock: string,
): TimeRecord {
  const samples = samplesNs.map((ns) => Math.max(1, ns) / 1e6);
  return {
    median: median(samples),
    min: Math.min(...samples),
    mad: medianAbsoluteDeviation(samples),
    samples,
    repeats,
    clock,
  };
}
