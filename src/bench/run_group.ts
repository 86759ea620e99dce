import { modelOf } from "../algorithms/device/h200.ts";
import type { BufferRole, Plan } from "../algorithms/plan.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import { supportedAlgorithms, tryPlanConv } from "../algorithms/planner.ts";
import type { PlanRequest } from "../algorithms/request.ts";
import type { TuningTable } from "../algorithms/tuned_choice.ts";
import type { GpuDevice } from "../gpu/device.ts";
import {
  createPlanBuffers,
  type PlanBuffers,
  type PreparedPlan,
  preparePlan,
} from "../gpu/execute.ts";
import { operandTensors, resultTensor, tensorBytes } from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { CaseRecord } from "../report/record.ts";
import { filterLayoutFor } from "../tensor/layout.ts";
import type { BenchCase, BenchGroup, BenchPlan, CacheState } from "./bench_plan.ts";
import { caseRecord, type CaseSetup, convSetup } from "../run/case_record.ts";
import { checkAgainst, convYardstickOf, type Reference } from "../run/check.ts";
import { convResult, fetchResult, uploadOperands } from "../run/gpu_case.ts";
import type { GroupData } from "./group_data.ts";
import type { HostOperands } from "../run/operands.ts";
import { timeRivals } from "../run/timing.ts";

/** Copies of the operands that make a case cold: together beyond the largest caches. */
const COLD_BYTES = 512 * 2 ** 20;
const MOST_COPIES = 128;
/** Cases are timed in turn as long as their buffers fit into this together; one at a time beyond. */
const TOGETHER_BYTES = 8 * 2 ** 30;
const TOGETHER_BYTES_SOFTWARE = 2 ** 30;

/** A checked case with what it was checked on. */
export interface CheckedCase {
  readonly record: CaseRecord;
  readonly group: BenchGroup;
  readonly plan: Plan;
  readonly operands: HostOperands;
  readonly result: Float32Array;
  readonly reference: Reference;
}

/** What callers may hang into a run. */
export interface SuiteHooks {
  /** Takes the place of the planner's plan: tests put faults into it. */
  alterPlan?(plan: Plan, group: BenchGroup): Plan;
  /** A plan that is about to run. */
  onPlan?(plan: Plan): void;
  /** What was measured to be fastest on a device; `auto` takes it. */
  tuning?(gpu: GpuDevice): TuningTable | undefined;
  /** A case that its algorithm does not support, which has no record. */
  onSkip?(what: string, reason: string): void;
  onChecked?(checked: CheckedCase): Promise<void> | void;
}

/** A case with its plan. */
interface Candidate {
  readonly one: BenchCase;
  readonly plan: Plan;
}

/**
 * Runs the cases of a group: together and timed in turn where memory allows. What cannot be planned is a record or
 * a call of `onSkip`; any other error is thrown.
 */
export async function* runGroup(
  gpu: GpuDevice,
  bench: BenchPlan,
  group: BenchGroup,
  data: GroupData,
  hooks: SuiteHooks,
): AsyncGenerator<CaseRecord, void, undefined> {
  const candidates: Candidate[] = [];
  for (const one of group.cases) {
    const tuning = hooks.tuning?.(gpu);
    const request = {
      ...planRequest(gpu, bench, group, one),
      ...(tuning === undefined ? {} : { tuning }),
    };
    const reason = unsupportedReason(request);
    if (reason !== undefined) {
      hooks.onSkip?.(one.algorithm, reason);
      continue;
    }
    const plan = tryPlanConv(request);
    if (!isRefusal(plan)) {
      hooks.onPlan?.(plan);
      candidates.push({ one, plan: hooks.alterPlan?.(plan, group) ?? plan });
      continue;
    }
    const message = `Cannot plan: ${plan.text}`;
    if (one.algorithm === "auto") {
      yield* failedRecords(bench, group, [one], gpu.info.adapter, message);
    } else {
      // A policy, tile or workspace that does not go with a named algorithm is one combination too many.
      const { algorithm, policy, tile, pair = "auto" } = one;
      hooks.onSkip?.(
        [algorithm, policy, tile, pair].filter((part) => part !== "auto").join(" "),
        message,
      );
    }
  }
  for (const some of fitting(candidates, copiesOf(group), group, gpu)) {
    yield* runTogether(gpu, bench, group, some, data, hooks);
  }
}

/** The records of cases that did not run to their end. */
export function failedRecords(
  bench: BenchPlan,
  group: BenchGroup,
  cases: readonly BenchCase[],
  device: string,
  message: string,
): CaseRecord[] {
  return cases.flatMap((one) =>
    one.caches.map((cache) =>
      caseRecord(caseSetup(bench, group, one, cache, device), { verdict: "error", message })
    )
  );
}

async function* runTogether(
  gpu: GpuDevice,
  bench: BenchPlan,
  group: BenchGroup,
  candidates: readonly Candidate[],
  data: GroupData,
  hooks: SuiteHooks,
): AsyncGenerator<CaseRecord, void, undefined> {
  const { problem } = group;
  const setup = (one: BenchCase, cache: CacheState) =>
    caseSetup(bench, group, one, cache, gpu.info.adapter);
  if (candidates.every(({ plan }) => plan.passes.length === 0)) {
    const outcome = { verdict: "none", message: "the result is empty" } as const;
    for (const { one, plan } of candidates) {
      for (const cache of one.caches) yield caseRecord(setup(one, cache), { plan, ...outcome });
    }
    return;
  }
  using resources = new DisposableStack();
  const operands = data.operands(problem.op);
  const sets: PlanBuffers[][] = [];
  for (let copy = 0; copy < copiesOf(group); copy++) {
    sets.push(await makeBuffers(gpu, group, candidates, operands, resources));
  }
  const prepared: PreparedPlan[][] = [];
  for (const [place, { plan }] of candidates.entries()) {
    const copies: PreparedPlan[] = [];
    for (const set of sets) copies.push(resources.use(await preparePlan(gpu, plan, set[place]!)));
    prepared.push(copies);
  }
  const rivals = candidates.flatMap(({ one, plan }, place) =>
    one.caches.map((cache) => ({ one, plan, cache, place }))
  );
  const times = await timeRivals(
    gpu,
    rivals.map(({ cache, place }) => prepared[place]!.slice(0, cache === "hot" ? 1 : undefined)),
    bench.protocol,
  );
  for (const [place, { plan }] of candidates.entries()) {
    const mine = rivals.flatMap((rival, index) =>
      rival.place === place ? [{ setup: setup(rival.one, rival.cache), time: times[index]! }] : []
    );
    if (bench.check === "none") {
      for (const { setup, time } of mine) yield caseRecord(setup, { plan, time, verdict: "none" });
      continue;
    }
    const start = performance.now();
    const result = await fetchResult(gpu, sets[0]![place]!, convResult(problem));
    const readSeconds = (performance.now() - start) / 1000;
    const reference = await data.reference(problem);
    const arithmetic = plan.arithmetic;
    const sampled = checkAgainst(reference, result, arithmetic);
    const projection = await data.projection(problem);
    const made = {
      result,
      arithmetic,
      yardstick: convYardstickOf(reference, arithmetic),
      readSeconds,
    };
    const checked = await projection?.check(sampled, made) ?? sampled;
    for (const { setup, time } of mine) {
      const record = caseRecord(setup, { plan, time, ...checked });
      await hooks.onChecked?.({ record, group, plan, operands, result, reference });
      yield record;
    }
  }
}

/** One set of buffers for each candidate; they share the operands. */
async function makeBuffers(
  gpu: GpuDevice,
  { problem }: BenchGroup,
  candidates: readonly Candidate[],
  operands: HostOperands,
  resources: DisposableStack,
): Promise<PlanBuffers[]> {
  const made: PlanBuffers[] = [];
  let shared: Partial<Record<BufferRole, GPUBuffer>> | undefined;
  for (const { plan } of candidates) {
    const buffers = resources.use(createPlanBuffers(gpu, plan, shared));
    made.push(buffers);
    if (shared !== undefined) continue;
    await uploadOperands(gpu, buffers, operands);
    shared = Object.fromEntries(
      operandTensors(problem.op).map((which) => [which, buffers.get(which)]),
    );
  }
  return made;
}

function copiesOf({ problem, cases }: BenchGroup): number {
  if (!cases.some(({ caches }) => caches.includes("cold"))) return 1;
  return Math.min(MOST_COPIES, 1 + Math.ceil(COLD_BYTES / Math.max(1, tensorBytes(problem, 4))));
}

/** The candidates in parts whose buffers the device can hold together. */
function fitting(
  candidates: readonly Candidate[],
  copies: number,
  { problem }: BenchGroup,
  gpu: GpuDevice,
): Candidate[][] {
  const room = gpu.info.software ? TOGETHER_BYTES_SOFTWARE : TOGETHER_BYTES;
  const result = resultTensor(problem.op);
  const parts: Candidate[][] = [];
  let used = Infinity;
  for (const candidate of candidates) {
    const sum = (own: boolean) =>
      candidate.plan.buffers
        .filter(({ role }) => own === (role === result || role === "workspace"))
        .reduce((total, { bytes }) => total + copies * bytes, 0);
    if (used + sum(true) > room) {
      parts.push([]);
      used = sum(false);
    }
    used += sum(true);
    parts.at(-1)!.push(candidate);
  }
  return parts;
}

function planRequest(
  gpu: GpuDevice,
  { planning }: BenchPlan,
  { problem, dtype, layout }: BenchGroup,
  { algorithm, policy, tile, pair }: BenchCase,
): PlanRequest {
  return {
    problem,
    dtype,
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm,
    limits: gpu.limits,
    ...planning,
    device: modelOf(gpu.workgroupsInFlight, planning?.device),
    ...(policy === "auto" ? {} : { policy }),
    ...(tile === "auto" ? {} : { tile }),
    ...(pair === undefined ? {} : { pair }),
  };
}

/** Why a named algorithm cannot do the problem. */
function unsupportedReason(request: PlanRequest): string | undefined {
  if (request.algorithm === "auto") return undefined;
  return supportedAlgorithms(request).find(({ name }) => name === request.algorithm)?.reason;
}

function caseSetup(
  bench: BenchPlan,
  { problem, layout, dtype }: BenchGroup,
  { algorithm, policy, tile, pair }: BenchCase,
  cache: CacheState,
  device: string,
): CaseSetup {
  return {
    ...convSetup(problem, { layout, filterLayout: filterLayoutFor(layout) }),
    dtype,
    algorithm,
    ...(policy === "auto" ? {} : { policy }),
    ...(tile === "auto" ? {} : { tile }),
    ...(pair === undefined ? {} : { pair }),
    cache,
    device,
    ...(bench.provider === undefined ? {} : { provider: bench.provider }),
    made: { fill: bench.fill, seed: bench.seed },
  };
}
