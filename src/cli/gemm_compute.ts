import { planGemm } from "../algorithms/gemm/plan.ts";
import { caseRecord, type CaseSetup } from "../run/case_record.ts";
import { type GemmChoice, gemmRequest, gemmSetup } from "../run/gemm_case.ts";
import { refuseOverflow } from "../run/gemm_range.ts";
import {
  defaultFill,
  fillGemmOperand,
  type GemmData,
  gemmFeatures,
  type GemmOperand,
  gemmReads,
  gemmResult,
} from "../run/gemm_operands.ts";
import type { PlanOperands } from "../run/gpu_case.ts";
import { checkGemmResult, linearGemm } from "../run/gemm_projection.ts";
import { timeRecord } from "../run/timing.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { gemmElement, gemmShape } from "../problem/gemm_problem.ts";
import { type GemmInputs, referenceGemm } from "../reference/gemm.ts";
import { CPU_DEVICE } from "../report/environment.ts";
import { convertDType } from "../tensor/convert.ts";
import type { DType } from "../tensor/dtype.ts";
import { elementCount, tensor } from "../tensor/tensor.ts";
import { deviceOption } from "./device_model.ts";
import type { GemmOptions } from "./gemm_options.ts";
import type { GemmSubject } from "./gemm_subject.ts";
import { progress } from "./output.ts";
import { type Computed, cpuNote, runJob } from "./run_job.ts";
import { variantOption } from "./variant_options.ts";

/**
 * Computes a product on the GPU. Without a check, data of files goes to the device in chunks.
 *
 * @throws {UnsupportedError} where there is no GPU, or it does not suffice.
 */
export async function multiplyOnGpu(
  subject: GemmSubject,
  options: GemmOptions,
): Promise<Computed<DType>> {
  const { problem } = subject;
  const { dtype, check, seed } = options;
  const mode = check === "none" ? "sample" : check;
  const result = gemmResult(problem, dtype);
  if (result.count === 0) return await multiplyOnCpu(subject, options);
  await refuseOverflow({ problem, dtype, check }, () => chunked(subject, options));
  return await runJob({
    features: gemmFeatures(dtype),
    result,
    plan: (gpu) => planGemm(gemmRequest(gpu, problem, options, choiceOf(options))),
    read: () => readGemm(subject, options),
    chunks: () => chunked(subject, options),
    linearPlan: (gpu) => {
      const linear = linearGemm(problem, dtype, mode);
      return linear && planGemm(gemmRequest(gpu, linear, options, choiceOf(options)));
    },
    check: (operands, result, onProgress, made) =>
      checkGemmResult({
        problem,
        dtype,
        operands,
        result,
        ...made,
        mode,
        seed,
        onProgress,
      }),
    record: (device, outcome) => caseRecord(setup(subject, options, device), outcome),
  }, { ...options, runs: options.runs ?? 5 });
}

/** Computes a product with the FP64 reference and rounds the result to its dtype. */
export async function multiplyOnCpu(
  subject: GemmSubject,
  options: GemmOptions,
): Promise<Computed<DType>> {
  const { problem } = subject;
  const count = elementCount(gemmShape(problem, "output"));
  if (count >= 2 ** 31) {
    throw new InputRangeError(
      `Cannot multiply: the result has ${count} elements, 2^31 are too many`,
    );
  }
  const operands = await readGemm(subject, options);
  const shown = progress();
  const start = performance.now();
  const { values, shape } = await referenceGemm(problem, operands as GemmInputs, {
    integers: options.dtype === "i8",
    onProgress: (fraction) => shown.update(`computing ${(100 * fraction).toFixed(0)} %`),
  });
  const time = timeRecord([(performance.now() - start) * 1e6], 1, "wall");
  shown.done();
  const dtype = gemmElement(options.dtype, "output");
  const result = convertDType(tensor("f64", shape, new Float64Array(values)), dtype).data;
  const message = cpuNote(shape, dtype);
  const record = caseRecord(setup(subject, options, CPU_DEVICE.adapter), {
    time,
    verdict: "none",
    message,
  });
  return { record, result };
}

function setup({ problem }: GemmSubject, options: GemmOptions, device: string): CaseSetup {
  return {
    ...gemmSetup(problem, options),
    algorithm: options.device === "cpu" ? "reference" : "gemm",
    device,
    ...(options.size === undefined ? {} : { made: { fill: fillOf(options), seed: options.seed } }),
  };
}

/** What the options choose in place of the planner. */
export function choiceOf(options: GemmOptions): GemmChoice {
  const { policy, splits, balance } = options;
  const variant = variantOption(options);
  if (variant?.halfTile && (options.dtype !== "f16" || options.accumulate === "f16")) {
    throw new InputTypeError(
      "Cannot multiply: half-tile is of f16 products that are summed in f32",
    );
  }
  return {
    policy,
    ...(splits === undefined ? {} : { splits }),
    ...deviceOption(options.deviceModel),
    balance,
    ...(variant === undefined ? {} : { variant }),
  };
}

/** The fill of made data. */
export function fillOf({ fill, dtype }: GemmOptions) {
  return fill ?? defaultFill(dtype);
}

/** The operands in memory: read from their files, or made. */
export async function readGemm(
  { problem, files }: GemmSubject,
  options: GemmOptions,
): Promise<GemmData> {
  const operands: { -readonly [which in keyof GemmData]: GemmData[which] } = {};
  for (const which of gemmReads(problem)) {
    const file = files[which];
    operands[which] = file
      ? (await file.readAs(gemmElement(options.dtype, which))).data
      : made(problem, which, options);
  }
  return operands;
}

/** The operands as streams of chunks; made ones whole. */
function chunked({ problem, files }: GemmSubject, options: GemmOptions): PlanOperands {
  return Object.fromEntries(
    gemmReads(problem).map((which) => {
      const file = files[which];
      const element = gemmElement(options.dtype, which);
      return [which, file ? () => file.chunksAs(element) : made(problem, which, options)];
    }),
  );
}

function made(problem: GemmSubject["problem"], which: GemmOperand, options: GemmOptions) {
  return fillGemmOperand(problem, which, options.dtype, fillOf(options), options.seed);
}
