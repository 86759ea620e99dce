import template from "../../shaders/im2col.wgsl" with { type: "text" };
import { type Axis, axisDigits, axisSizes, digitsText } from "./axes.ts";
import { columnsOf, spotsOf } from "./columns.ts";
import { type Scalar, typeName, zeroOf } from "../elements/scalar.ts";
import {
  eachElement,
  type ModuleBuilder,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

/**
 * Images as an explicit matrix, one a group: a column is a place of the result, a row a (tap, channel) of its
 * window. With a filter of one tap it is the tensor itself, in the order of a product's columns.
 */
export interface ColumnMatrix {
  readonly axes: readonly Axis[];
  /** A multiple of `interleave`. */
  readonly images: number;
  /** How columns count; 1 where rows lie together. */
  readonly interleave: 1 | 4;
  readonly groups: number;
  /** Of a group. */
  readonly channels: number;
  readonly batchStride: number;
  readonly channelStride: number;
  /** Which side lies together in memory. */
  readonly inner: "columns" | "rows";
  /** Whether passes differ in the first image they read. */
  readonly chunked: boolean;
}

/** Sizes of the matrix; `leading` is the side that lies together, padded with zeros to fours. */
export function matrixExtents(matrix: ColumnMatrix) {
  const taps = matrix.axes.reduce((product, axis) => product * axis.taps, 1);
  const rows = taps * matrix.channels;
  const columns = columnsOf({ ...matrix, places: matrix.axes.map(({ places }) => places) });
  const leading = Math.ceil((matrix.inner === "columns" ? columns : rows) / 4) * 4;
  const lines = matrix.inner === "columns" ? rows : columns;
  return { taps, rows, columns, leading, lines, group: lines * leading };
}

/** Elements of the matrices of all groups. */
export function matrixElements(matrix: ColumnMatrix): number {
  return matrix.groups * matrixExtents(matrix).group;
}

/** Workgroups of {@linkcode im2colKernel}: a thread writes four elements. */
export function im2colWorkgroups(matrix: ColumnMatrix): number {
  return Math.ceil(matrixElements(matrix) / 1024);
}

/** Four elements that a thread writes with one decomposition of their place, or by themselves. */
function sharedVector(matrix: ColumnMatrix): "images" | "channels" | "none" {
  if (matrix.inner === "columns") return matrix.interleave === 4 ? "images" : "none";
  const { channels, channelStride, batchStride, axes } = matrix;
  const fours = [channels, batchStride, ...axes.map((axis) => axis.sourceStride)]
    .every((elements) => elements % 4 === 0);
  return channelStride === 1 && fours ? "channels" : "none";
}

/** Writes the matrix. Binds `source` and `matrix`; the parameter `first_image` is where a chunk begins. */
export function im2colKernel(
  matrix: ColumnMatrix,
  mode: SizeMode,
  firstImage: number,
  from: TensorSplit,
  to: TensorSplit,
  element: Scalar,
): SizedKernel {
  const module = moduleBuilder(mode);
  const shared = sharedVector(matrix);
  const four = typeName(element, 4);
  const source = module.tensor(
    "source",
    "read",
    shared === "channels" ? 4 : 1,
    from,
    element,
    element,
  );
  const target = module.tensor("matrix", "write", 4, to, element, element);
  const size = (name: string, value: number) => module.size(name, value);
  const { rows, columns, leading, lines } = matrixExtents(matrix);
  const name = `im2col_${element}_${matrix.axes.length}d_${matrix.inner}_${shared}${
    matrix.chunked ? "_chunk" : ""
  }${splitTrait(from, to)}`;
  const batchStride = size("batch_stride", matrix.batchStride);
  const loads = shared === "channels"
    ? source.load("offset / 4u")
    : shared === "images"
    ? `${four}(${
      [0, 1, 2, 3].map((x) => source.load(`offset + ${x}u * ${batchStride}`)).join(", ")
    })`
    : source.load("offset");
  const text = elementText(module, matrix, firstImage);
  const single = (x: number) =>
    matrix.inner === "columns"
      ? `element(group, line, first + ${x}u)`
      : `element(group, first + ${x}u, line)`;
  const wgsl = render(template, {
    name,
    type: shared === "none" ? element : four,
    element: text,
    result: `select(${zeroOf(element, shared === "none" ? 1 : 4)}, ${loads}, inside)`,
    begin: eachElement(size("count", matrixElements(matrix) / 4)),
    vectors: size("vectors", leading / 4),
    lines: size("lines", lines),
    rows: size("rows", rows),
    columns: size("columns", columns),
    store: target.store(
      "i",
      shared === "none" ? `${four}(${[0, 1, 2, 3].map(single).join(", ")})` : single(0),
    ),
    declarations: module.declarations(),
  });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}

/** Declares `offset` into the source and `inside`, of `group`, `row` and `column`. */
function elementText(module: ModuleBuilder, matrix: ColumnMatrix, firstImage: number): string {
  const { axes, interleave } = matrix;
  const size = (name: string, value: number) => module.size(name, value);
  const sizes = axisSizes(module, "axis", axes);
  const all = axes.map((_, d) => d);
  const spots = size("spots", spotsOf({ places: axes.map(({ places }) => places) }));
  const channels = size("channels", matrix.channels);
  const first = matrix.chunked ? `${module.parameter("first_image", firstImage)} + ` : "";
  const [image, spot] = interleave === 4
    ? [`column / 4u / ${spots} * 4u + column % 4u`, `column / 4u % ${spots}`]
    : [`column / ${spots}`, `column % ${spots}`];
  return [
    `  let channel = row % ${channels};`,
    `  let tap = row / ${channels};`,
    digitsText("tap", "tap_rest", axisDigits(all.map((d) => `tap${d}`), sizes.taps)),
    `  let image = ${first}${image};`,
    `  let spot = ${spot};`,
    digitsText("spot", "spot_rest", axisDigits(all.map((d) => `place${d}`), sizes.places)),
    // Unsigned: below zero is huge.
    ...all.map((d) =>
      `  let at${d} = place${d} * ${sizes.stride[d]} + tap${d} * ${sizes.dilation[d]} - ${
        sizes.padding[d]
      };`
    ),
    `  let inside = row < ${size("rows", matrixExtents(matrix).rows)} && column < ${
      size("columns", matrixExtents(matrix).columns)
    } && ${all.map((d) => `at${d} < ${sizes.size[d]}`).join(" && ")};`,
    `  let offset = image * ${size("batch_stride", matrix.batchStride)} + (group * ${channels} + ` +
    `channel) * ${size("channel_stride", matrix.channelStride)} + ${
      all.map((d) => `at${d} * ${sizes.sourceStride[d]}`).join(" + ")
    };`,
  ].join("\n");
}
