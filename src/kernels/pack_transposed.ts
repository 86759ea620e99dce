import template from "../../shaders/pack_transposed.wgsl" with { type: "text" };
import {
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type StorageElement,
  type TensorSplit,
} from "./module.ts";
import { zeroOf } from "./scalar.ts";

/** Row-major matrices [group][rows][depth], to become [group][paddedDepth][paddedRows]. */
export interface TransposeShape {
  readonly groups: number;
  readonly rows: number;
  readonly paddedRows: number;
  readonly depth: number;
  readonly paddedDepth: number;
}

/** Workgroups of a {@linkcode packTransposedKernel}: one a tile of 32 x 32. */
export function transposeWorkgroups(shape: TransposeShape): number {
  return shape.groups * Math.ceil(shape.paddedRows / 32) * Math.ceil(shape.paddedDepth / 32);
}

/** Transposes through workgroup memory, so that both sides are read and written in whole lines. Binds `unpacked` and `packed`. */
export function packTransposedKernel(
  shape: TransposeShape,
  mode: SizeMode,
  source: TensorSplit,
  packed: TensorSplit,
  element: StorageElement = "f32",
): SizedKernel {
  const module = moduleBuilder(mode);
  const from = module.tensor("unpacked", "read", 1, source, element);
  const to = module.tensor("packed", "write", 1, packed, element);
  const name = `pack_transposed_${element}${splitTrait(source, packed)}`;
  const rows = module.size("rows", shape.rows);
  const depth = module.size("depth", shape.depth);
  const paddedRows = module.size("padded_rows", shape.paddedRows);
  const paddedDepth = module.size("padded_depth", shape.paddedDepth);
  const values = {
    name,
    type: from.value,
    zero: zeroOf(from.value, 1),
    rows,
    depth,
    paddedRows,
    paddedDepth,
    workgroups: module.size("workgroups", transposeWorkgroups(shape)),
    depthTiles: module.size("depth_tiles", Math.ceil(shape.paddedDepth / 32)),
    rowTiles: module.size("row_tiles", Math.ceil(shape.paddedRows / 32)),
    load: from.load(`(group * ${rows} + row) * ${depth} + depth`),
    store: (value: string) =>
      to.store(`(group * ${paddedDepth} + depth) * ${paddedRows} + row`, value),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const bytes = 33 * 32 * (from.value === "f64" ? 8 : 4);
  return sizedKernel(name, mode, wgsl, module, [32, 8, 1], bytes);
}
