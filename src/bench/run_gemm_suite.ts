import { planGemm } from "../algorithms/gemm/plan.ts";
import type { GpuDevice } from "../gpu/device.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import type { CaseRecord } from "../report/record.ts";
import type { FillKind } from "../tensor/fill.ts";
import { caseRecord, type CaseSetup } from "../run/case_record.ts";
import { eachCase } from "./each_case.ts";
import { type GemmChoice, gemmRequest, gemmSetup } from "../run/gemm_case.ts";
import type { CheckMode } from "../run/coverage.ts";
import type { GemmArithmetic } from "../problem/gemm_arithmetic.ts";
import { fillGemm, gemmResult } from "../run/gemm_operands.ts";
import { refuseOverflow } from "../run/gemm_range.ts";
import { runPlan } from "../run/gpu_case.ts";
import { checkGemmResult, linearGemm } from "../run/gemm_projection.ts";
import type { TimingProtocol } from "../run/timing.ts";

/** What a run over products covers. */
export interface GemmBench extends GemmArithmetic, GemmChoice {
  readonly problems: readonly GemmProblem[];
  readonly check: CheckMode | "none";
  readonly fill: FillKind;
  readonly seed: number;
  readonly protocol: TimingProtocol;
}

/**
 * Runs every product and yields its record at once. A failing one becomes a record with the verdict `error`.
 *
 * @param open Opens the device: at the start, and again after it was lost.
 */
export async function* runGemmSuite(
  bench: GemmBench,
  open: () => Promise<GpuDevice>,
  onCase: (index: number, count: number, what: string) => void,
): AsyncGenerator<CaseRecord, void, undefined> {
  const { problems, fill, seed } = bench;
  const cases = function* () {
    for (const [index, problem] of problems.entries()) {
      onCase(index + 1, problems.length, printGemm(problem));
      const setup = (device: string): CaseSetup => ({
        ...gemmSetup(problem, bench),
        algorithm: "gemm",
        device,
        made: { fill, seed },
      });
      yield {
        run: async function* (gpu: GpuDevice) {
          yield await runCase(gpu, bench, problem, setup(gpu.info.adapter));
        },
        failed: (device: string, message: string) => [
          caseRecord(setup(device), { verdict: "error", message }),
        ],
      };
    }
  };
  yield* eachCase(cases(), open);
}

async function runCase(
  gpu: GpuDevice,
  bench: GemmBench,
  problem: GemmProblem,
  setup: CaseSetup,
): Promise<CaseRecord> {
  const { dtype, check, fill, seed } = bench;
  const plan = planGemm(gemmRequest(gpu, problem, bench, bench));
  if (plan.passes.length === 0) {
    return caseRecord(setup, { plan, verdict: "none", message: "the result is empty" });
  }
  const operands = fillGemm(problem, dtype, fill, seed);
  await refuseOverflow({ problem, dtype, check }, () => operands);
  const wanted = gemmResult(problem, dtype);
  const { time, result, readSeconds } = await runPlan(
    gpu,
    plan,
    operands,
    wanted,
    bench.protocol,
  );
  if (check === "none") return caseRecord(setup, { plan, time, verdict: "none" });
  const linear = linearGemm(problem, dtype, check);
  const checked = await checkGemmResult({
    problem,
    dtype,
    arithmetic: plan.arithmetic,
    operands,
    result,
    linear: linear && (await runPlan(
      gpu,
      planGemm(gemmRequest(gpu, linear, bench, bench)),
      operands,
      wanted,
      { samples: 1, fillMs: 0 },
    )).result,
    readSeconds,
    mode: check,
    seed,
  });
  return caseRecord(setup, { plan, time, ...checked });
}
