import type { AlgorithmName, PlanRequest } from "../algorithms/request.ts";
import { planConv } from "../algorithms/planner.ts";
import type { Plan } from "../algorithms/plan.ts";
import type { GpuDevice } from "../gpu/device.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  type Operation,
} from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { CaseRecord } from "../report/record.ts";
import type { FillKind } from "../tensor/fill.ts";
import { filterLayoutFor, type Layout } from "../tensor/layout.ts";
import { tensorBytes } from "../problem/conv_problem.ts";
import { caseRecord, type CaseSetup, convSetup } from "./case_record.ts";
import { checkAgainst, computeReference, type Reference } from "./check.ts";
import { convResult, runPlan } from "./gpu_case.ts";
import { eachCase } from "./each_case.ts";
import { fillOperand } from "./operands.ts";
import type { TimingProtocol } from "./timing.ts";

/** What a run of the bench covers: the cross product of problems and of every list. */
export interface BenchPlan {
  readonly problems: readonly ConvProblem[];
  readonly ops: readonly Operation[];
  readonly layouts: readonly Layout[];
  readonly algorithms: readonly (AlgorithmName | "auto")[];
  /** Tile policies; `auto` is the planner's choice. */
  readonly policies: readonly string[];
  readonly check: "none" | "sample" | "full";
  /** Whether calls find their operands in the cache (`hot`), or cycle through copies (`cold`). */
  readonly cache: "hot" | "cold";
  readonly fill: FillKind;
  readonly seed: number;
  readonly protocol: TimingProtocol;
}

/** Copies of the buffers that make a case cold: together beyond the largest caches, within memory. */
const COLD_BYTES = 512 * 2 ** 20;
const MOST_COPIES = 32;

/**
 * Runs every case and yields its record at once. A failing case becomes a record with the verdict `error`.
 * What one problem and layout's cases share, its data and its references, is made once.
 *
 * @param open Opens the device: at the start, and again after it was lost.
 */
export async function* runSuite(
  bench: BenchPlan,
  open: () => Promise<GpuDevice>,
  onCase: (index: number, count: number, what: string) => void,
): AsyncGenerator<CaseRecord, void, undefined> {
  let index = 0;
  const cases = function* () {
    for (const group of groups(bench)) {
      const shared = sharedData(bench, group);
      for (const one of group.cases) {
        onCase(++index, group.count, `${one.problem.name ?? ""} ${one.problem.op}`.trim());
        yield {
          run: (gpu: GpuDevice) => runCase(gpu, bench, one, shared),
          failed: (device: string, message: string) =>
            caseRecord(caseSetup(bench, one, device), { verdict: "error", message }),
        };
      }
    }
  };
  yield* eachCase(cases(), open);
}

/** One case of a group. */
interface Case {
  readonly problem: ConvProblem;
  readonly layout: Layout;
  readonly algorithm: AlgorithmName | "auto";
  readonly policy: string;
}

/** Cases of one problem and layout. */
interface Group {
  readonly problem: ConvProblem;
  readonly layout: Layout;
  readonly cases: readonly Case[];
  /** Cases of all groups together. */
  readonly count: number;
}

function groups(bench: BenchPlan): Group[] {
  const perGroup = bench.ops.length * bench.algorithms.length * bench.policies.length;
  const count = bench.problems.length * bench.layouts.length * perGroup;
  return bench.problems.flatMap((problem) =>
    bench.layouts.map((layout) => ({
      problem,
      layout,
      count,
      cases: bench.ops.flatMap((op) =>
        bench.algorithms.flatMap((algorithm) =>
          bench.policies.map((policy) => ({
            problem: { ...problem, op },
            layout,
            algorithm,
            policy,
          }))
        )
      ),
    }))
  );
}

/** Data and references of one group, made when first asked for. */
interface SharedData {
  operand(which: ConvTensor): Float32Array<ArrayBuffer>;
  reference(problem: ConvProblem): Promise<Reference>;
}

function sharedData(bench: BenchPlan, { problem, layout }: Group): SharedData {
  const layouts = { layout, filterLayout: filterLayoutFor(layout) };
  const operands = new Map<ConvTensor, Float32Array<ArrayBuffer>>();
  const references = new Map<Operation, Promise<Reference>>();
  const operand = (which: ConvTensor) => {
    const made = operands.get(which) ??
      fillOperand(problem, which, layouts, bench.fill, bench.seed);
    operands.set(which, made);
    return made;
  };
  return {
    operand,
    reference(target) {
      const made = references.get(target.op) ?? computeReference({
        problem: target,
        ...layouts,
        operands: Object.fromEntries(
          operandTensors(target.op).map((which) => [which, operand(which)]),
        ),
        epilogue: NO_EPILOGUE,
        mode: bench.check === "full" ? "full" : "sample",
        seed: bench.seed,
      });
      references.set(target.op, made);
      return made;
    },
  };
}

async function runCase(
  gpu: GpuDevice,
  bench: BenchPlan,
  one: Case,
  shared: SharedData,
): Promise<CaseRecord> {
  const { problem } = one;
  const plan: Plan = planConv(planRequest(gpu, one));
  const operands = Object.fromEntries(
    operandTensors(problem.op).map((which) => [which, shared.operand(which)]),
  );
  const copies = bench.cache === "hot"
    ? 1
    : Math.min(MOST_COPIES, 1 + Math.ceil(COLD_BYTES / Math.max(1, tensorBytes(problem, 4))));
  const { time, result } = await runPlan(
    gpu,
    plan,
    operands,
    convResult(problem),
    bench.protocol,
    copies,
  );
  const setup = caseSetup(bench, one, gpu.info.adapter);
  if (bench.check === "none") return caseRecord(setup, { plan, time, verdict: "none" });
  const checked = checkAgainst(await shared.reference(problem), result, plan.amplification);
  return caseRecord(setup, { plan, time, ...checked });
}

function planRequest(gpu: GpuDevice, one: Case): PlanRequest {
  return {
    problem: one.problem,
    dtype: "f32",
    layout: one.layout,
    filterLayout: filterLayoutFor(one.layout),
    epilogue: NO_EPILOGUE,
    algorithm: one.algorithm,
    limits: gpu.limits,
    workgroupsInFlight: gpu.workgroupsInFlight,
    ...(one.policy === "auto" ? {} : { policy: one.policy }),
  };
}

function caseSetup(bench: BenchPlan, one: Case, device: string): CaseSetup {
  const { problem, layout, algorithm } = one;
  return {
    ...convSetup(problem, { layout, filterLayout: filterLayoutFor(layout) }),
    algorithm,
    device,
    made: { fill: bench.fill, seed: bench.seed },
  };
}
