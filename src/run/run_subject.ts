import { expectPlanned } from "../algorithms/refusal.ts";
import type { Plan } from "../algorithms/plan.ts";
import type { CaseRecord } from "../report/record.ts";
import { caseChecks } from "./case_checks.ts";
import { caseRecord } from "./case_record.ts";
import type { CheckMode } from "./coverage.ts";
import type { Executor } from "./executor.ts";
import { chunkedOperands, type OperandSource, readOperands } from "./operands.ts";
import { linearPlan, runTogether } from "./run_group.ts";
import { type HostData, lossScaleTrait, type Planning, type Subject } from "./subject.ts";
import { type During, untimed } from "./timeline.ts";
import type { TimingProtocol } from "./timing.ts";

/** One computation, wherever its data comes from. */
export interface Job {
  readonly subject: Subject;
  readonly source: OperandSource;
  readonly planning: Partial<Planning>;
  /** What records call its algorithm, and what computes it. */
  readonly algorithm: string;
  readonly device: string;
  readonly check: CheckMode | "none";
  readonly protocol: TimingProtocol;
  readonly onPlan?: (plan: Plan) => void;
  /** Told the result before it is checked. */
  readonly onResult?: (result: HostData) => void;
  /** Told how far the check is. */
  readonly onProgress?: (fraction: number) => void;
  readonly during?: During;
}

/** Operands that go with data that is made, too. */
const PER_CHANNEL: readonly string[] = ["bias", "scale", "filterZeroPoint"];

/** A computation that ran: its record, and its result as it lies in memory. */
export interface Computed {
  readonly record: CaseRecord;
  readonly result: HostData;
}

/**
 * Plans, runs, times and checks one computation. Without a check, data of files goes to a device in chunks.
 *
 * @throws {RangeError | UnsupportedError} where there is no plan, or the device does not suffice.
 */
export async function runSubject(executor: Executor, job: Job): Promise<Computed> {
  const { subject, source, planning, protocol, onProgress, during = untimed } = job;
  const { isReference } = executor;
  const check = isReference ? "none" : job.check;
  const plan = expectPlanned(during("plan", () => executor.plan(subject, planning)));
  if (plan) job.onPlan?.(plan);
  const linear = during("plan", () => linearPlan(executor, subject, planning, check));
  const one = { plan, linear, caches: ["hot"] as const };
  const reading = check !== "none" || isReference
    ? during("read", () => readOperands(subject, source))
    : undefined;
  // Its failure is told where it is awaited, as those of plans are where they are prepared.
  reading?.catch(() => {});
  for (const plan of [one.plan, linear]) {
    if (plan) during("pipelines", async () => await executor.compile?.(plan)).catch(() => {});
  }
  const whole = await reading;
  const checks = check === "none" ? undefined : caseChecks({
    subject,
    operands: whole!,
    mode: check,
    linear: true,
    seed: source.seed,
    during,
    ...(onProgress === undefined ? {} : { onProgress }),
  }, false);
  if (executor.undisturbed) checks?.begin(plan?.arithmetic ?? {});
  const operands = whole ?? chunkedOperands(subject, source);
  const asked = { protocol, checks, fetched: true, onResult: job.onResult, during };
  const ran = await Array.fromAsync(
    runTogether(executor, subject, [one], operands, asked),
  );
  const { times: [time], result, outcome } = ran[0]!;
  const { fill, seed, lossScale, files } = source;
  const made = Object.keys(files).some((role) => !PER_CHANNEL.includes(role))
    ? {}
    : { made: { fill, seed } };
  const setup = {
    ...subject.traits,
    algorithm: job.algorithm,
    device: job.device,
    ...made,
    ...lossScaleTrait(subject, lossScale),
  };
  return { record: caseRecord(setup, { plan, time: time!, ...outcome }), result: result! };
}
