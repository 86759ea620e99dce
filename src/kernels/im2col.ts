/** Passes that write what filters meet as matrices: all taps of images, or those of one axis as channels. */
import { range } from "./lists.ts";
import { masked, type Scalar, typeName, zeroOf } from "../elements/scalar.ts";
import { type Axis, axisDigits, axisSizes, columnsOf, digitsText, spotsOf } from "./axes.ts";
import type { ModuleBuilder } from "./module.ts";
import { eachElement, type SizedKernel, textKernel } from "./sized_kernel.ts";

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
  module: ModuleBuilder,
  matrix: ColumnMatrix,
  firstImage: number,
  element: Scalar,
): SizedKernel {
  const shared = sharedVector(matrix);
  const [one, four] = [typeName(element, 1), typeName(element, 4)];
  const width = shared === "channels" ? 4 : 1;
  const source = module.bind("source", "read", width, element, element);
  const target = module.bind("matrix", "write", 4, element, element);
  const { size } = module;
  const { leading, lines } = matrixExtents(matrix);
  const name = `im2col_${element}_${matrix.axes.length}d_${matrix.inner}_${shared}${
    matrix.chunked ? "_chunk" : ""
  }${module.splitTrait()}`;
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
  const fours = matrixElements(matrix) / 4;
  const count = size("count", fours);
  const vectors = size("vectors", leading / 4);
  const allLines = size("lines", lines);
  const wgsl = [
    `fn element(group: u32, row: u32, column: u32) -> ${shared === "none" ? one : four} {`,
    text,
    `  return ${masked(loads, zeroOf(element, shared === "none" ? 1 : 4), ["inside"])};`,
    "}",
    eachElement(count),
    `  let first = i % ${vectors} * 4u;`,
    `  let line = (i / ${vectors}) % ${allLines};`,
    `  let group = i / (${vectors} * ${allLines});`,
    `  ${
      target.store(
        "i",
        shared === "none" ? `${four}(${range(4).map(single).join(", ")})` : single(0),
      )
    }`,
    "}",
  ];
  const about = "images as matrices of (tap, channel) by place, four elements a thread.";
  return textKernel(module, name, about, wgsl, { workgroups: Math.ceil(fours / 256) });
}

/** Declares `offset` into the source and `inside`, of `group`, `row` and `column`. */
function elementText(module: ModuleBuilder, matrix: ColumnMatrix, firstImage: number): string {
  const { axes, interleave } = matrix;
  const { size } = module;
  const sizes = axisSizes(module, "axis", axes);
  const all = range(axes.length);
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

/**
 * A tensor whose taps along one axis become channels, which are innermost then: element = batch·batchStride + row·rowStride +
 * x·axis.sourceStride + channel·channelStride, where tap s of place p lies at x = p·stride + s·dilation − padding.
 */
export interface UnfoldShape {
  readonly batch: number;
  /** Of the axes between. */
  readonly rows: number;
  /** Places and taps that lie outside its size are zero. */
  readonly axis: Axis;
  readonly channels: number;
  /** taps·channels, channels fastest, and zeros. */
  readonly paddedChannels: number;
  readonly batchStride: number;
  readonly rowStride: number;
  readonly channelStride: number;
}

/** Elements of the unfolded tensor. */
export function unfoldedElements({ batch, rows, axis, paddedChannels }: UnfoldShape): number {
  return batch * rows * axis.places * paddedChannels;
}

/**
 * Copies a tensor to [batch][rows][places][taps·channels], padded; of int8 to a multiple of 16. Binds `unpacked` and `packed`, of int8 both
 * as words.
 */
export function unfoldKernel(
  module: ModuleBuilder,
  shape: UnfoldShape,
  element: Scalar,
): SizedKernel {
  const bytes = element === "i8";
  // What a thread stores at once: of int8 four words.
  const vector = bytes ? 16 : shape.paddedChannels % 4 === 0 ? 4 : 1;
  const stored = bytes ? "u32" : element;
  const from = module.bind("unpacked", "read", 1, stored);
  const to = module.bind("packed", "write", vector === 1 ? 1 : 4, stored);
  const { axis } = shape;
  const name = `unfold_${element}x${vector}${module.splitTrait()}`;
  const size = (key: Exclude<keyof UnfoldShape, "axis" | "batch" | "paddedChannels">) =>
    module.size(key, shape[key]);
  const along = (key: keyof Axis) => module.size(`axis_${key}`, axis[key]);
  const vectors = module.size("vectors", shape.paddedChannels / vector);
  const elements = range(vector).map((e) =>
    `element(batch, row, place, vector * ${vector}u + ${e}u)`
  );
  const words = range(4).map((w) => `word(${elements.slice(4 * w, 4 * w + 4).join(", ")})`);
  const threads = unfoldedElements(shape) / vector;
  const channels = size("channels");
  const strides = {
    batch: size("batchStride"),
    row: size("rowStride"),
    channel: size("channelStride"),
  };
  const taps = along("taps");
  const length = along("size");
  const stride = along("stride");
  const padding = along("padding");
  const dilation = along("dilation");
  const sourceStride = along("sourceStride");
  const begin = eachElement(module.size("count", threads));
  const digits = digitsText("i", "rest", [
    { name: "vector", radix: vectors },
    { name: "place", radix: along("places") },
    { name: "row", radix: size("rows") },
    { name: "batch", radix: "" },
  ]);
  const value = bytes ? `${from.load("at / 4u")} >> (at % 4u * 8u)` : from.load("at");
  const four = typeName(to.value, vector === 1 ? 1 : 4);
  const wgsl = [
    `fn element(batch: u32, row: u32, place: u32, index: u32) -> ${from.value} {`,
    `  let tap = index / ${channels};`,
    `  let source = place * ${stride} + tap * ${dilation};`,
    `  let inside = tap < ${taps} && source >= ${padding} && source - ${padding} < ${length};`,
    `  let offset = batch * ${strides.batch} + row * ${strides.row} +`,
    `    (source - ${padding}) * ${sourceStride} + index % ${channels} * ${strides.channel};`,
    "  let at = select(0u, offset, inside);",
    `  return ${masked(value, zeroOf(from.value, 1), ["inside"])};`,
    "}",
    bytes && [
      "// Of each the last eight bits.",
      "fn word(a: u32, b: u32, c: u32, d: u32) -> u32 {",
      "  return dot(vec4u(a, b, c, d) & vec4u(255u), vec4u(1u, 256u, 65536u, 16777216u));",
      "}",
    ],
    begin,
    digits,
    `  ${to.store("i", `${four}(${(bytes ? words : elements).join(", ")})`)}`,
    "}",
  ];
  const about =
    "a tensor as [batch][rows][places][taps·channels], the last of them padded with zeros.";
  return textKernel(module, name, about, wgsl, { workgroups: Math.ceil(threads / 256) });
}
