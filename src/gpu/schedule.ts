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
