/** Runs cases of a subject: loads its operands, times the cases in turn, checks what each leaves, and records it. */
import type { Plan } from "../algorithms/plan.ts";
import { expectPlanned, isRefusal, type Planned } from "../algorithms/refusal.ts";
import type { CaseRecord, TimeRecord } from "../report/record.ts";
import { type CaseChecks, caseChecks } from "./case_checks.ts";
import { caseRecord } from "./case_record.ts";
import { type Checked, linearOf } from "./check.ts";
import type { CheckMode } from "./coverage.ts";
import { cpuNote, type Executor, type Loaded, type Ready } from "./executor.ts";
import { chunkedOperands, type OperandSource, readOperands } from "./operands.ts";
import {
  type HostData,
  lossScaleTrait,
  type Planning,
  type PlanOperands,
  type Subject,
} from "./subject.ts";
import { type During, untimed } from "./timeline.ts";
import { type Timed, timeRivals, type TimingProtocol } from "./timing.ts";
import { CHANNEL_OPERANDS } from "../problem/epilogue.ts";

/** Whether calls find their operands in the cache, or cycle through copies. */
export type CacheState = "hot" | "cold";
export const CACHES: readonly CacheState[] = ["hot", "cold"];

/** A case's plan, and the plan of what can be projected of its result; the CPU has no plans. */
interface CasePlans {
  readonly plan: Plan | undefined;
  readonly linear?: Plan | undefined;
}

/** A case that is planned. */
export interface PlannedCase extends CasePlans {
  /** The states of the cache that it is timed in. */
  readonly caches: readonly CacheState[];
}

/**
 * Plans a case, and what is run beside it so that its result can be projected.
 *
 * @throws {RangeError | UnsupportedError} where only the latter has no plan.
 */
export function planCase(
  executor: Executor,
  subject: Subject,
  planning: Partial<Planning>,
  check: CheckMode | "none",
): Planned<CasePlans> {
  const plan = executor.plan(subject, planning);
  if (isRefusal(plan)) return plan;
  const linear = check === "none" ? undefined : linearOf(subject, check);
  return { plan, linear: linear && expectPlanned(executor.plan(linear, planning)) };
}

/** A case that is ready to run, and what is projected of it once that is wanted. */
interface ReadyCase<C extends PlannedCase> {
  readonly one: C;
  readonly ready: Ready;
  linear?: Promise<Ready>;
}

/** How a station is made. */
interface StationOptions {
  /** Of all buffers, for what is timed cold; 1 where absent. */
  readonly copies?: number;
  /** Told which case is prepared or runs. */
  readonly onTry?: (place: number) => void;
  readonly during?: During;
}

/** Operands on a device, and cases that are ready to run on them. It ends with them. */
export interface Station<C extends PlannedCase> extends Disposable, StationOptions {
  readonly executor: Executor;
  readonly subject: Subject;
  readonly loaded: Loaded;
  readonly cases: readonly ReadyCase<C>[];
}

/** Loads a subject's operands and prepares cases on them. */
export async function stationOf<C extends PlannedCase>(
  executor: Executor,
  subject: Subject,
  cases: readonly C[],
  operands: PlanOperands,
  options: StationOptions = {},
): Promise<Station<C>> {
  const { copies = 1, onTry, during } = options;
  using made = new DisposableStack();
  const loaded = made.use(executor.load(subject, operands, during));
  const ready: ReadyCase<C>[] = [];
  for (const [place, one] of cases.entries()) {
    onTry?.(place);
    ready.push({ one, ready: await loaded.prepare(one.plan, copies) });
  }
  const kept = made.move();
  return {
    ...{ executor, subject, loaded, cases: ready },
    ...options,
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** How a station's cases are run. */
interface RunAsked {
  readonly protocol: TimingProtocol;
  readonly checks?: Pick<CaseChecks, "check"> | undefined;
  /** Whether results are wanted though nothing is checked. */
  readonly fetched?: boolean;
  /** Memory that results are fetched to; new memory where absent. */
  readonly room?: HostData;
  /** Told each result before it is checked, when the device is done with it; the check waits for what it returns. */
  readonly onResult?: ((result: HostData) => Promise<void> | void) | undefined;
}

/** What became of a case. */
interface Ran<C extends PlannedCase> {
  readonly one: C;
  /** One a state of the cache. */
  readonly times: readonly TimeRecord[];
  /** As it lies in memory, of the very buffers that were timed; where it was checked or asked for. */
  readonly result?: HostData;
  readonly outcome: Checked | { readonly verdict: "none"; readonly message?: string };
}

/** Times a station's cases in turn, then fetches and checks the result of each. */
export async function* runCases<C extends PlannedCase>(
  station: Station<C>,
  { protocol, checks, fetched = false, room, onResult }: RunAsked,
): AsyncGenerator<Ran<C>, void, undefined> {
  const { executor, subject, cases, onTry, during = untimed } = station;
  const rivals = cases.flatMap(({ one: { caches }, ready }, place) =>
    caches.map((cache) => ({ place, timed: cache === "hot" ? ready.hot : ready }))
  );
  const all = rivals.map(({ place, timed }): Timed => ({
    copies: timed.copies,
    run(repeated, next) {
      onTry?.(place);
      return timed.run(repeated, next);
    },
  }));
  const times = await timeRivals(executor.software, all, protocol, during);
  const note = executor.isReference ? { message: cpuNote(subject) } : {};
  for (const [place, made] of cases.entries()) {
    const { one } = made;
    const own = times.filter((_, index) => rivals[index]!.place === place);
    const unchecked = { one, times: own, outcome: { verdict: "none", ...note } } as const;
    if (checks === undefined && !fetched) {
      yield unchecked;
      continue;
    }
    const { result, readSeconds } = await fetchTimed(made.ready, room, during);
    const linear = checks && await linearResult(station, made);
    await onResult?.(result);
    const arithmetic = one.plan?.arithmetic ?? {};
    const outcome = await checks?.check({ result, linear, arithmetic, readSeconds });
    yield { ...unchecked, result, ...(outcome && { outcome }) };
  }
}

async function fetchTimed(ready: Ready, room: HostData | undefined, during: During) {
  const start = performance.now();
  const result = await during("read back", () => ready.fetch(room));
  return { result, readSeconds: (performance.now() - start) / 1000 };
}

/** The result of what is projected, where it differs from the case's own. */
async function linearResult<C extends PlannedCase>(
  { loaded, subject, during = untimed }: Station<C>,
  made: ReadyCase<C>,
): Promise<HostData | undefined> {
  const { linear } = made.one;
  if (linear === undefined) return undefined;
  const ready = await (made.linear ??= loaded.prepare(linear, 1, subject.linear!.result));
  await during("run", () => ready.run({}));
  return await during("read back", () => ready.fetch());
}

/** What is computed, and what its record says. */
export interface Job {
  readonly source: OperandSource;
  readonly planning: Partial<Planning>;
  /** What records call its algorithm, and what computes it. */
  readonly algorithm: string;
  readonly device: string;
  readonly check: CheckMode | "none";
  readonly onPlan?: (plan: Plan) => void;
}

/** One computation, wherever its data comes from. */
export interface SubjectJob extends Job {
  readonly subject: Subject;
  readonly protocol: TimingProtocol;
  /** Told the result before it is checked. */
  readonly onResult?: (result: HostData) => void;
  /** Told how far the check is. */
  readonly onProgress?: (fraction: number) => void;
  readonly during?: During;
}

/** Operands that go with data that is made, too. */
const PER_CHANNEL: readonly string[] = [...CHANNEL_OPERANDS, "filterZeroPoint"];

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
export async function runSubject(executor: Executor, job: SubjectJob): Promise<Computed> {
  const { subject, source, planning, protocol, onProgress, onResult, during = untimed } = job;
  const check = executor.isReference ? "none" : job.check;
  const planned = during("plan", () => planCase(executor, subject, planning, check));
  const { plan, linear } = expectPlanned(planned);
  if (plan) job.onPlan?.(plan);
  const reading = check !== "none" || executor.isReference
    ? during("read", () => readOperands(subject, source))
    : undefined;
  // Its failure is told where it is awaited, as those of plans are where they are prepared.
  reading?.catch(() => {});
  for (const one of [plan, linear]) {
    if (one) during("pipelines", async () => await executor.compile?.(one)).catch(() => {});
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
  const cases = [{ plan, linear, caches: ["hot"] }] as const;
  using station = await stationOf(executor, subject, cases, operands, { during });
  const asked = { protocol, checks, fetched: true, onResult };
  const [ran] = await Array.fromAsync(runCases(station, asked));
  const { times: [time], result, outcome } = ran!;
  const { fill, seed, files } = source;
  const made = Object.keys(files).some((role) => !PER_CHANNEL.includes(role))
    ? {}
    : { made: { fill, seed } };
  const setup = { ...caseSetup(subject, job), ...made };
  return { record: caseRecord(setup, { plan, time: time!, ...outcome }), result: result! };
}

/** What is known of a job's case before it runs. */
export function caseSetup(
  subject: Subject,
  { source, algorithm, device }: Pick<Job, "algorithm" | "device"> & {
    readonly source: Pick<OperandSource, "lossScale">;
  },
) {
  return { ...subject.traits, algorithm, device, ...lossScaleTrait(subject, source.lossScale) };
}
