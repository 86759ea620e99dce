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
 * Calls warm the device up for so long before samples are taken: an H200 that idled between two cases
 * ran at 345 instead of 1980 MHz until it had been busy for a good part of this.
 */
const WARM_UP_MS = 300;
/** A software device has no clocks to raise. */
const WARM_UP_SOFTWARE_MS = 20;
const MOST_WARM_UPS = 8192;
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
  const estimateNs = Math.max(1, first.samplesNs[0]!);
  const estimateMs = estimateNs / 1e6;
  const samples = protocolSamples(protocol, estimateMs);
  if (samples <= 1) return timeRecord(first.samplesNs, 1, first.clock);
  const repeats = protocolRepeats(protocol, estimateMs);
  const warmup = warmUpCalls(gpu, estimateMs);
  const run = await execute(gpu, prepared, { samples, repeats, warmup, estimateNs });
  return timeRecord(run.samplesNs, repeats, run.clock);
}

/** Calls that warm the device up. */
export function warmUpCalls(gpu: GpuDevice, estimateMs: number): number {
  const warmUpMs = gpu.info.software ? WARM_UP_SOFTWARE_MS : WARM_UP_MS;
  return Math.min(MOST_WARM_UPS, Math.ceil(warmUpMs / estimateMs));
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
