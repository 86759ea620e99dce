import { rivalName } from "../algorithms/cost/auto.ts";
import { gpuModel, isMeasured } from "../algorithms/device/known.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import { slowlyCompiled } from "../algorithms/device/software.ts";
import type { Entrant } from "../algorithms/cost/shortlist.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import type { TuningTable } from "../algorithms/request.ts";
import { compileSeconds, measureSize, type Measuring } from "../bench/calibrate/calibrate.ts";
import { printCalibration } from "../bench/calibrate/model_file.ts";
import { tuningRecord } from "../bench/tuning_file.ts";
import { defined } from "../defined.ts";
import { UnsupportedError } from "../errors.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { counted } from "../report/format.ts";
import type { TimeRecord, TuningRecord } from "../report/record.ts";
import { caseRecord } from "../run/case_record.ts";
import type { Executor } from "../run/executor.ts";
import type { Planning, Subject } from "../run/subject.ts";
import { entrantsOf, fastestOf } from "../run/time_plans.ts";
import { calibrationPath, isUnsized, markUnsized } from "./calibration.ts";
import { oneSentence } from "./failure.ts";
import { mergeFile } from "./kept_files.ts";
import { reporter } from "./output.ts";
import { saidTuning, type TuningChoice, tuningFile, withRecords } from "./tuning_options.ts";

export const BUDGET_HELP = "seconds to time the best kernels of a problem that is new to this GPU";

export const CONV_BUDGET_HELP = "default 1, but 0 on an H100, H200 or calibrated GPU and on CPUs";

/** Seconds that are spent unasked on GPUs without figures of their own. */
const DEFAULT_SECONDS = 1;

/** Of executors what is known, and which classes of problems were timed: those that gave nothing are not timed again. */
const learnedOn = new WeakMap<Executor, { table: TuningTable; readonly tried: Set<string> }>();

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

/** How a size is measured, by brief samples: a factor of two changes few choices. */
export const SIZE_PROTOCOL = {
  samples: 3,
  fillMs: 1,
  warmUpMs: { first: 30, next: 2, most: 60 },
};

/** A compiler is slow that takes so long for the shortest product: Direct3D's FXC took 9 to 14 s under Wine, Mesa's drivers less than 1. */
const SLOW_SECONDS = 2;

/**
 * The model of a GPU nobody measured, by its size, which is measured now and kept; a line on stderr says so. Undefined where it cannot
 * be measured within the budget, as is said once, or need not be.
 *
 * @param timed Times plans by {@linkcode SIZE_PROTOCOL}; it may cost the device.
 */
export async function learnSize(
  gpu: Pick<GpuDevice, "limits" | "causeOf">,
  executor: Pick<Executor, "software" | "device">,
  planning: Partial<Planning>,
  choice: TuningChoice,
  timed: Measuring["time"],
  os: string = Deno.build.os,
): Promise<DeviceModel | undefined> {
  const { device, software } = executor;
  const budget = budgetMs({ device, software, model: undefined }, planning, choice);
  if (budget === 0 || software || isMeasured(device.adapter)) return undefined;
  if (choice.tuneBudget === undefined && isUnsized(device)) return undefined;
  const reply = reporter("stderr");
  const start = performance.now();
  const time: Measuring["time"] = async (plans) => {
    if (performance.now() > start + budget) {
      throw new UnsupportedError(`it takes longer than ${budget / 1000} s`);
    }
    return await timed(plans);
  };
  try {
    const known = { ...gpuModel(device.adapter), name: `${device.adapter}, by its measured size` };
    const measuring = { limits: gpu.limits, time };
    // Direct3D's compiler may take longer for a product than anyone waits.
    const compiling = os === "windows" ? await compileSeconds(known, measuring) : 0;
    const isSlow = compiling > SLOW_SECONDS;
    const model = isSlow ? slowlyCompiled(known) : await measureSize(known, measuring);
    const found = { model, measured: ["size"], times: {}, notes: [] };
    const where = await kept(
      calibrationPath(device, "size"),
      () => printCalibration(device, found),
    );
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const { multiprocessors, rates: { gathered, stream } } = model;
    const told = isSlow
      ? `this GPU's compiler takes ${seconds} s for a short kernel: auto takes no longer ones; ${where}`
      : `measured this GPU's size in ${seconds} s: ${
        counted(multiprocessors, "multiprocessor")
      }, ` +
        `${gathered.toPrecision(2)} TFLOP/s, ${stream.toPrecision(2)} TB/s; ${where}; ` +
        "wgconv calibrate measures more in seconds";
    reply.message(told);
    return model;
  } catch (error) {
    const cause = await gpu.causeOf(error);
    if (markUnsized(device)) {
      reply.message(`wgconv: note: this GPU's size is not measured: ${oneSentence(cause)}`);
    }
    return undefined;
  }
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
  const full = executor.planning(planning);
  if (budget === 0 || full === undefined || executor.timeWithin === undefined) return tuning;
  const learned = learnedOn.get(executor) ?? { table: tuning ?? new Map(), tried: new Set() };
  learnedOn.set(executor, learned);
  const { table: known, tried } = learned;
  const plan = executor.plan(subject, { ...planning, tuning: known });
  if (isRefusal(plan) || plan === undefined || plan.measured) return known;
  const entrants = entrantsOf(subject, full);
  if (entrants.length < 2 || tried.has(entrants[0]!.key)) return known;
  tried.add(entrants[0]!.key);
  const start = performance.now();
  const times = await executor.timeWithin(subject, entrants, budget);
  const seconds = (performance.now() - start) / 1000;
  const count = times.filter((time) => time !== undefined).length;
  if (count < 2) return known;
  const winner = fastestOf(times)!;
  const records = learnedRecords(executor, subject, entrants, times, budget);
  const path = tuningFile(saidTuning(options));
  const where = await kept(path, (text) => withRecords(text, records, path!));
  reporter("stderr").message(
    `timed ${count} ways in ${seconds.toFixed(1)} s: ${
      entrantName(entrants[winner]!)
    } is fastest; ${where}`,
  );
  const { key, choice } = entrants[winner]!;
  return learned.table = new Map([...known, [key, choice]]);
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

/** Puts what `merge` makes of a file's text in its place; says where it is remembered, or why not. */
async function kept(path: string | undefined, merge: (text: string) => string): Promise<string> {
  if (path === undefined) return "not remembered: there is no file for it";
  try {
    await mergeFile(path, merge);
    return `remembered in ${path}`;
  } catch (error) {
    return `not remembered: ${oneSentence(error)}`;
  }
}

function entrantName({ choice }: Entrant): string {
  const { algorithm, tile, pair, policy, multiprocessors } = choice;
  const cut = multiprocessors === undefined
    ? []
    : [`cut for ${counted(multiprocessors, "multiprocessor")}`];
  return [rivalName({ algorithm, amplification: 1, ...defined({ tile, pair }) }), policy, ...cut]
    .filter((part) => part !== undefined).join(" ");
}
