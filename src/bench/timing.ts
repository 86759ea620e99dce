import { execute } from "../gpu/execute.ts";
import type { GpuDevice } from "../gpu/device.ts";
import type { PreparedPlan } from "../gpu/prepare.ts";
import type { TimeRecord } from "../report/record.ts";
import { median, medianAbsoluteDeviation } from "./stats.ts";

/** How a plan is timed. */
export interface TimingProtocol {
  /** Samples to take. */
  readonly samples: number;
  /** Back-to-back calls fill at least this long in a sample; 0 for one call a sample. */
  readonly fillMs: number;
}

/**
 * An H200 that idled between two cases ran at 345 MHz, and once at less than half its speed through 300 ms of warm-up
 * and 100 ms of samples (docs/performance.md). So calls warm it up for at least this long, ...
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

/**
 * Times prepared plans: calls cycle through them. A first call gives the estimate that repeats follow from.
 *
 * @throws as {@linkcode execute}.
 */
export async function timePlan(
  gpu: GpuDevice,
  prepared: readonly PreparedPlan[],
  protocol: TimingProtocol,
): Promise<TimeRecord> {
  const first = await execute(gpu, prepared, { warmup: 1 });
  if (protocolSamples(protocol, first.samplesNs[0]! / 1e6) <= 1) {
    return timeRecord(first.samplesNs, 1, first.clock);
  }
  const estimateNs = await warmUp(gpu, prepared, Math.max(1, first.samplesNs[0]!));
  const estimateMs = estimateNs / 1e6;
  const samples = protocolSamples(protocol, estimateMs);
  const repeats = protocolRepeats(protocol, estimateMs);
  const run = await execute(gpu, prepared, { samples, repeats, estimateNs });
  return timeRecord(run.samplesNs, repeats, run.clock);
}

/**
 * Runs plans until the device's clocks are steady.
 *
 * @param estimateNs What a run took when the device was cold.
 * @returns What a run takes now, in nanoseconds.
 */
export async function warmUp(
  gpu: GpuDevice,
  prepared: readonly PreparedPlan[],
  estimateNs: number,
): Promise<number> {
  const batchMs = gpu.info.software ? WARM_UP_SOFTWARE_MS : BATCH_MS;
  let last = estimateNs;
  let spentMs = 0;
  for (let batch = 0; batch < MOST_BATCHES && spentMs < LONGEST_WARM_UP_MS; batch++) {
    const repeats = Math.max(1, Math.min(MOST_WARM_UPS, Math.ceil(batchMs * 1e6 / last)));
    const { samplesNs } = await execute(gpu, prepared, { repeats, estimateNs: last });
    const now = Math.max(1, samplesNs[0]!);
    spentMs += now * repeats / 1e6;
    const steady = Math.abs(now - last) < STEADY * last;
    last = now;
    if (gpu.info.software || (steady && spentMs >= WARM_UP_MS)) break;
  }
  return last;
}

/** Calls a sample: enough to fill the protocol's time. */
export function protocolRepeats({ fillMs }: TimingProtocol, estimateMs: number): number {
  return Math.max(1, Math.min(MOST_REPEATS, Math.ceil(fillMs / estimateMs)));
}

/** Samples to take: the protocol's, or fewer of what is slow. */
export function protocolSamples(protocol: TimingProtocol, estimateMs: number): number {
  const sampleMs = estimateMs * protocolRepeats(protocol, estimateMs);
  return Math.max(1, Math.min(protocol.samples, Math.floor(BUDGET_MS / sampleMs)));
}

/** Samples in nanoseconds a call as a record. */
export function timeRecord(
  samplesNs: readonly number[],
  repeats: number,
  clock: string,
): TimeRecord {
  const samples = samplesNs.map((ns) => ns / 1e6);
  return {
    median: median(samples),
    min: Math.min(...samples),
    mad: medianAbsoluteDeviation(samples),
    samples,
    repeats,
    clock,
  };
}
