import { modelOf } from "../algorithms/device/h200.ts";
import { planConv } from "../algorithms/planner.ts";
import { caseRecord, type CaseSetup, convSetup } from "../run/case_record.ts";
import { convCoverage } from "../run/check.ts";
import type { CheckMode } from "../run/coverage.ts";
import { convResult, type OperandData, type PlanOperands } from "../run/gpu_case.ts";
import { fillOperand, type HostOperands, layoutOf, referenceInputs } from "../run/operands.ts";
import { checkConvResult } from "../run/conv_projection.ts";
import { needsLinear } from "../run/projected.ts";
import { timeRecord } from "../run/timing.ts";
import type { GpuDevice } from "../gpu/device.ts";
import type { TensorSource } from "../npy/mod.ts";
import {
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { Epilogue } from "../problem/epilogue.ts";
import { referenceConv } from "../reference/reference.ts";
import { CPU_DEVICE } from "../report/environment.ts";
import { elementCount } from "../tensor/tensor.ts";
import { fromCanonical } from "../run/canonical.ts";
import type { ConvOptions } from "./conv_options.ts";
import { planningOptions } from "./problem_options.ts";
import { progress } from "./output.ts";
import { type Computed, cpuNote, runJob } from "./run_job.ts";
import type { Subject } from "./subject.ts";
import { isOutdated, noteOutdated, readTuning, tuningOf } from "./tuning_options.ts";

type Role = ConvTensor | "bias";

const DEFAULT_FILL = "uniform01";

/**
 * Computes a subject on the GPU. Without a check, data of files goes to the device in chunks.
 *
 * @throws {UnsupportedError} where there is no GPU, or it does not suffice.
 */
export async function computeOnGpu(
  subject: Subject,
  options: ConvOptions,
): Promise<Computed<"f32">> {
  if (hasEmptyResult(subject)) return await computeOnCpu(subject, options);
  const { problem, layout, filterLayout, epilogue } = subject;
  const tuned = options.algorithm === "auto" ? readTuning(options.tuning) : undefined;
  const planned = (gpu: GpuDevice, epilogue: Epilogue) => {
    const tuning = tuningOf(tuned, gpu);
    const planning = planningOptions(options);
    return planConv({
      problem,
      dtype: options.dtype,
      layout,
      filterLayout,
      epilogue,
      algorithm: options.algorithm,
      limits: gpu.limits,
      ...(tuning === undefined ? {} : { tuning }),
      ...planning,
      device: modelOf(gpu.workgroupsInFlight, planning.device),
    });
  };
  return await runJob({
    result: convResult(problem),
    plan: (gpu) => {
      const plan = planned(gpu, epilogue);
      noteOutdated(tuned, isOutdated(plan) ? 1 : 0);
      return plan;
    },
    linearPlan: (gpu) => {
      const coverage = convCoverage({ ...subject, mode: checkMode(options), linear: true });
      return needsLinear(epilogue.activation, coverage)
        ? planned(gpu, { ...epilogue, activation: "none" })
        : undefined;
    },
    read: () => readOperands(subject, options),
    chunks: () => chunkedOperands(subject, options),
    check: (operands, result, onProgress, made) =>
      checkConvResult({
        ...subject,
        ...made,
        operands,
        result,
        mode: checkMode(options),
        seed: options.seed,
        onProgress,
      }),
    record: (device, outcome) => caseRecord(caseSetup(subject, options, device), outcome),
  }, options);
}

/** Computes a subject with the FP64 reference and rounds the result to f32. */
export async function computeOnCpu(
  subject: Subject,
  options: ConvOptions,
): Promise<Computed<"f32">> {
  const { problem, epilogue, layout, filterLayout } = subject;
  const operands = await readOperands(subject, options);
  const shown = progress();
  const start = performance.now();
  const reference = await referenceConv(problem, referenceInputs(problem, operands, subject), {
    ...(problem.op === "fwd" ? { epilogue } : {}),
    onProgress: (fraction) => shown.update(`computing ${(100 * fraction).toFixed(0)} %`),
  });
  const time = timeRecord([(performance.now() - start) * 1e6], 1, "wall");
  shown.done();
  const which = resultTensor(problem.op);
  const result = fromCanonical(
    reference.values,
    reference.shape,
    layoutOf(which, { layout, filterLayout }),
  );
  const setup = caseSetup(subject, options, CPU_DEVICE.adapter);
  const message = cpuNote(reference.shape, "f32");
  return { record: caseRecord(setup, { time, verdict: "none", message }), result };
}

function checkMode({ check }: ConvOptions): CheckMode {
  return check === "none" ? "sample" : check;
}

/** Whether there is nothing to compute. */
function hasEmptyResult({ problem }: Subject): boolean {
  return elementCount(tensorShape(problem, resultTensor(problem.op))) === 0;
}

function caseSetup(subject: Subject, options: ConvOptions, device: string): CaseSetup {
  const { problem, layout, filterLayout } = subject;
  const made = { fill: options.fill ?? DEFAULT_FILL, seed: options.seed };
  return {
    ...convSetup(problem, { layout, filterLayout }),
    algorithm: options.device === "cpu" ? "reference" : options.algorithm,
    device,
    ...(options.problem === undefined ? {} : { made }),
  };
}

/** The operands in memory: read from their files, or made. */
async function readOperands(subject: Subject, options: ConvOptions): Promise<HostOperands> {
  const operands: Partial<Record<Role, Float32Array<ArrayBuffer>>> = {};
  for (const which of operandTensors(subject.problem.op)) {
    const file = subject.files[which];
    operands[which] = file ? (await file.readAs("f32")).data : made(subject, options, which);
  }
  if (subject.bias) operands.bias = (await subject.bias.readAs("f32")).data;
  return operands;
}

/** The operands as streams of chunks; made ones whole. */
function chunkedOperands(subject: Subject, options: ConvOptions): PlanOperands {
  const chunks = (file: TensorSource) => () => file.chunksAs("f32");
  const operands: Partial<Record<Role, OperandData>> = {};
  for (const which of operandTensors(subject.problem.op)) {
    const file = subject.files[which];
    operands[which] = file ? chunks(file) : made(subject, options, which);
  }
  if (subject.bias) operands.bias = chunks(subject.bias);
  return operands;
}

function made(subject: Subject, options: ConvOptions, which: ConvTensor) {
  return fillOperand(subject.problem, which, subject, options.fill ?? DEFAULT_FILL, options.seed);
}
