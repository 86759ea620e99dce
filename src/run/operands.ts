import { InputTypeError } from "../errors.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  tensorShape,
} from "../problem/conv_problem.ts";
import type { ReferenceInputs } from "../reference/reference.ts";
import { type FillKind, fillTensor } from "../tensor/fill.ts";
import { type FilterLayout, type Layout, shapeInLayout } from "../tensor/layout.ts";

/** How the tensors of a problem lie in memory. */
export interface Layouts {
  /** Of input, output and their gradients. */
  readonly layout: Layout;
  /** Of the filter and its gradient. */
  readonly filterLayout: FilterLayout;
}

/** Float32 tensors of a problem as they lie in memory. */
export interface HostOperands {
  /** X, of forward and backward-filter. */
  readonly input?: Float32Array<ArrayBuffer>;
  /** W, of forward and backward-data. */
  readonly filter?: Float32Array<ArrayBuffer>;
  /** The output's gradient. */
  readonly output?: Float32Array<ArrayBuffer>;
  /** K values, where a bias is added. */
  readonly bias?: Float32Array<ArrayBuffer>;
}

/** What is added to a run's seed, so that no two of its tensors are alike. */
const SEED_OFFSET = { input: 0, filter: 1, output: 2 } as const;

/** The layout of one of the problem's tensors. */
export function layoutOf(which: ConvTensor, layouts: Layouts): Layout | FilterLayout {
  return which === "filter" ? layouts.filterLayout : layouts.layout;
}

/** Shape in memory of one of the problem's tensors. */
export function memoryShape(problem: ConvProblem, which: ConvTensor, layouts: Layouts): number[] {
  return shapeInLayout(tensorShape(problem, which), layoutOf(which, layouts));
}

/** Fills one tensor of a problem: the same bits for the same shape, layout, kind and seed everywhere. */
export function fillOperand(
  problem: ConvProblem,
  which: ConvTensor,
  layouts: Layouts,
  fill: FillKind,
  seed: number,
): Float32Array<ArrayBuffer> {
  const shape = memoryShape(problem, which, layouts);
  return fillTensor("f32", shape, fill, seed + SEED_OFFSET[which]).data;
}

/** The operands in the form the reference takes. */
export function referenceInputs(
  problem: ConvProblem,
  operands: HostOperands,
  layouts: Layouts,
): ReferenceInputs {
  const inputs = Object.fromEntries(
    operandTensors(problem.op).map((which) => {
      const data = operands[which];
      if (!data) throw new InputTypeError(`Cannot compute the reference: ${which} is missing`);
      return [which, { data, layout: layoutOf(which, layouts) }];
    }),
  );
  return { ...inputs, ...(operands.bias ? { bias: operands.bias } : {}) };
}
