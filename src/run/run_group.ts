import { EMPTY_RESULT } from "../accuracy/mod.ts";
import type { Plan } from "../algorithms/plan.ts";
import { expectPlanned, isRefusal } from "../algorithms/refusal.ts";
import type { Balance, TuningTable } from "../algorithms/request.ts";
import { defined } from "../defined.ts";
import type { CaseRecord, TimeRecord } from "../report/record.ts";
import { dtypeBytes } from "../tensor/dtype.ts";
import type { FillKind } from "../tensor/fill.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { CaseChecks } from "./case_checks.ts";
import { caseRecord, type CaseSetup } from "./case_record.ts";
import { type Checked, linearOf, type Reference } from "./check.ts";
import type { CheckMode } from "./coverage.ts";
import { cpuNote, type Executor, type Ready } from "./executor.ts";
import { defaultFill } from "./operands.ts";
import {
  type HostData,
  type HostOperands,
  lossScaleTrait,
  type Planning,
  type PlanOperands,
  type Subject,
} from "./subject.ts";
import { type During, untimed } from "./timeline.ts";
import { type Timed, timeRivals, type TimingProtocol } from "./timing.ts";

/** Whether calls find their operands in the cache, or cycle through copies. */
export type CacheState = "hot" | "cold";
export const CACHES: readonly CacheState[] = ["hot", "cold"];

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
  /** A tile policy and a Winograd tile; `auto` is the planner's choice. */
  readonly policy: string;
  readonly tile: string;
  /** Kernels of WinRS; the planner's choice where absent, as are the others. */
  readonly pair?: string;
  /** Segments of WinRS. */
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

/** What callers may hang into a run. */
export interface RunHooks {
  /** Takes the place of the planner's plan: tests put faults into it. */
  alterPlan?(plan: Plan, group: RunGroup): Plan;
  /** A plan that is about to run. */
  onPlan?(plan: Plan): void;
  /** What was measured to be fastest on a device; `auto` takes it. */
  tuning?(executor: Executor): TuningTable | undefined;
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

/** A plan to be run, and the plan of what can be projected of its result; no plan on the CPU. */
interface RunPlan {
  readonly plan: Plan | undefined;
  readonly linear?: Plan | undefined;
  readonly caches: readonly CacheState[];
}

/** A case with its plan. */
interface PlannedCase extends RunPlan {
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
  const plans: PlannedCase[] = [];
  for (const one of group.cases) {
    const tuning = hooks.tuning?.(executor);
    const planning = { ...planningOf(run, one), ...(tuning === undefined ? {} : { tuning }) };
    const reason = executor.unsupported(subject, planning);
    if (reason !== undefined) {
      hooks.onSkip?.(one.algorithm, reason);
      continue;
    }
    const plan = executor.plan(subject, planning);
    if (!isRefusal(plan)) {
      if (plan) hooks.onPlan?.(plan);
      const altered = plan && (hooks.alterPlan?.(plan, group) ?? plan);
      const linear = linearPlan(executor, subject, planning, run.check);
      plans.push({ one, plan: altered, linear, caches: one.caches });
      continue;
    }
    const message = `Cannot plan: ${plan.text}`;
    if (one.algorithm === "auto" || "gemm" in subject.asked) {
      yield* failedRecords(run, group, [one], executor.device.adapter, message);
    } else {
      // A policy, tile or workspace that does not go with a named algorithm is one combination too many.
      hooks.onSkip?.([one.algorithm, ...caseChoices(one)].join(" "), message);
    }
  }
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
    const asked = { protocol: run.protocol, copies, checks, onTry };
    for await (const ran of runTogether(executor, subject, some, data.operands, asked)) {
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

/** The plan of what is run beside a case, so that its result can be projected. */
export function linearPlan(
  executor: Executor,
  subject: Subject,
  planning: Partial<Planning>,
  check: CheckMode | "none",
): Plan | undefined {
  const linear = check === "none" ? undefined : linearOf(subject, check);
  return linear && expectPlanned(executor.plan(linear, planning));
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

/** What became of a plan. */
export interface Ran<C extends RunPlan> {
  readonly one: C;
  /** One a state of the cache. */
  readonly times: readonly TimeRecord[];
  /** As it lies in memory, of the very buffers that were timed; where it was checked or asked for. */
  readonly result?: HostData;
  readonly outcome: Checked | { readonly verdict: "none"; readonly message?: string };
}

/** How plans are run together. */
interface TogetherOptions {
  readonly protocol: TimingProtocol;
  /** Of all buffers, for what is timed cold; 1 where absent. */
  readonly copies?: number;
  readonly checks?: CaseChecks | undefined;
  /** Whether results are wanted though nothing is checked. */
  readonly fetched?: boolean;
  readonly onTry?: (place: number) => void;
  /** Told each result before it is checked, when the device is done with it. */
  readonly onResult?: ((result: HostData) => void) | undefined;
  readonly during?: During;
}

/** Brings a subject's operands to where they are computed with, times the plans in turn and checks each. */
export async function* runTogether<C extends RunPlan>(
  executor: Executor,
  subject: Subject,
  plans: readonly C[],
  operands: PlanOperands,
  asked: TogetherOptions,
): AsyncGenerator<Ran<C>, void, undefined> {
  const { protocol, copies = 1, checks, fetched = false, onResult, onTry } = asked;
  const { during = untimed } = asked;
  using loaded = executor.load(subject, operands, during);
  const ready: Ready[] = [];
  for (const [place, { plan }] of plans.entries()) {
    onTry?.(place);
    ready.push(await loaded.prepare(plan, copies));
  }
  const rivals = plans.flatMap(({ caches }, place) =>
    caches.map((cache) => ({ place, timed: cache === "hot" ? ready[place]!.hot : ready[place]! }))
  );
  const all = rivals.map(({ place, timed }): Timed => ({
    copies: timed.copies,
    run(repeated, next) {
      onTry?.(place);
      return timed.run(repeated, next);
    },
  }));
  const times = await timeRivals(executor.software, all, protocol, during);
  for (const [place, one] of plans.entries()) {
    const own = times.filter((_, index) => rivals[index]!.place === place);
    const note = executor.isReference ? { message: cpuNote(subject) } : {};
    const unchecked = { one, times: own, outcome: { verdict: "none", ...note } } as const;
    if (checks === undefined && !fetched) {
      yield unchecked;
      continue;
    }
    const start = performance.now();
    const result = await during("read back", () => ready[place]!.fetch());
    const readSeconds = (performance.now() - start) / 1000;
    if (checks === undefined) {
      onResult?.(result);
      yield { ...unchecked, result };
      continue;
    }
    const { plan, linear: bare } = one;
    const linear = bare &&
      await runOnce(await loaded.prepare(bare, 1, subject.linear!.result), during);
    onResult?.(result);
    const outcome = await checks.check({
      result,
      linear,
      arithmetic: plan?.arithmetic ?? {},
      readSeconds,
    });
    yield { one, times: own, result, outcome };
  }
}

async function runOnce(ready: Ready, during: During): Promise<HostData> {
  await during("run", () => ready.run({}));
  return await during("read back", () => ready.fetch());
}

function copiesOf({ subject, cases }: RunGroup): number {
  if (!cases.some(({ caches }) => caches.includes("cold"))) return 1;
  const bytes = [...subject.operands, subject.result]
    .reduce((sum, { dtype, shape }) => sum + dtypeBytes(dtype) * elementCount(shape), 0);
  return Math.min(MOST_COPIES, 1 + Math.ceil(COLD_BYTES / Math.max(1, bytes)));
}

/** The plans in parts whose buffers the device can hold together. */
function fitting<C extends RunPlan>(
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
    ...(policy === "auto" ? {} : { policy }),
    ...(tile === "auto" ? {} : { tile }),
    ...defined({ pair, splits, balance }),
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
