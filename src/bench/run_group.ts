import { EMPTY_RESULT } from "../accuracy/mod.ts";
import type { Plan } from "../algorithms/plan.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import type { Balance } from "../algorithms/schedule.ts";
import type { TuningTable } from "../algorithms/request.ts";
import { defined } from "../defined.ts";
import { DeviceError } from "../errors.ts";
import type { CaseRecord } from "../report/record.ts";
import type { CaseChecks } from "../run/case_checks.ts";
import { caseRecord, type CaseSetup } from "../run/case_record.ts";
import type { Reference } from "../run/check.ts";
import type { CheckMode } from "../run/coverage.ts";
import type { Executor } from "../run/executor.ts";
import { defaultFill } from "../run/operands.ts";
import { type CacheState, planCase, type PlannedCase, runCases, stationOf } from "../run/runner.ts";
import {
  type HostData,
  type HostOperands,
  lossScaleTrait,
  type Planning,
  type Subject,
  subjectBytes,
} from "../run/subject.ts";
import type { TimingProtocol } from "../run/timing.ts";
import type { FillKind } from "../tensor/fill.ts";

/** How cases are run, whatever they compute. */
export interface RunOptions {
  /** What every plan is asked for. */
  readonly planning?: Partial<Planning>;
  readonly check: CheckMode | "none";
  /** Of made data; what suits the operands' type where absent. */
  readonly fill?: FillKind | undefined;
  readonly seed: number;
  /** What gradients of outputs are multiplied by, where they are operands. */
  readonly lossScale?: number;
  readonly protocol: TimingProtocol;
  readonly provider?: string;
}

/** One way to compute a subject, on a cache that is hot, cold or each in turn. */
export interface RunCase {
  readonly algorithm: string;
  /** A tile policy, and a tile of transforms; `auto` is the planner's choice. */
  readonly policy: string;
  readonly tile: string;
  /** A pair of kernels; the planner's choice where absent, as are the others. */
  readonly pair?: string;
  readonly segments?: number;
  /** Of a product. */
  readonly splits?: number;
  readonly balance?: Balance;
  readonly caches: readonly CacheState[];
}

/** Cases that compute the same from the same data: they share it, and are timed in turn. */
export interface RunGroup {
  readonly subject: Subject;
  readonly cases: readonly RunCase[];
}

/** What a group's cases are run on and checked against. */
export interface GroupData extends CaseChecks {
  readonly operands: HostOperands;
}

/** A case that ran, with what it was checked on; without a check it has no result. */
export interface RanCase {
  readonly record: CaseRecord;
  readonly group: RunGroup;
  readonly one: RunCase;
  readonly plan: Plan | undefined;
  readonly operands: HostOperands;
  readonly checked?: { readonly result: HostData; readonly reference: Reference };
}

/** That a device was lost while kernels were timed on it, before a case began. */
export class LostInTuning extends DeviceError {}

/** What callers may hang into a run. */
export interface RunHooks {
  /** Takes the place of the planner's plan: tests put faults into it. */
  alterPlan?(plan: Plan, group: RunGroup): Plan;
  /** A plan that is about to run. */
  onPlan?(plan: Plan): void;
  /**
   * What was measured to be fastest on a device, before a case is planned; `auto` takes it. Where that costs the device another is
   * opened, and this is asked again.
   */
  tuning?(
    executor: Executor,
    subject: Subject,
    planning: Partial<Planning>,
  ): Promise<TuningTable | undefined>;
  onSkip?(what: string, reason: string): void;
  /** A case of a group that is prepared or timed next: the `place`-th, from 1, of `count` that go in turn. */
  onTry?(one: RunCase, place: number, count: number): void;
  onRan?(ran: RanCase): Promise<void> | void;
}

/** Copies of the operands that make a case cold: together beyond the largest caches. */
const COLD_BYTES = 512 * 2 ** 20;
const MOST_COPIES = 128;
/** Cases are timed in turn as long as their buffers fit into this together; one at a time beyond. */
const TOGETHER_BYTES = 8 * 2 ** 30;
const TOGETHER_BYTES_SOFTWARE = 2 ** 30;

/** A case of a group with its plan. */
interface GroupCase extends PlannedCase {
  readonly one: RunCase;
}

/**
 * Runs the cases of a group: together and timed in turn where memory allows. What cannot be planned is a record or
 * a call of `onSkip`; any other error is thrown.
 *
 * @param makeData Called once it is needed.
 */
export async function* runGroup(
  executor: Executor,
  run: RunOptions,
  group: RunGroup,
  makeData: () => GroupData,
  hooks: RunHooks = {},
): AsyncGenerator<CaseRecord, void, undefined> {
  const { subject } = group;
  const setup = (one: RunCase, cache: CacheState) =>
    caseSetup(run, group, one, cache, executor.device.adapter);
  const plans = yield* planGroup(executor, run, group, hooks);
  if (plans.length === 0) return;
  if (subject.shape.includes(0)) {
    const outcome = { verdict: "none", message: EMPTY_RESULT } as const;
    for (const { one, plan } of plans) {
      for (const cache of one.caches) yield caseRecord(setup(one, cache), { plan, ...outcome });
    }
    return;
  }
  const data = makeData();
  if (!executor.isReference) await subject.planner.admit?.(run.check, () => data.operands);
  const checks = run.check === "none" ? undefined : data;
  const copies = copiesOf(group);
  for (const some of fitting(plans, copies, subject, executor)) {
    const onTry = (place: number) => hooks.onTry?.(some[place]!.one, place + 1, some.length);
    const { protocol } = run;
    using station = await stationOf(executor, subject, some, data.operands, { copies, onTry });
    for await (const ran of runCases(station, { protocol, checks })) {
      const { one: { one, plan }, times, result, outcome } = ran;
      const checked = checks && { result: result!, reference: await checks.reference() };
      for (const [place, time] of times.entries()) {
        const record = caseRecord(setup(one, one.caches[place]!), { plan, time, ...outcome });
        const { operands } = data;
        const on = checked === undefined ? {} : { checked };
        await hooks.onRan?.({ record, group, one, plan, operands, ...on });
        yield record;
      }
    }
  }
}

/** The cases of a group that have plans; of those that have none a record, or a call of `onSkip`. */
async function* planGroup(
  executor: Executor,
  run: RunOptions,
  group: RunGroup,
  hooks: RunHooks,
): AsyncGenerator<CaseRecord, GroupCase[], undefined> {
  const { subject } = group;
  const plans: GroupCase[] = [];
  for (const one of group.cases) {
    const asked = planningOf(run, one);
    const full = executor.planning(asked);
    const reason = full && subject.planner.unsupported(full);
    if (reason !== undefined) {
      hooks.onSkip?.(one.algorithm, reason);
      continue;
    }
    const tuning = await hooks.tuning?.(executor, subject, asked);
    if (!executor.isOpen) throw new LostInTuning("Cannot tune: the device was lost");
    const planning = { ...asked, ...(tuning === undefined ? {} : { tuning }) };
    const planned = planCase(executor, subject, planning, run.check);
    if (!isRefusal(planned)) {
      const { plan, linear } = planned;
      if (plan) hooks.onPlan?.(plan);
      const altered = plan && (hooks.alterPlan?.(plan, group) ?? plan);
      plans.push({ one, plan: altered, linear, caches: one.caches });
      continue;
    }
    const message = `Cannot plan: ${planned.text}`;
    if (one.algorithm === "auto" || "gemm" in subject.asked) {
      yield* failedRecords(run, group, [one], executor.device.adapter, message);
    } else {
      // A policy, tile or workspace that does not go with a named algorithm is one combination too many.
      hooks.onSkip?.([one.algorithm, ...caseChoices(one)].join(" "), message);
    }
  }
  return plans;
}

/** The records of cases that did not run to their end. */
export function failedRecords(
  run: RunOptions,
  group: RunGroup,
  cases: readonly RunCase[],
  device: string,
  message: string,
): CaseRecord[] {
  return cases.flatMap((one) =>
    one.caches.map((cache) =>
      caseRecord(caseSetup(run, group, one, cache, device), { verdict: "error", message })
    )
  );
}

function copiesOf({ subject, cases }: RunGroup): number {
  if (!cases.some(({ caches }) => caches.includes("cold"))) return 1;
  return Math.min(MOST_COPIES, 1 + Math.ceil(COLD_BYTES / Math.max(1, subjectBytes(subject))));
}

/** The plans in parts whose buffers the device can hold together. */
function fitting<C extends PlannedCase>(
  plans: readonly C[],
  copies: number,
  { result: { role: result } }: Subject,
  { software }: Executor,
): C[][] {
  const room = software ? TOGETHER_BYTES_SOFTWARE : TOGETHER_BYTES;
  const parts: C[][] = [];
  let used = Infinity;
  for (const one of plans) {
    const sum = (own: boolean) =>
      (one.plan?.buffers ?? [])
        .filter(({ role }) => own === (role === result || role === "workspace"))
        .reduce((total, { bytes }) => total + copies * bytes, 0);
    if (used + sum(true) > room) {
      parts.push([]);
      used = sum(false);
    }
    used += sum(true);
    parts.at(-1)!.push(one);
  }
  return parts;
}

/** What a case says beside its algorithm. */
export function caseChoices({ policy, tile, pair = "auto", segments }: RunCase): string[] {
  return [
    ...[policy, tile, pair].filter((choice) => choice !== "auto"),
    ...(segments === undefined ? [] : [`Z=${segments}`]),
  ];
}

function planningOf(
  { planning }: RunOptions,
  { algorithm, policy, tile, pair, segments, splits = segments, balance }: RunCase,
): Partial<Planning> {
  return {
    ...planning,
    algorithm,
    schedule: {
      ...planning?.schedule,
      ...(policy === "auto" ? {} : { policy }),
      ...defined({ splits, balance }),
    },
    ...(tile === "auto" ? {} : { tile }),
    ...defined({ pair }),
  };
}

function caseSetup(
  { provider, fill, seed, lossScale }: RunOptions,
  { subject }: RunGroup,
  { algorithm, policy, tile, pair, segments }: RunCase,
  cache: CacheState,
  device: string,
): CaseSetup {
  return {
    ...subject.traits,
    algorithm,
    ...(policy === "auto" ? {} : { policy }),
    ...(tile === "auto" ? {} : { tile }),
    ...defined({ pair, segments }),
    cache,
    device,
    ...(provider === undefined ? {} : { provider }),
    made: { fill: fill ?? defaultFill(subject.traits.dtype), seed },
    ...lossScaleTrait(subject, lossScale),
  };
}
