import { isInputError } from "../../src/errors.ts";
import { planGemm } from "../../src/algorithms/gemm/plan.ts";
import type { Plan } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import { checkAgainst, computeReference } from "../../src/run/check.ts";
import { convResult, convSubject } from "../../src/run/conv_subject.ts";
import { gemmSubject } from "../../src/run/gemm_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { HostData, HostOperands } from "../../src/run/subject.ts";
import { UnsupportedError } from "../../src/errors.ts";
import { type GpuDevice, openDevice } from "../../src/gpu/device.ts";
import { resultTensor, tensorShape } from "../../src/problem/conv_problem.ts";
import { printDescriptor } from "../../src/problem/descriptor.ts";
import { stridesInLayout } from "../../src/tensor/layout.ts";
import { rowMajorStrides, unravelIndex } from "../../src/tensor/tensor.ts";
import { type Attack, Finding, messageFault, type Outcome } from "./attack.ts";
import { Draw } from "./draw.ts";
import { plainConv, plainGemm } from "../support/plain_reference.ts";
import { caseOf, type ConvCase, type GemmCase } from "./problem_cases.ts";
import { type Computed, holdFault, type Values } from "./problem_faults.ts";
import { makeSpecial, specialOf, withSpecial } from "./specials.ts";

async function computeConv(
  gpu: GpuDevice,
  one: ConvCase,
  spoil: (operands: HostOperands) => void,
): Promise<Computed | string> {
  const { problem, layout, filterLayout, epilogue, fill, seed, choice } = one;
  const plan = planned(() =>
    planConv({
      problem,
      dtype: "f32",
      layout,
      filterLayout,
      epilogue,
      ...choice,
      limits: gpu.limits,
    })
  );
  if (typeof plan === "string") return plan;
  const subject = convSubject({ problem, layout, filterLayout, epilogue });
  const operands = fillOperands(subject, fill, seed);
  spoil(operands);
  const { result } = await runPlan(gpu, plan, operands, convResult(problem), 2);
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  const shape = tensorShape(problem, resultTensor(problem.op));
  return {
    kernel: plan.kernel,
    result,
    reference,
    plain: plainConv(
      problem,
      operands as Parameters<typeof plainConv>[1],
      layout,
      filterLayout,
      epilogue,
    ),
    exactness: 1e-9,
    strides: stridesInLayout(shape, resultTensor(problem.op) === "filter" ? filterLayout : layout),
    dtype: "f32",
    roundoff: 2 ** -24,
    activation: epilogue.activation,
    tiled: plan.arithmetic.tiles !== undefined,
    check: (values) => checkAgainst(reference, values as HostData, plan.arithmetic),
  };
}

async function computeGemm(
  gpu: GpuDevice,
  one: GemmCase,
  spoil: (operands: HostOperands) => void,
): Promise<Computed | string> {
  const { problem, dtype, accumulate, fill, seed, choice } = one;
  const feature = dtype === "f16" ? "shader-f16" : dtype === "f64" ? "shader-f64" : undefined;
  if (feature !== undefined && !gpu.features.has(feature)) return `without ${feature}`;
  const plan = planned(() =>
    planGemm({
      problem,
      dtype,
      ...(accumulate === "f16" ? { accumulate } : {}),
      schedule: {
        policy: choice.policy,
        ...(choice.splits === undefined ? {} : { splits: choice.splits }),
      },
      sizes: choice.sizes,
      limits: gpu.limits,
    })
  );
  if (typeof plan === "string") return plan;
  const subject = gemmSubject(problem, { dtype });
  const operands = fillOperands(subject, fill, seed);
  spoil(operands);
  const run = await runPlan(gpu, plan, operands, subject.result, 2);
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  const exact = dtype === "i8" || dtype === "f64";
  const round = exact ? (factor: number) => factor : Math.fround;
  const factors = { alpha: round(problem.alpha), beta: round(problem.beta) };
  return {
    kernel: plan.kernel,
    result: run.result as Values,
    reference,
    plain: plainGemm({ ...problem, ...factors }, operands as Parameters<typeof plainGemm>[1]),
    exactness: dtype === "i8" ? 0 : 1e-9,
    strides: rowMajorStrides(reference.shape),
    dtype: subject.result.dtype,
    roundoff: dtype === "i8"
      ? 0
      : dtype === "f64"
      ? 2 ** -53
      : accumulate === "f16"
      ? 2 ** -11
      : 2 ** -24,
    activation: problem.activation,
    tiled: false,
    check: (values) => checkAgainst(reference, values as HostData, plan.arithmetic),
  };
}

/** A plan, or that it was refused in a sentence. */
function planned(make: () => Plan): Plan | string {
  try {
    return make();
  } catch (error) {
    if (!(isInputError(error) || error instanceof UnsupportedError)) throw error;
    const fault = messageFault(error.message);
    if (fault !== undefined) throw new Finding(fault);
    return "refused";
  }
}

/** Holds the FP64 reference to loops as plain as the definition. */
function holdReference({ reference, plain, exactness }: Computed): void {
  const { values } = reference;
  for (let i = 0; i < values.length; i++) {
    const expected = plain.values[i]!;
    const size = plain.magnitudes[i]!;
    const room = Number.isFinite(size) ? exactness * size : 0;
    if (!(Math.abs(values[i]! - expected) <= room) && !Object.is(values[i], expected)) {
      if (values[i] === expected) continue;
      throw new Finding(
        `the reference has ${values[i]} where plain loops have ${expected}, at ` +
          `[${unravelIndex(i, reference.shape)}]`,
      );
    }
  }
}

/** Random convolutions and products on the device, held to the gate, to plain loops, and spoilt. */
export const PROBLEMS: Attack = {
  kind: "problems",
  limit: 120,
  weight: 2,
  async open(seed) {
    let device: GpuDevice | undefined;
    const made = (number: number) => {
      const drawn = caseOf(seed, number);
      const special = specialOf(seed, number, drawn);
      return { one: withSpecial(drawn, special, seed, number), special };
    };
    const describe = (number: number) => {
      const { one, special } = made(number);
      const problem = one.kind === "conv" ? printDescriptor(one.problem) : one.problem;
      const op = one.kind === "conv"
        ? { op: one.problem.op, paddingEnd: one.problem.paddingEnd }
        : {};
      return JSON.stringify({ ...one, ...op, problem, special });
    };
    return await Promise.resolve({
      describe,
      run: async (number): Promise<Outcome> => {
        device ??= await openDevice({ optionalFeatures: ["shader-f16", "shader-f64"] });
        const { one, special } = made(number);
        const spoil = (operands: HostOperands) => makeSpecial(operands, special, one, seed, number);
        const computed = one.kind === "conv"
          ? await computeConv(device, one, spoil)
          : await computeGemm(device, one, spoil);
        if (typeof computed === "string") return `${one.kind} ${computed}`;
        holdReference(computed);
        const healthy = computed.check(computed.result);
        const { paddedNaN } = computed.reference;
        const unknown = (value: number, i: number) => Number.isNaN(value) || paddedNaN?.[i] === 1;
        if (healthy.verdict === "none" && computed.plain.values.every(unknown)) {
          return `${one.kind} of NaN alone, not checked`;
        }
        if (healthy.verdict !== "pass") {
          throw new Finding(`a right result fails: ${healthy.message}; kernel ${computed.kernel}`);
        }
        const fault = holdFault(new Draw(seed, "spoil", number), computed, healthy);
        return `${one.kind} right, ${fault}`;
      },
      [Symbol.asyncDispose]: () => Promise.resolve(device?.close()),
    });
  },
};
