import { InputRangeError } from "../errors.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../problem/conv_problem.ts";
import type { FilterLayout, Layout } from "../tensor/layout.ts";
import { elementCount, rowMajorStrides } from "../tensor/tensor.ts";

/** Element types the reference reads. */
export type HostArray =
  | Float32Array
  | Float64Array
  | Float16Array
  | Int8Array
  | Uint8Array
  | Int16Array;

/** Three values, one per spatial axis; a missing leading axis has size 1. */
export type Triple = [number, number, number];

/**
 * A problem as the workers' kernels see it: always three spatial axes, strides in elements, plain data
 * that survives `postMessage`. Strides are of axes (N, C, D, H, W), (K, C, T, R, S) and (N, K, O, P, Q).
 */
export interface Geometry {
  readonly op: ConvProblem["op"];
  readonly batch: number;
  readonly groups: number;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly inputSize: Triple;
  readonly filterSize: Triple;
  readonly outputSize: Triple;
  readonly stride: Triple;
  readonly padding: Triple;
  readonly dilation: Triple;
  readonly inputStrides: number[];
  readonly filterStrides: number[];
  readonly outputStrides: number[];
}

/** Strides in elements, per canonical axis, of the problem's tensors in memory. */
interface MemoryStrides {
  readonly input: readonly number[];
  readonly filter: readonly number[];
  readonly output: readonly number[];
}

/** Canonical (N C H W and so on) strides: of results, and of tensors nobody gave a layout. */
export function canonicalStrides(problem: ConvProblem): MemoryStrides {
  return {
    input: rowMajorStrides(tensorShape(problem, "input")),
    filter: rowMajorStrides(tensorShape(problem, "filter")),
    output: rowMajorStrides(tensorShape(problem, "output")),
  };
}

/** Pads a problem to three spatial axes. */
export function geometryOf(problem: ConvProblem, strides: MemoryStrides): Geometry {
  return {
    op: problem.op,
    batch: problem.batch,
    groups: problem.groups,
    inChannels: problem.inChannels / problem.groups,
    outChannels: problem.outChannels / problem.groups,
    inputSize: triple(problem.inputSize, 1),
    filterSize: triple(problem.filterSize, 1),
    outputSize: triple(problem.outputSize, 1),
    stride: triple(problem.stride, 1),
    padding: triple(problem.paddingBegin, 0),
    dilation: triple(problem.dilation, 1),
    inputStrides: fiveStrides(strides.input),
    filterStrides: fiveStrides(strides.filter),
    outputStrides: fiveStrides(strides.output),
  };
}

function triple(values: readonly number[], fill: number): Triple {
  const [a, b, c] = [...new Array<number>(3 - values.length).fill(fill), ...values];
  return [a!, b!, c!];
}

function fiveStrides(strides: readonly number[]): number[] {
  return [strides[0]!, strides[1]!, ...triple(strides.slice(2), 0)];
}

/** A tensor as it lies in memory: flat, its axes in `layout`. */
export interface HostOperand {
  /** The elements in the order of `layout`. */
  readonly data: HostArray;
  /** The order of the axes in memory. */
  readonly layout: Layout | FilterLayout;
}

/** A tensor's data, if it is that of the problem. */
export function checkedOperand(
  problem: ConvProblem,
  which: ConvTensor,
  operand: HostOperand | undefined,
): HostArray {
  const doing = `Cannot compute the ${problem.op} reference`;
  if (operand === undefined) throw new TypeError(`${doing}: ${which} is missing`);
  const shape = tensorShape(problem, which);
  const count = elementCount(shape);
  const isFilter = operand.layout.includes("k");
  if (isFilter !== (which === "filter")) {
    throw new TypeError(`${doing}: ${operand.layout} is no layout of the ${which}`);
  }
  if (operand.data.length !== count) {
    throw new TypeError(
      `${doing}: ${which} has ${operand.data.length} elements, ` +
        `its shape [${shape}] has ${count}`,
    );
  }
  if (count >= 2 ** 31) {
    throw new InputRangeError(`${doing}: ${which} has ${count} elements, 2^31 are too many`);
  }
  return operand.data;
}
