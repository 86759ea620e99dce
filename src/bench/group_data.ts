import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  type Operation,
} from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { filterLayoutFor } from "../tensor/layout.ts";
import type { BenchGroup, BenchPlan } from "./bench_plan.ts";
import { computeReference, type Reference, type ReferenceRequest } from "../run/check.ts";
import { fillOperand, type HostOperands } from "../run/operands.ts";
import { convProjection } from "../run/conv_projection.ts";
import type { ResultProjection } from "../run/projected.ts";

/** Data and references of one problem and layout, made when first asked for. */
export interface GroupData {
  /** What the operation reads. */
  operands(op: Operation): HostOperands;
  reference(problem: ConvProblem): Promise<Reference>;
  /** Its projection, where there is one. */
  projection(problem: ConvProblem): Promise<ResultProjection | undefined>;
}

/** Makes the data that a run's groups of one problem and layout share. */
export function groupData(bench: BenchPlan, { problem, layout }: BenchGroup): GroupData {
  const layouts = { layout, filterLayout: filterLayoutFor(layout) };
  const tensors = new Map<ConvTensor, Float32Array<ArrayBuffer>>();
  const references = new Map<Operation, Promise<Reference>>();
  const projections = new Map<Operation, Promise<ResultProjection | undefined>>();
  const tensor = (which: ConvTensor) => {
    const made = tensors.get(which) ?? fillOperand(problem, which, layouts, bench.fill, bench.seed);
    tensors.set(which, made);
    return made;
  };
  const operands = (op: Operation): HostOperands =>
    Object.fromEntries(operandTensors(op).map((which) => [which, tensor(which)]));
  const request = (target: ConvProblem): ReferenceRequest => ({
    problem: target,
    ...layouts,
    operands: operands(target.op),
    epilogue: NO_EPILOGUE,
    mode: bench.check === "none" ? "sample" : bench.check,
    seed: bench.seed,
  });
  return {
    operands,
    reference(target) {
      const made = references.get(target.op) ?? computeReference(request(target));
      references.set(target.op, made);
      return made;
    },
    projection(target) {
      const made = projections.get(target.op) ?? convProjection(request(target));
      projections.set(target.op, made);
      return made;
    },
  };
}
