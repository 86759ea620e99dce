import { InputRangeError } from "../errors.ts";
import { type ConvProblem, type ConvTensor, tensorShape } from "../problem/conv_problem.ts";
import type { FilterLayout, Layout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { HostArray } from "./geometry.ts";

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
