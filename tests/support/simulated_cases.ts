/** Simulated convolutions on seeded data, for tests and benchmarks of the gate. */
import {
  F32,
  judge,
  type Judgement,
  type JudgeOptions,
  measureAccuracy,
  type Measured,
  storedInQuads,
} from "../../src/accuracy/mod.ts";
import {
  accumulationLength,
  type ConvProblem,
  operandTensors,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { type PlanArithmetic, quadsOf } from "../../src/problem/plan_arithmetic.ts";
import type { ReferenceInputs, ReferenceResult } from "../../src/reference/reference.ts";
import { type FillKind, fillTensor } from "../../src/tensor/fill.ts";
import { rowMajorStrides } from "../../src/tensor/tensor.ts";
import type { Yardstick } from "../../src/accuracy/yardstick.ts";
import {
  convYardstick,
  type ConvYardstickRequest,
  simulateConv,
} from "../../src/simulate/conv_yardstick.ts";
import type { SimulationOrder } from "../../src/simulate/orders.ts";

/** A convolution whose results are simulated. */
export interface SimulatedCase {
  readonly request: ConvYardstickRequest;
  readonly yardstick: Yardstick;
}

/** A problem on seeded data, all tensors in canonical layouts. */
export function simulatedCase(
  problem: ConvProblem,
  arithmetic: PlanArithmetic,
  fill: FillKind,
  seed = 1,
): SimulatedCase {
  const inputs: ReferenceInputs = Object.fromEntries(
    operandTensors(problem.op).map((which, i) => {
      const { data } = fillTensor("f32", tensorShape(problem, which), fill, seed + i);
      return [which, { data, layout: which === "filter" ? "kcrs" : "nchw" }];
    }),
  );
  const precision = quadsOf(arithmetic) ? storedInQuads(F32) : F32;
  const request = { problem, inputs, epilogue: NO_EPILOGUE, arithmetic, precision, seed };
  return { request, yardstick: convYardstick(request) };
}

/** A correct kernel's results and their reference. */
export function healthyResult({ request }: SimulatedCase, order: SimulationOrder = {}) {
  return simulateConv(request, order);
}

/** What the gate makes of results. */
export function judgeCase(
  { request: { problem, arithmetic, precision }, yardstick }: SimulatedCase,
  result: Float32Array,
  reference: ReferenceResult,
  options: JudgeOptions = {},
): Judgement & { measured: Measured } {
  const measured = measureAccuracy(result, reference, {
    strides: rowMajorStrides(reference.shape),
    precision,
    accumulationLength: accumulationLength(problem),
    grouping: {
      rowAxis: problem.op === "bwd-filter" ? 0 : 1,
      names: ["channel", problem.op === "bwd-filter" ? "input channel" : "image"],
      otherInner: false,
      tile: arithmetic.tiles?.[0]?.axes.map(({ n }) => n) ?? problem.filterSize.map(() => 1),
    },
  });
  return { measured, ...judge(measured, yardstick, precision, options) };
}
