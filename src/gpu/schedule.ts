import type { GpuDevice } from "./device.ts";

/** What is to be run and timed. */
export interface Work {
  /** Encodes runs `from` to `from + runs`. */
  readonly encode: (pass: GPUComputePassEncoder, from: number, runs: number) => void;
  readonly samples: number;
  readonly repeats: number;
  readonly warmup: number;
  readonly estimateNs?: number | undefined;
}

/** A sample must last this long, so that the wait's own time is small beside it. */
const SAMPLE_MS = 50;

/** Bounds how often a quick plan is repeated. */
const MOST_RUNS = 8192;

const DOING = "Cannot execute";

/**
 * Times runs with the CPU's clock: the wait for a submission of many runs, less that for an empty one. A single
 * run that nobody compares (one sample, one repeat) is not repeated to be measured better.
 */
export async function timeByWall(gpu: GpuDevice, work: Work): Promise<number[]> {
  const { samples, repeats, warmup } = work;
  const flat = await flatWait(gpu);
  if (warmup > 0) await timeRuns(gpu, work, warmup);
  let runs = repeats;
  if (samples * repeats > 1) {
    let net = await tryRuns(gpu, work, runs, flat);
    while (net < SAMPLE_MS && runs < MOST_RUNS) {
      const growth = Math.min(16, Math.max(2, Math.ceil(SAMPLE_MS / Math.max(net, 1))));
      runs = Math.min(MOST_RUNS, runs * growth);
      net = await tryRuns(gpu, work, runs, flat);
    }
  }
  const samplesNs: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    const net = await timeRuns(gpu, work, runs) - flat;
    samplesNs.push(Math.max(0, net) * 1e6 / runs);
  }
  return samplesNs;
}

/** Milliseconds that a wait takes with nothing to wait for: 10 in Deno. */
async function flatWait(gpu: GpuDevice): Promise<number> {
  const waits: number[] = [];
  for (let i = 0; i < 3; i++) waits.push(await wait(gpu, []));
  return Math.min(...waits);
}

/**
 * Milliseconds that `runs` runs take beside the wait. Where they last hardly long enough it is the shorter of two: a busy
 * machine makes one of them long.
 */
async function tryRuns(gpu: GpuDevice, work: Work, runs: number, flat: number): Promise<number> {
  const net = await timeRuns(gpu, work, runs) - flat;
  if (net < SAMPLE_MS || net > 10 * SAMPLE_MS) return net;
  return Math.min(net, await timeRuns(gpu, work, runs) - flat);
}

/** Milliseconds that `runs` runs take, with the wait. */
async function timeRuns(gpu: GpuDevice, work: Work, runs: number): Promise<number> {
  const encoder = gpu.device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  work.encode(pass, 0, runs);
  pass.end();
  return await wait(gpu, [encoder.finish()]);
}

async function wait(gpu: GpuDevice, commands: GPUCommandBuffer[]): Promise<number> {
  const start = performance.now();
  gpu.device.queue.submit(commands);
  await gpu.device.queue.onSubmittedWorkDone();
  const elapsed = performance.now() - start;
  await gpu.settle(DOING);
  return elapsed;
}

/** One timed compute pass: runs `from` to `from + runs`, for one sample. */
export interface TimedPass {
  readonly sample: number;
  readonly from: number;
  readonly runs: number;
}

/** Passes of one submission. */
type Submission = readonly TimedPass[];

/** Submissions the device works on for longer invite watchdogs, which end the process in Deno. */
const SUBMISSION_NS = 250e6;

/** Bounds what a submission costs the CPU to encode. */
const SUBMISSION_RUNS = 8192;

/**
 * Lays `samples` times `repeats` runs out as passes, passes as submissions, and submissions as batches
 * of at most `passesPerBatch` passes, after each of which the times are read. Without an estimate each sample
 * is one pass and one submission.
 */
export function schedule(
  samples: number,
  repeats: number,
  runNs: number | undefined,
  passesPerBatch: number,
): Submission[][] {
  const perSubmission = runNs === undefined
    ? repeats
    : Math.max(1, Math.min(SUBMISSION_RUNS, Math.floor(SUBMISSION_NS / Math.max(runNs, 1))));
  const passes: TimedPass[] = [];
  for (let sample = 0; sample < samples; sample++) {
    for (let done = 0; done < repeats; done += perSubmission) {
      const runs = Math.min(perSubmission, repeats - done);
      passes.push({ sample, from: sample * repeats + done, runs });
    }
  }
  const batches: Submission[][] = [];
  for (let start = 0; start < passes.length; start += passesPerBatch) {
    batches.push(group(passes.slice(start, start + passesPerBatch), perSubmission));
  }
  return batches;
}

/** Groups passes in order so that no group has more than `most` runs, but for single passes. */
function group(passes: readonly TimedPass[], most: number): Submission[] {
  const groups: TimedPass[][] = [];
  let runs = Infinity;
  for (const pass of passes) {
    runs += pass.runs;
    if (runs > most) {
      groups.push([]);
      runs = pass.runs;
    }
    groups.at(-1)?.push(pass);
  }
  return groups;
}
