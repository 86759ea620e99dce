import { rivalName } from "../algorithms/cost/auto.ts";
import type { Entrant } from "../algorithms/cost/shortlist.ts";
import { isMeasured } from "../algorithms/device/known.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import type { TuningTable } from "../algorithms/request.ts";
import { mergeTuning, printTuning, readTuningText, tuningRecord } from "../bench/tuning_file.ts";
import { defined } from "../defined.ts";
import { InputSyntaxError } from "../errors.ts";
import type { TimeRecord, TuningRecord } from "../report/record.ts";
import { caseRecord } from "../run/case_record.ts";
import type { Executor } from "../run/executor.ts";
import type { Planning, Subject } from "../run/subject.ts";
import { fastestOf } from "../run/time_plans.ts";
import { oneSentence } from "./failure.ts";
import { mergeFile } from "./kept_files.ts";
import { reporter } from "./output.ts";
import { saidTuning, type TuningChoice, tuningFile } from "./tuning_options.ts";

export const BUDGET_HELP = "seconds to time the best kernels of a problem that is new to this GPU";

export const CONV_BUDGET_HELP = "default 1, but 0 on an H100, H200 or calibrated GPU and on CPUs";

/** Seconds that are spent unasked on GPUs without figures of their own. */
const DEFAULT_SECONDS = 1;
/** Ways to compute a problem that are timed. */
const CANDIDATES = 3;
/** Buffers of a way that is timed. */
const MOST_BYTES = 2 ** 31;

/** What was learned on an executor, for cases to come. */
const learnedOn = new WeakMap<Executor, TuningTable>();

/** Milliseconds that learning may take. */
export function budgetMs(
  { software, model, isRough = false, device }: Pick<
    Executor,
    "software" | "model" | "isRough" | "device"
  >,
  planning: Partial<Planning>,
  choice: TuningChoice,
): number {
  const { tuneBudget } = choice;
  if (tuneBudget !== undefined) return 1000 * tuneBudget;
  const given = model !== undefined && !isRough || planning.device !== undefined;
  const known = software || given || isMeasured(device.adapter) ||
    saidTuning(choice) === "none";
  return known ? 0 : 1000 * DEFAULT_SECONDS;
}

/**
 * What was measured on a device, with what is measured now: the best ways to compute a subject that nothing is known of are timed, the
 * fastest is remembered, and a line on stderr says so. Failures change nothing but that line.
 *
 * @param tuning What is known already.
 */
export async function learnTuning(
  executor: Executor,
  subject: Subject,
  planning: Partial<Planning>,
  tuning: TuningTable | undefined,
  options: TuningChoice,
): Promise<TuningTable | undefined> {
  const budget = budgetMs(executor, planning, options);
  const { exact, maxBoundRatio, maxWorkspaceBytes, maxWorkspaceShare } = planning;
  const limits = [maxBoundRatio, maxWorkspaceBytes, maxWorkspaceShare];
  // What is fastest within limits is not what is fastest.
  const limited = exact || limits.some((limit) => limit !== undefined);
  const open = "gemm" in subject.asked ? "gemm" : "auto";
  if (
    (planning.algorithm ?? open) !== open || budget === 0 || limited ||
    executor.timeWithin === undefined
  ) return tuning;
  const known = new Map([...tuning ?? [], ...learnedOn.get(executor) ?? []]);
  const plan = executor.plan(subject, { ...planning, tuning: known });
  const full = executor.planning(planning);
  if (isRefusal(plan) || plan === undefined || plan.measured || full === undefined) return known;
  const entrants = subject.planner.shortlist(full, CANDIDATES)
    .filter(({ plan }) => plan.buffers.reduce((sum, { bytes }) => sum + bytes, 0) <= MOST_BYTES);
  if (entrants.length < 2) return known;
  const start = performance.now();
  const times = await executor.timeWithin(subject, entrants.map(({ plan }) => plan), budget);
  const seconds = (performance.now() - start) / 1000;
  const count = times.filter((time) => time !== undefined).length;
  if (count < 2) return known;
  const winner = fastestOf(times)!;
  const lines = learnedRecords(executor, subject, entrants, times, budget)
    .map((record) => JSON.stringify(record)).join("\n");
  const where = await remember(lines, tuningFile(saidTuning(options)));
  reporter("stderr").message(
    `timed ${count} ways in ${seconds.toFixed(1)} s: ${
      entrantName(entrants[winner]!)
    } is fastest; ${where}`,
  );
  const { key, choice } = entrants[winner]!;
  learnedOn.set(executor, new Map([...learnedOn.get(executor) ?? [], [key, choice]]));
  return new Map([...known, [key, choice]]);
}

function learnedRecords(
  { device }: Executor,
  subject: Subject,
  entrants: readonly Entrant[],
  times: readonly (TimeRecord | undefined)[],
  budget: number,
): TuningRecord[] {
  const winner = fastestOf(times);
  const { epilogue: _, ...traits } = subject.traits;
  const group = { subject: { ...subject, traits }, cases: [] };
  return entrants.flatMap(({ choice, plan }, place) => {
    const time = times[place];
    if (time === undefined) return [];
    const { multiprocessors, problem: _, kernels: __, ...named } = choice;
    const setup = { ...traits, ...named, device: device.adapter };
    const record = caseRecord(setup, { plan, time, verdict: "none" });
    return tuningRecord({ record, plan, group }, device, {
      ...(multiprocessors === undefined ? {} : { multiprocessors }),
      chosen: place === 0,
      winner: place === winner,
      budget_ms: budget,
    });
  });
}

/** Puts records into a tuning file; says where they are, or why not. */
async function remember(lines: string, path: string | undefined): Promise<string> {
  if (path === undefined) return "not remembered: there is no tuning file";
  try {
    await mergeFile(path, (text) => {
      const { lines: old, damage } = readTuningText(text);
      if (damage !== undefined) {
        throw new InputSyntaxError(`${path}:${damage.line}: ${damage.what}`);
      }
      return printTuning(mergeTuning(old, readTuningText(lines).lines));
    });
    return `remembered in ${path}`;
  } catch (error) {
    return `not remembered: ${oneSentence(error)}`;
  }
}

function entrantName({ choice }: Entrant): string {
  const { algorithm, tile, pair, policy, multiprocessors } = choice;
  const cut = multiprocessors === undefined ? [] : [`cut for ${multiprocessors} multiprocessors`];
  return [rivalName({ algorithm, amplification: 1, ...defined({ tile, pair }) }), policy, ...cut]
    .filter((part) => part !== undefined).join(" ");
}
