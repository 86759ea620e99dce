import { FEWER_SPLITS } from "../algorithms/cut_notes.ts";
import type { CheckMode } from "../run/coverage.ts";
import { cpuExecutor, type Executor } from "../run/executor.ts";
import { chunkedOperands, type OperandSource } from "../run/operands.ts";
import { type Computed, runSubject, type SubjectJob } from "../run/runner.ts";
import {
  featuresOf,
  type HostData,
  type Planning,
  type Subject,
  usesUnits,
} from "../run/subject.ts";
import { type During, untimed } from "../run/timeline.ts";
import { BRIEF_WARM_UP } from "../run/timing.ts";
import { openGpuExecutor } from "./open_gpu.ts";
import { budgetMs, learnTuning } from "./learn.ts";
import { progress, reporter } from "./output.ts";
import type { AnyGpuChoice } from "./shared_options.ts";
import {
  isOutdated,
  noteOutdated,
  type Tuning,
  type TuningChoice,
  tuningOf,
} from "./tuning_options.ts";

/** One computation as a command asks for it. */
export interface Computation {
  readonly subject: Subject;
  readonly source: OperandSource;
  readonly algorithm: string;
  readonly planning: Partial<Planning>;
  /** What was measured; `auto` takes it. */
  readonly tuned?: Tuning | undefined;
  /** A device that others use too; one of its own where absent or lost. */
  readonly executor?: Executor | undefined;
  /** Told the result before it is checked; not of what runs in chunks. */
  readonly onResult?: (result: HostData) => void;
  readonly during?: During;
}

interface ComputeOptions {
  readonly device: "gpu" | "cpu";
  readonly backend: AnyGpuChoice["backend"];
  readonly adapter?: string | undefined;
  readonly check: CheckMode | "none";
  /** Timed runs; a few after a brief warm-up where absent. */
  readonly runs?: number | undefined;
  /** Time that the calls of a run fill; one call where absent. */
  readonly fillMs?: number | undefined;
}

/** What a command that computes says of learning, too. */
type LearningComputeOptions = ComputeOptions & TuningChoice;

const FEW_RUNS = 5;
export const RUNS_HELP = `default ${FEW_RUNS}, after a brief warm-up`;

/**
 * Computes, times and checks on the GPU; on the CPU where that is asked for, or where there is nothing to compute.
 *
 * @throws {UnsupportedError} where there is no GPU, or it does not suffice.
 */
export function compute(
  computation: Computation,
  options: LearningComputeOptions,
): Promise<Computed> {
  return withExecutor(computation, options, runSubject);
}

/**
 * Opens what {@linkcode compute} computes on, for as long as `run` takes.
 *
 * @param run Does the job; `show` says on a terminal how far it is.
 * @throws as {@linkcode compute}.
 */
export async function withExecutor<T>(
  computation: Computation,
  options: LearningComputeOptions,
  run: (executor: Executor, job: SubjectJob, show: (text: string) => void) => Promise<T>,
): Promise<T> {
  const { device, backend, adapter: wanted, check, runs, fillMs = 0 } = options;
  const { subject, source, algorithm, planning, tuned, onResult, during = untimed } = computation;
  const shown = progress();
  const tell = (doing: string) => (fraction: number) =>
    shown.update(`${doing} ${(100 * fraction).toFixed(0)} %`);
  const onCpu = device === "cpu" || subject.shape.includes(0);
  if (!onCpu && subject.planner.admit !== undefined) {
    await during(
      "read",
      () => subject.planner.admit!(check, () => chunkedOperands(subject, source)),
    );
  }
  using own = new DisposableStack();
  const openOwn = async (learning: TuningChoice) =>
    own.use(
      await during(
        "device",
        () =>
          openGpuExecutor(
            { backend, adapter: wanted, onUnits: usesUnits(subject.traits.dtype, planning.math) },
            featuresOf(subject),
            planning,
            learning,
          ),
      ),
    );
  // What may have cost the device is not tried again.
  const openAgain = () => openOwn({ tuneBudget: 0 });
  let executor = onCpu
    ? cpuExecutor(tell("computing"))
    : computation.executor ?? await openOwn(options);
  if (!executor.isOpen) executor = await openAgain();
  const { adapter } = executor.device;
  let tuning = onCpu ? undefined : tuningOf(tuned, executor.device) ?? planning.tuning;
  if (!onCpu && budgetMs(executor, planning, options) > 0) {
    tuning = await during("tune", () => learnTuning(executor, subject, planning, tuning, options));
    if (!executor.isOpen) executor = await openAgain();
  }
  try {
    return await run(executor, {
      subject,
      source,
      planning: { ...planning, ...(tuning === undefined ? {} : { tuning }) },
      algorithm: device === "cpu" ? "reference" : algorithm,
      device: onCpu ? adapter : `${adapter} (${executor.device.backend})`,
      check,
      protocol: onCpu ? { samples: 1, fillMs: 0 } : {
        samples: runs ?? FEW_RUNS,
        fillMs,
        ...(runs === undefined ? { warmUpMs: BRIEF_WARM_UP } : {}),
      },
      onPlan(plan) {
        noteOutdated(tuned, isOutdated(plan) ? 1 : 0);
        const fewer = plan.notes.find((note) => note.startsWith(FEWER_SPLITS));
        if (fewer !== undefined) reporter("stderr").message(`wgconv: note: ${fewer}`);
      },
      onProgress: tell("checking"),
      ...(onResult === undefined ? {} : { onResult }),
      during,
    }, shown.update);
  } catch (error) {
    throw await executor.causeOf(error);
  } finally {
    shown.done();
    during("close", () => own.dispose());
  }
}
