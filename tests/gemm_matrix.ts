/** Products to be checked on a device: every transpose, epilogue, arithmetic and policy on sizes that divide nothing. */
import type { GemmRequest } from "../src/algorithms/gemm/operands.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { policyFits } from "../src/algorithms/tile_candidates.ts";
import type { GpuDevice } from "../src/gpu/gpu_device.ts";
import type { Schedule } from "../src/algorithms/schedule.ts";
import { TILE_POLICIES } from "../src/kernels/policy.ts";
import {
  type GemmAccumulate,
  type GemmDType,
  type GemmProblem,
  gemmProblem,
  TRANSPOSES,
} from "../src/problem/gemm_problem.ts";
import { checkAgainst, computeReference } from "../src/run/check.ts";
import { gemmSubject } from "../src/run/gemm_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { runPlan } from "../src/run/executor.ts";
import type { HostData } from "../src/run/subject.ts";
import { defined } from "../src/defined.ts";

/** One step of the epilogue at a time, and all together. */
export const EPILOGUES: readonly Partial<GemmProblem>[] = [
  {},
  { alpha: -1.5 },
  { beta: 0.5 },
  { bias: "row" },
  { bias: "column" },
  { activation: "relu" },
  { residual: true },
  { alpha: 0.1, beta: -2, bias: "row", activation: "silu", residual: true },
  { alpha: 0.1, beta: -2, bias: "column", activation: "leaky-relu", residual: true },
];

/** The same in whole numbers, whose results keep within 32 bits. */
const INTEGER_EPILOGUES: readonly Partial<GemmProblem>[] = [
  {},
  { alpha: -3 },
  { beta: 2 },
  { bias: "row" },
  { bias: "column" },
  { activation: "relu" },
  { residual: true },
  { alpha: 611, beta: -2, bias: "row", activation: "relu", residual: true },
  { alpha: -797, beta: 2 ** 20, bias: "column", activation: "relu", residual: true },
];

/** Nothing divides the first two; fours divide the third and sixteens its depth, so that vectors are loaded and stored. */
export const SIZES = [[33, 35, 37], [70, 41, 129], [68, 44, 112]] as const;

/** A dtype and how it is multiplied. */
export interface Arithmetic {
  readonly dtype: GemmDType;
  readonly accumulate?: GemmAccumulate;
  readonly schedule?: Schedule;
  /** What a device needs for it. */
  readonly feature?: string;
}

export const ARITHMETIC: readonly Arithmetic[] = [
  { dtype: "f32" },
  { dtype: "f16", feature: "shader-f16" },
  { dtype: "f16", schedule: { halfTile: true }, feature: "shader-f16" },
  { dtype: "f16", accumulate: "f16", feature: "shader-f16" },
  { dtype: "bf16" },
  { dtype: "i8" },
  { dtype: "f64", feature: "shader-f64" },
];

export const FEATURES = ["shader-f16", "shader-f64"];

export function epiloguesOf(dtype: GemmDType): readonly Partial<GemmProblem>[] {
  return dtype === "i8" ? INTEGER_EPILOGUES : EPILOGUES;
}

/** What a product is planned with beside the defaults of {@linkcode multiply}; undefined leaves one to the planner. */
export type Choice =
  & { [field in Exclude<keyof GemmRequest, "schedule">]?: GemmRequest[field] | undefined }
  & { schedule?: { readonly [field in keyof Schedule]?: Schedule[field] | undefined } | undefined };

/** Runs a product once and compares all of it with the reference. */
export async function multiply(
  gpu: GpuDevice,
  init: Partial<GemmProblem> & Pick<GemmProblem, "m" | "n" | "k">,
  choice: Choice = {},
) {
  const problem = gemmProblem(init);
  const { dtype = "f32" } = choice;
  const asked = {
    sizes: "uniform" as const,
    ...choice,
    schedule: defined({ policy: "tiny", splits: 1, ...choice.schedule }),
  };
  const said: Partial<GemmRequest> = Object.fromEntries(
    Object.entries(asked).filter(([, value]) => value !== undefined),
  );
  const plan = planGemm({ limits: gpu.limits, ...said, problem, dtype });
  const fill = dtype === "i8" ? "int8" : dtype === "f64" ? "normal" : "uniform11";
  const subject = gemmSubject(problem, { dtype, outDtype: choice.outDtype });
  const operands = fillOperands(subject, fill, 7);
  const { result: data } = await runPlan(gpu, plan, operands, subject.result, 2);
  const result = data as HostData;
  if (result.length === 0) return { plan, result, checked: undefined };
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  return { plan, result, checked: checkAgainst(reference, result, plan.arithmetic) };
}

/** One of the matrix. */
export interface MatrixCase {
  readonly problem: Partial<GemmProblem> & Pick<GemmProblem, "m" | "n" | "k">;
  readonly choice: Choice;
}

/** Policies that the device runs, whichever way f64 operands lie. */
export function policiesOf(gpu: GpuDevice): string[] {
  // SwiftShader takes gigabytes to compile what the larger ones unroll.
  if (/swiftshader/i.test(gpu.info.adapter)) return ["tiny", "small"];
  const operand = { along: "depth", vector: 1, value: "f64" } as const;
  return TILE_POLICIES.filter((policy) => policyFits(policy, gpu.limits, operand, operand))
    .map(({ name }) => name);
}

/**
 * The matrix for one arithmetic and policy.
 *
 * @param share Every how manieth epilogue: compiling is what takes time. Transposes, sizes and policies take
 * turns; from 9 on each transpose has one epilogue on one size.
 */
export function* gemmMatrix(
  { feature: _, ...arithmetic }: Arithmetic,
  policy: string,
  share: number,
): Generator<MatrixCase> {
  const turn = TILE_POLICIES.findIndex(({ name }) => name === policy);
  for (const [way, transpose] of TRANSPOSES.entries()) {
    for (const [place, [m, n, k]] of SIZES.entries()) {
      if (share >= 9 && place !== (way + turn) % SIZES.length) continue;
      const epilogues = epiloguesOf(arithmetic.dtype)
        .filter((_, i) => (i + way + 4 * place + 2 * turn) % share === 0);
      for (const epilogue of epilogues) {
        const problem = { m, n, k, transpose, ...epilogue };
        for (const splits of [1, 3]) {
          yield {
            problem,
            choice: { ...arithmetic, schedule: { ...arithmetic.schedule, policy, splits } },
          };
        }
      }
    }
  }
}
