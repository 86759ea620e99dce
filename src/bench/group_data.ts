import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  type Operation,
} from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { filterLayoutFor } from "../tensor/layout.ts";
import type { BenchGroup, BenchPlan } from "./bench_plan.ts";
import { computeReference, type Reference } from "./check.ts";
import { fillOperand, type HostOperands } from "./operands.ts";

/** Data and references of one problem and layout, made when first asked for. */
export interface GroupData {
  /** What the operation reads. */
  operands(op: Operation): HostOperands;
  reference(problem: ConvProblem): Promise<Reference>;
}

/** Makes the data that a run's groups of one problem and layout share. */
export function groupData(bench: BenchPlan, { problem, layout }: BenchGroup): GroupData {
  const layouts = { layout, filterLayout: filterLayoutFor(layout) };
  const tensors = new Map<ConvTensor, Float32Array<ArrayBuffer>>();
  const references = new Map<Operation, Promise<Reference>>();
  const tensor = (which: ConvTensor) => {
    const made = tensors.get(which) ?? fillOperand(problem, which, layouts, bench.fill, bench.seed);
    tensors.set(which, made);
    return made;
  };
  const operands = (op: Operation): HostOperands =>
    Object.fromEntries(operandTensors(op).map((which) => [which, tensor(which)]));
  return {
    operands,
    reference(target) {
      const made = references.get(target.op) ?? computeReference({
        problem: target,
        ...layouts,
        operands: operands(target.op),
        epilogue: NO_EPILOGUE,
        mode: bench.check === "full" ? "full" : "sample",
        seed: bench.seed,
      });
      references.set(target.op, made);
      return made;
    },
  };
}
