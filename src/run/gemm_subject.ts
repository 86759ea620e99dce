import { arithmeticPrecision, F16, F32, F64, I32, type Precision } from "../accuracy/precision.ts";
import { NO_ERRORS_YARDSTICK } from "../accuracy/yardstick.ts";
import type { GemmRequest } from "../algorithms/gemm/operands.ts";
import { tryPlanGemm } from "../algorithms/gemm/plan.ts";
import type { Plan } from "../algorithms/plan.ts";
import type { Planned } from "../algorithms/refusal.ts";
import { defined } from "../defined.ts";
import { InputRangeError } from "../errors.ts";
import type { GemmArithmetic } from "../problem/gemm_arithmetic.ts";
import {
  type GemmDType,
  gemmElement,
  gemmFlops,
  gemmOperands,
  type GemmProblem,
  gemmShape,
  type GemmTensor,
} from "../problem/gemm_problem.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { referenceGemm } from "../reference/gemm.ts";
import type { GemmInputs } from "../reference/gemm_conv.ts";
import { projectGemm, projectIntegers } from "../reference/gemm_projection.ts";
import { gemmYardstick } from "../simulate/gemm_yardstick.ts";
import { sampleCount } from "./coverage.ts";
import { admitSums } from "./integer_overflow.ts";
import { gemmNoise } from "./projection_noise.ts";
import type { HostOperands, Planning, Subject, SubjectTensor } from "./subject.ts";

/** A sample reads B across its rows, so it is a quarter of what a convolution's may be. */
const SAMPLE_SHARE = 4;
/** Sums in twice the precision of f64 take as much longer. */
const COMPENSATED_SHARE = 10;

/** In what results are summed and stored, but for sums in f16. */
const PRECISIONS: Readonly<Record<GemmDType, Precision>> = {
  f32: F32,
  f16: F16,
  f64: F64,
  i8: I32,
};

/** What errors of a product are measured by. */
function gemmPrecision(
  { dtype, outDtype }: Pick<GemmArithmetic, "dtype" | "outDtype">,
  arithmetic: PlanArithmetic,
): Precision {
  const own = PRECISIONS[dtype];
  return arithmeticPrecision(
    dtype === "f16" && outDtype === "f32" ? { ...own, result: "f32" } : own,
    arithmetic,
  );
}

function gemmTensor(
  problem: GemmProblem,
  role: GemmTensor,
  { dtype, outDtype }: Pick<GemmArithmetic, "dtype" | "outDtype">,
): SubjectTensor {
  return { role, dtype: gemmElement(dtype, role, outDtype), shape: gemmShape(problem, role) };
}

/** The request that plans a product. */
export function gemmRequest(
  problem: GemmProblem,
  { dtype, accumulate, outDtype }: Partial<GemmArithmetic> & Pick<GemmArithmetic, "dtype">,
  { math, policy, splits, flush, balance, variant, device, limits, matrixUnits, sizes }: Planning,
): GemmRequest {
  return {
    problem,
    dtype,
    ...(accumulate === undefined || accumulate === "f32" ? {} : { accumulate }),
    ...(outDtype === undefined || dtype !== "f16" ? {} : { outDtype }),
    ...defined({ math, policy, splits, flush, balance, variant }),
    limits,
    ...defined({ matrixUnits, device, sizes }),
  };
}

/** A matrix product as what a run computes. */
export function gemmSubject(
  asked: GemmProblem,
  arithmetic: Partial<GemmArithmetic> & Pick<GemmArithmetic, "dtype">,
  planRequest: (request: GemmRequest) => Planned<Plan> = tryPlanGemm,
): Subject {
  const { dtype, accumulate = "f32", outDtype } = arithmetic;
  // Factors as kernels hold them: in f32, of f32 and f16.
  const problem = dtype === "f64" || dtype === "i8" ? asked : {
    ...asked,
    alpha: Math.fround(asked.alpha),
    beta: Math.fround(asked.beta),
  };
  const { m, n, k, batch, activation } = problem;
  const epilogue = printEpilogue(asked);
  const integers = dtype === "i8";
  const sumCost = dtype === "f64" ? COMPENSATED_SHARE : 1;
  const inputsOf = (operands: HostOperands) => operands as GemmInputs;
  const subject: Subject = {
    asked: { gemm: problem },
    traits: {
      problem: printGemm(asked),
      op: "gemm",
      flops: gemmFlops(asked),
      dtype,
      ...(accumulate === "f32" ? {} : { accumulate }),
      ...(outDtype === undefined || outDtype === dtype ? {} : { outDtype }),
      layout: asked.transpose,
      ...(epilogue === "" ? {} : { epilogue }),
    },
    title: printGemm(asked),
    algorithm: "gemm",
    features: dtype === "f16" ? ["shader-f16"] : dtype === "f64" ? ["shader-f64"] : [],
    operands: gemmOperands(problem).map((which) => gemmTensor(problem, which, arithmetic)),
    result: gemmTensor(problem, "output", arithmetic),
    shape: [batch, m, n],
    axes: [0, 1, 2],
    activation,
    // A residual is added behind the activation, so it is left out, too.
    ...(activation === "none" ? {} : {
      linear: gemmSubject(
        { ...asked, activation: "none", residual: false },
        arithmetic,
        planRequest,
      ),
    }),
    length: k,
    members: m,
    sumCost,
    sample: sampleCount(m * batch, SAMPLE_SHARE * sumCost * k),
    strata: { channelAxis: 1, run: m, inner: false },
    exact: integers,
    plan: (planning) => planRequest(gemmRequest(asked, arithmetic, planning)),
    reference: (operands, options) =>
      referenceGemm(problem, inputsOf(operands), {
        ...options,
        integers,
        compensated: dtype === "f64",
      }),
    compute: async (operands, onProgress) => {
      const count = batch * m * n;
      if (count >= 2 ** 31) {
        throw new InputRangeError(
          `Cannot multiply: the result has ${count} elements, 2^31 are too many`,
        );
      }
      return (await referenceGemm(asked, inputsOf(operands), { integers, onProgress })).values;
    },
    precision: (sums) => gemmPrecision(arithmetic, sums),
    grouping: () => ({ rowAxis: 1, names: ["row", "product"], otherInner: false, tile: [1] }),
    floors: () => undefined,
    yardstick: (operands, sums, seed) =>
      integers ? NO_ERRORS_YARDSTICK : gemmYardstick({
        problem,
        operands: inputsOf(operands),
        arithmetic: sums,
        precision: gemmPrecision(arithmetic, sums),
        seed,
      }),
    project: async (operands, seed) =>
      integers
        ? projectIntegers(problem, inputsOf(operands), seed)
        : await projectGemm(problem, inputsOf(operands), { seed }),
    noise: (sample, sums) => gemmNoise(sample, problem, dtype, gemmPrecision(arithmetic, sums)),
    mixed: () => undefined,
    where: ([one, , column]) =>
      `the projection over rows at [${batch === 1 ? "" : `${one},`}·,${column}]`,
  };
  if (!integers) return subject;
  const { alpha, beta, bias, residual } = problem;
  const added = [
    ...(beta === 0 ? [] : [["c", beta] as const]),
    ...(bias === "none" ? [] : [["bias", 1] as const]),
    ...(residual ? [["residual", 1] as const] : []),
  ];
  const sum = {
    doing: "Cannot multiply",
    length: k,
    factor: alpha,
    operands: ["a", "b"],
    added,
  } as const;
  return { ...subject, admit: admitSums(subject, sum) };
}

/** What follows the sum, in order; empty where nothing does. */
export function printEpilogue(problem: GemmProblem): string {
  const { alpha, beta, bias, activation, residual } = problem;
  return [
    ...(alpha === 1 ? [] : [`alpha ${alpha}`]),
    ...(beta === 0 ? [] : [`beta ${beta}`]),
    ...(bias === "none" ? [] : [`${bias} bias`]),
    ...(activation === "none" ? [] : [activation]),
    ...(residual ? ["residual"] : []),
  ].join(", ");
}
