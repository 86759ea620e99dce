import {
  arithmeticPrecision,
  BF16,
  F16,
  F32,
  F64,
  I32,
  type Precision,
} from "../accuracy/precision.ts";
import { doubleNoise, projectionNoise } from "../accuracy/projection.ts";
import { NO_ERRORS_YARDSTICK } from "../accuracy/yardstick.ts";
import { shortlistProduct } from "../algorithms/cost/shortlist.ts";
import type { GemmRequest } from "../algorithms/gemm/operands.ts";
import { tryPlanGemm } from "../algorithms/gemm/plan.ts";
import type { Plan } from "../algorithms/plan.ts";
import type { Planned } from "../algorithms/refusal.ts";
import { defined } from "../defined.ts";
import { InputRangeError } from "../errors.ts";
import {
  type GemmArithmetic,
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
import { type GemmInputs, referenceGemm } from "../reference/gemm.ts";
import { projectGemm, projectIntegers } from "../reference/gemm_projection.ts";
import { gemmYardstick } from "../simulate/gemm_yardstick.ts";
import type { CaseTraits } from "./case_record.ts";
import { type ResultSums, sampleCount } from "./coverage.ts";
import { admitSums } from "./integers.ts";
import type {
  HostOperands,
  Planning,
  Subject,
  SubjectPlanner,
  SubjectReference,
  SubjectTensor,
  SubjectTolerance,
} from "./subject.ts";

/** A sample reads B across its rows, so it is a quarter of what a convolution's may be. */
const SAMPLE_SHARE = 4;
/** Sums in twice the precision of f64 take as much longer. */
const COMPENSATED_SHARE = 10;

/** In what results are summed and stored, but for sums in f16 and results in f32. */
const PRECISIONS: Readonly<Record<GemmDType, Precision>> = {
  f32: F32,
  f16: F16,
  bf16: BF16,
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
    outDtype === "f32" ? { ...own, result: "f32" } : own,
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
  { math, schedule, device, limits, matrixUnits, tuning, sizes }: Planning,
): GemmRequest {
  return {
    problem,
    dtype,
    ...(accumulate === undefined || accumulate === "f32" ? {} : { accumulate }),
    ...(outDtype === undefined || outDtype === dtype ? {} : { outDtype }),
    ...defined({ math, schedule }),
    limits,
    ...defined({ matrixUnits, device, tuning, sizes }),
  };
}

/** A product and its arithmetic. */
interface Product {
  /** As it is asked for. */
  readonly asked: GemmProblem;
  /** With factors as kernels hold them: in f32, of f32 and f16. */
  readonly problem: GemmProblem;
  readonly arithmetic: Partial<GemmArithmetic> & Pick<GemmArithmetic, "dtype">;
}

/** A matrix product as what a run computes. */
export function gemmSubject(
  asked: GemmProblem,
  arithmetic: Partial<GemmArithmetic> & Pick<GemmArithmetic, "dtype">,
  planRequest: (request: GemmRequest) => Planned<Plan> = tryPlanGemm,
): Subject {
  const { dtype } = arithmetic;
  const problem = dtype === "f64" || dtype === "i8" ? asked : {
    ...asked,
    alpha: Math.fround(asked.alpha),
    beta: Math.fround(asked.beta),
  };
  const product = { asked, problem, arithmetic };
  const { m, n, batch, activation } = problem;
  // A residual is added behind the activation, so it is left out, too.
  const linear = { ...asked, activation: "none", residual: false } as const;
  return {
    asked: { gemm: problem },
    traits: gemmTraits(product),
    operands: gemmOperands(problem).map((which) => gemmTensor(problem, which, arithmetic)),
    result: gemmTensor(problem, "output", arithmetic),
    shape: [batch, m, n],
    axes: [0, 1, 2],
    activation,
    ...(activation === "none" ? {} : { linear: gemmSubject(linear, arithmetic, planRequest) }),
    sums: gemmSums(product),
    planner: {
      plan: (planning) => planRequest(gemmRequest(asked, arithmetic, planning)),
      shortlist: (planning, count) =>
        planRequest === tryPlanGemm
          ? shortlistProduct(gemmRequest(asked, arithmetic, planning), count)
          : [],
      rivals: () => [],
      unsupported: () => undefined,
      ...(dtype === "i8" ? { admit: admitGemm(product) } : {}),
    },
    reference: gemmReference(product),
    tolerance: gemmTolerance(product),
  };
}

function gemmTraits({ asked, arithmetic }: Product): CaseTraits {
  const { dtype, accumulate = "f32", outDtype } = arithmetic;
  const epilogue = printEpilogue(asked);
  return {
    problem: printGemm(asked),
    op: "gemm",
    flops: gemmFlops(asked),
    dtype,
    ...(accumulate === "f32" ? {} : { accumulate }),
    ...(outDtype === undefined || outDtype === dtype ? {} : { outDtype }),
    layout: asked.transpose,
    ...(epilogue === "" ? {} : { epilogue }),
  };
}

function gemmSums({ problem: { m, k, batch }, arithmetic: { dtype } }: Product): ResultSums {
  const cost = dtype === "f64" ? COMPENSATED_SHARE : 1;
  return {
    length: k,
    cost,
    members: m,
    sample: sampleCount(m * batch, SAMPLE_SHARE * cost * k),
    strata: { channelAxis: 1, run: m, inner: false },
  };
}

/** Refuses int8 products whose sums may leave 32 bits. */
function admitGemm(product: Product): NonNullable<SubjectPlanner["admit"]> {
  const { m, n, k, batch, alpha, beta, bias, residual } = product.problem;
  return admitSums({ shape: [batch, m, n], sums: gemmSums(product) }, {
    doing: "Cannot multiply",
    length: k,
    factor: alpha,
    operands: ["a", "b"],
    added: [
      ...(beta === 0 ? [] : [["c", beta] as const]),
      ...(bias === "none" ? [] : [["bias", 1] as const]),
      ...(residual ? [["residual", 1] as const] : []),
    ],
  });
}

function gemmReference({ asked, problem, arithmetic: { dtype } }: Product): SubjectReference {
  const integers = dtype === "i8";
  const compensated = dtype === "f64";
  const { m, n, batch } = problem;
  const read = (operands: HostOperands) =>
    Object.fromEntries(gemmOperands(problem).map((which) => [which, operands[which]]));
  return {
    of: (operands, options) =>
      referenceGemm(problem, read(operands), { ...options, integers, compensated }),
    compute: async (operands, onProgress) => {
      const count = batch * m * n;
      if (count >= 2 ** 31) {
        throw new InputRangeError(
          `Cannot multiply: the result has ${count} elements, 2^31 are too many`,
        );
      }
      const options = { integers, onProgress };
      return (await referenceGemm(asked, read(operands), options)).values;
    },
    project: async (operands, seed) =>
      integers
        ? projectIntegers(problem, operands as GemmInputs, seed)
        : await projectGemm(problem, operands as GemmInputs, { seed }),
  };
}

function gemmTolerance({ problem, arithmetic }: Product): SubjectTolerance {
  const { dtype } = arithmetic;
  return {
    precision: (sums) => gemmPrecision(arithmetic, sums),
    grouping: () => ({ rowAxis: 1, names: ["row", "product"], otherInner: false, tile: [1] }),
    floors: () => undefined,
    yardstick: (operands, sums, seed) =>
      dtype === "i8" ? NO_ERRORS_YARDSTICK : gemmYardstick({
        problem,
        operands: operands as GemmInputs,
        arithmetic: sums,
        precision: gemmPrecision(arithmetic, sums),
        seed,
      }),
    noise(sample, sums) {
      const precision = gemmPrecision(arithmetic, sums);
      return dtype === "f64"
        ? doubleNoise(sample, problem, precision)
        : projectionNoise(sample, precision);
    },
    mixed: () => undefined,
    where: ([one, , column]) =>
      `the projection over rows at [${problem.batch === 1 ? "" : `${one},`}·,${column}]`,
  };
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
