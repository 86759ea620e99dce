/** Every output of a product is checked: its random projection is held against the reference's. */
import type { GemmDType, GemmProblem } from "../problem/gemm_problem.ts";
import { type GemmInputs, referenceGemm } from "../reference/gemm.ts";
import { projectGemm, projectIntegers } from "../reference/gemm_projection.ts";
import type { Checked } from "./check.ts";
import type { CheckMode } from "./coverage.ts";
import {
  checkGemm,
  computeGemmReference,
  gemmCoverage,
  type GemmReferenceRequest,
  gemmYardstickOf,
  heldProblem,
} from "./gemm_check.ts";
import { gemmNoise } from "./projection_noise.ts";
import {
  activatedReason,
  checkProjected,
  needsLinear,
  type Outputs,
  type ProjectedResult,
  type ResultProjection,
  UNIT,
  withProjection,
} from "./projected.ts";

/**
 * Projects the reference of a product; nothing where the check is to be whole or a sample.
 *
 * @throws as `projectGemm()`.
 */
export async function gemmProjection(
  request: GemmReferenceRequest,
): Promise<ResultProjection | undefined> {
  if (gemmCoverage(request) !== "projected") return undefined;
  const start = performance.now();
  const { dtype, seed } = request;
  const problem = heldProblem(request.problem, dtype);
  const operands = request.operands as GemmInputs;
  const linear = withoutActivation(problem);
  if (dtype === "i8") return integerProjection(problem, linear, operands, seed, start);
  const projection = await projectGemm(linear, operands, { seed });
  const referenceSeconds = (performance.now() - start) / 1000;
  const { k, batch } = problem;
  const skip = problem.activation !== "none" && problem.residual ? operands.residual! : undefined;
  const outputs: Outputs = {
    activation: problem.activation,
    stored: dtype === "f16" ? Math.f16round : dtype === "f32" ? Math.fround : Number,
    storedUnit: dtype === "f16" ? 2 ** -11 : dtype === "f32" ? UNIT : 2 ** -53,
    length: k,
    offsetOf: (index) => index,
    where: ([one, , column]) =>
      `the projection over rows at [${batch === 1 ? "" : `${one},`}·,${column}]`,
    reference: (indices) => referenceGemm(linear, operands, { indices }),
    residual: (offset) => skip?.[offset] ?? 0,
  };
  return {
    check: (checked, projected) => {
      const { arithmetic } = projected;
      const asked = { problem: linear, dtype, operands, seed };
      const yardstick = (problem.activation === "none" ? projected.yardstick : undefined) ??
        gemmYardstickOf(asked, arithmetic);
      const noise = gemmNoise(yardstick.sample, problem, dtype, arithmetic);
      return checkProjected(checked, projected, projection, outputs, { noise, referenceSeconds });
    },
  };
}

/** What of an activated product is projected: the same without activation and residual; nothing where it is not. */
export function linearGemm(
  problem: GemmProblem,
  dtype: GemmDType,
  mode: CheckMode,
): GemmProblem | undefined {
  return needsLinear(problem.activation, gemmCoverage({ problem, dtype, mode, linear: true }))
    ? withoutActivation(problem)
    : undefined;
}

/** A residual is added behind the activation, so it is left out, too. */
function withoutActivation(problem: GemmProblem): GemmProblem {
  return problem.activation === "none"
    ? problem
    : { ...problem, activation: "none", residual: false };
}

/** Computes the reference of a product, projects it where that pays, and checks a result. */
export async function checkGemmResult(
  request: Omit<GemmReferenceRequest, "linear"> & ProjectedResult,
): Promise<Checked> {
  const { problem, dtype, arithmetic, result, linear, readSeconds } = request;
  const asked = { ...request, linear: problem.activation === "none" || linear !== undefined };
  const reference = await computeGemmReference(asked);
  const checked = checkGemm(reference, result, arithmetic);
  const projection = await gemmProjection(asked);
  const made = {
    result,
    linear,
    arithmetic,
    yardstick: dtype === "i8" ? undefined : gemmYardstickOf(reference, arithmetic),
    readSeconds,
  };
  return await projection?.check(checked, made) ?? checked;
}

function integerProjection(
  problem: GemmProblem,
  linear: GemmProblem,
  operands: GemmInputs,
  seed: number,
  start: number,
): ResultProjection {
  const projection = projectIntegers(linear, operands, seed);
  const referenceSeconds = (performance.now() - start) / 1000;
  const { m, n, activation } = problem;
  return {
    check: (checked, { result, linear: given, readSeconds }) => {
      const start = performance.now();
      const own = (activation === "none" ? result : given) as Int32Array;
      const sums = projection.project(own);
      const wrong = sums.findIndex((sum, place) => sum !== projection.expected[place]);
      const reasons: string[] = [];
      if (wrong >= 0) {
        const one = Math.floor(wrong / n);
        reasons.push(
          `the projection over rows at [${problem.batch === 1 ? "" : `${one},`}·,${wrong % n}] ` +
            `differs from the reference's`,
        );
      }
      if (activation !== "none") {
        const skip = problem.residual ? operands.residual as Int32Array : undefined;
        const values = result as Int32Array;
        const place = values.findIndex((value, i) =>
          value !== ((Math.max(0, own[i]!) + (skip?.[i] ?? 0)) | 0)
        );
        if (place >= 0) reasons.push(activatedReason(place, activation));
      }
      return Promise.resolve(withProjection(checked, reasons, {
        places: sums.length,
        members: m,
        max_ratio: wrong >= 0 ? Infinity : 0,
        limit: 0,
        patch_rms: 0,
        patch_limit: 0,
        size: 0,
        masked: 0,
        masked_checked: 0,
        ...(activation === "none" ? {} : { activated: own.length }),
        reference_seconds: referenceSeconds,
        seconds: (performance.now() - start) / 1000,
        ...(readSeconds === undefined ? {} : { read_seconds: readSeconds }),
      }));
    },
  };
}
