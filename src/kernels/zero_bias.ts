import template from "../../shaders/zero_bias.wgsl" with { type: "text" };
import { literalOf } from "../elements/scalar.ts";
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
  WHOLE,
} from "./module.ts";

/** Filters in groups, of i8: [group][filters][depth]. */
export interface ZeroBiasShape {
  readonly groups: number;
  /** Of a group. */
  readonly filters: number;
  /** Of these the first so many have a bias. */
  readonly biased: number;
  readonly depth: number;
  /** Of the input, as i8. */
  readonly zeroPoint: number;
}

/** Threads that add up one filter. */
const THREADS = 64;

/**
 * What sums of x·w lack to be those of (x − zeroPoint)·w, a workgroup a filter: bias − zeroPoint·Σw, modulo 2^32. Binds `filter`,
 * `bias` where there is one, and `zero_bias`.
 */
export function zeroBiasKernel(
  shape: ZeroBiasShape,
  mode: SizeMode,
  hasBias: boolean,
  filter: TensorSplit,
): SizedKernel {
  const { groups, filters, biased, zeroPoint } = shape;
  const module = moduleBuilder(mode);
  const w = module.tensor("filter", "read", 1, filter, "i8");
  const bias = hasBias ? module.tensor("bias", "read", 1, WHOLE, "i32") : undefined;
  const result = module.tensor("zero_bias", "write", 1, WHOLE, "i32");
  const each = module.size("filters", filters);
  const own = module.size("biased", biased);
  const depth = module.size("depth", shape.depth);
  const name = `zero_bias${bias ? "_bias" : ""}${splitTrait(filter)}`;
  const channel = `row / ${each} * ${own} + min(row % ${each}, ${own} - 1u)`;
  const values = {
    name,
    threads: THREADS,
    rows: module.size("rows", groups * filters),
    depth,
    load: w.load(`row * ${depth} + d`),
    bias: bias === undefined
      ? literalOf("i32", 0)
      : `select(0i, ${bias.load(channel)}, row % ${each} < ${own})`,
    zeroPoint: `bitcast<i32>(${module.size("zero_point", zeroPoint >>> 0)})`,
    store: result.store("row", "bias - zero * atomicLoad(&total)"),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const iterations = loopIterations(Math.ceil(shape.depth / THREADS));
  return sizedKernel(name, mode, wgsl, module, [THREADS, 1, 1], 4, iterations);
}
