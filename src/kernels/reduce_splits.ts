import template from "../../shaders/reduce_splits.wgsl" with { type: "text" };
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "./epilogue.ts";
import {
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";
import { type Scalar, sumScalar } from "../elements/scalar.ts";
import { splitSum, sumWorkgroups } from "./sum_splits.ts";

/** Partial results lie one after the other, each as the result does. */
export interface ReduceShape {
  /** Elements of the result. */
  readonly elements: number;
  readonly splits: number;
  /** Row of element i: ⌊i / rowStride⌋ mod rows; likewise its column. For epilogues that ask. */
  readonly rows: number;
  readonly rowStride: number;
  readonly columns: number;
  readonly columnStride: number;
}

/** Four elements at a time where they share a row or a column and lie along the other. */
function reduceVector(shape: ReduceShape): { width: 1 | 4; side: "rows" | "columns" } {
  const along = (stride: number, size: number, other: number) =>
    stride === 1 && size % 4 === 0 && other % 4 === 0;
  if (shape.elements % 4 === 0) {
    if (along(shape.columnStride, shape.columns, shape.rowStride)) {
      return { width: 4, side: "columns" };
    }
    if (along(shape.rowStride, shape.rows, shape.columnStride)) return { width: 4, side: "rows" };
  }
  return { width: 1, side: "columns" };
}

/** Workgroups of a {@linkcode reduceSplitsKernel}. */
export function reduceWorkgroups(shape: ReduceShape): number {
  return sumWorkgroups(shape.elements / reduceVector(shape).width, shape.splits);
}

/**
 * Sums the splits' partial results in a fixed order, with compensation where sums round (which compilers may drop), then applies the epilogue. Binds `partials`, `result` and what the epilogue reads.
 *
 * @param onto The result holds a part already.
 */
export function reduceSplitsKernel(
  shape: ReduceShape,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  splits: { partials: TensorSplit; result: TensorSplit },
  element: Scalar = "f32",
  onto = false,
): SizedKernel {
  const module = moduleBuilder(mode);
  const { width, side } = reduceVector(shape);
  const sumOf = sumScalar(element);
  const partials = module.tensor("partials", "read", width, splits.partials, sumOf);
  const result = module.tensor("result", "write", width, splits.result, element);
  const steps = epilogue(module, width, (row) => row);
  const { trait, values: lanes, workgroupBytes, iterations } = splitSum(
    shape.elements / width,
    shape.splits,
    sumOf,
    width,
  );
  const name = `reduce_splits_${onto ? "onto_" : ""}${element}x${width}${
    width === 4 ? side : ""
  }${trait}${epilogueTrait(steps)}${splitTrait(splits.partials, splits.result)}`;
  const count = module.size("count", shape.elements / width);
  const coordinate = (what: "row" | "column", stride: number, extent: number) =>
    `((i * ${width}u / ${module.size(`${what}_stride`, stride)}) % ${
      module.size(`${what}s`, extent)
    })`;
  const sum = applyEpilogue(steps, "sum", {
    width,
    side,
    row: coordinate("row", shape.rowStride, shape.rows),
    column: coordinate("column", shape.columnStride, shape.columns),
    offset: "i",
  });
  const values = {
    name,
    count,
    place: "",
    onto: onto ? result.load("i") : "",
    ...lanes,
    splits: module.size("splits", shape.splits),
    load: (split: string) => partials.load(`${split} * ${count} + i`),
    store: result.store("i", sum),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const all = iterations + width * epilogueIterations(steps);
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], workgroupBytes, all);
}
