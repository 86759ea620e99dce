/** Simulated convolutions on seeded data, for tests and benchmarks of the gate. */
import {
  F32,
  type Floors,
  judge,
  type Judgement,
  type JudgeOptions,
  measureAccuracy,
  type Measured,
} from "../../src/accuracy/mod.ts";
import {
  accumulationLength,
  type ConvProblem,
  operandTensors,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import type { PlanArithmetic } from "../../src/problem/plan_arithmetic.ts";
import type { ReferenceInputs, ReferenceResult } from "../../src/reference/reference.ts";
import { type FillKind, fillTensor } from "../../src/tensor/fill.ts";
import { rowMajorStrides } from "../../src/tensor/tensor.ts";
import type { Yardstick } from "../../src/accuracy/yardstick.ts";
import { convYardstick, type ConvYardstickRequest } from "../../src/simulate/conv_yardstick.ts";
import { convFloors } from "../../src/simulate/conv_floors.ts";
import type { SimulationOrder } from "../../src/simulate/simulated_yardstick.ts";
import { simulateConv } from "./simulate_conv.ts";

/** A convolution whose results are simulated. */
export interface SimulatedCase {
  readonly request: ConvYardstickRequest;
  /** Made once, of the data as it is then. */
  yardstick(): Yardstick;
  /** By which errors are measured, likewise. */
  floors(): Floors | undefined;
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
  const request = { problem, inputs, epilogue: NO_EPILOGUE, arithmetic, precision: F32, seed };
  let made: { readonly floors: Floors | undefined; readonly yardstick: Yardstick } | undefined;
  const measure = () => {
    if (made === undefined) {
      const floors = convFloors(request);
      made = { floors, yardstick: convYardstick({ ...request, floors }) };
    }
    return made;
  };
  return { request, yardstick: () => measure().yardstick, floors: () => measure().floors };
}

/** A correct kernel's results and their reference. */
export function healthyResult({ request }: SimulatedCase, order: SimulationOrder = {}) {
  return simulateConv(request, order);
}

/** What the gate makes of results. */
export function judgeCase(
  { request: { problem, arithmetic, precision }, yardstick, floors }: SimulatedCase,
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
    floors: floors(),
  });
  return { measured, ...judge(measured, yardstick(), precision, options) };
}

/**
 * Makes data of a case as a dark photo under small filters in large frames is: its first columns are nearly black, and of a
 * filter's row the one tap is left that reads farthest to the left. Tiles then have tiny products, and transforms of what
 * is large beside them.
 */
export function darken({ request: { problem, inputs } }: SimulatedCase, columns: number): void {
  for (const which of operandTensors(problem.op)) {
    const data = inputs[which]!.data as Float32Array;
    const width = tensorShape(problem, which).at(-1)!;
    const tap = problem.op === "bwd-data" ? width - 1 : 0;
    data.forEach((value, i) => {
      const small = which === "filter" ? i % width !== tap : i % width < columns;
      if (small) data[i] = which === "filter" ? 0 : value * 1e-11;
    });
  }
}
