import template from "../../shaders/col2im.wgsl" with { type: "text" };
import { axisDigits, axisSizes, digitsText } from "./axes.ts";
import { spotsOf } from "./columns.ts";
import { type ColumnMatrix, matrixExtents } from "./im2col.ts";
import {
  eachElement,
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";
import { type Scalar, zeroOf } from "../elements/scalar.ts";

/** Threads' elements of the image side: one, or one of each of four images. */
function resultVectors(matrix: ColumnMatrix): number {
  const spots = matrix.axes.reduce((product, axis) => product * axis.size, 1);
  return matrix.images / matrix.interleave * matrix.groups * matrix.channels * spots;
}

/** Workgroups of {@linkcode col2imKernel}. */
export function col2imWorkgroups(matrix: ColumnMatrix): number {
  return Math.ceil(resultVectors(matrix) / 256);
}

/**
 * The inverse walk of im2col: each element of the images is the sum of the matrix elements that were copied from
 * it, in a fixed order. Binds `matrix` and `result`; the parameter `first_image` is where a chunk begins.
 */
export function col2imKernel(
  matrix: ColumnMatrix,
  mode: SizeMode,
  firstImage: number,
  from: TensorSplit,
  to: TensorSplit,
  elements: { readonly matrix: Scalar; readonly result: Scalar },
): SizedKernel {
  const { axes, interleave, inner, rowOrder } = matrix;
  const module = moduleBuilder(mode);
  const source = module.tensor("matrix", "read", interleave, from, elements.matrix);
  const result = module.tensor("result", "write", 1, to, elements.result);
  const size = (name: string, value: number) => module.size(name, value);
  const sizes = axisSizes(module, "axis", axes);
  const all = axes.map((_, d) => d);
  const { taps, rows, columns, leading } = matrixExtents(matrix);
  const spots = size("spots", spotsOf({ places: axes.map(({ places }) => places) }));
  const channels = size("channels", matrix.channels);
  const name = `col2im_${elements.result}_${axes.length}d_${inner}_${rowOrder}_i${interleave}${
    matrix.chunked ? "_chunk" : ""
  }${splitTrait(from, to)}`;
  const first = matrix.chunked ? ` + ${module.parameter("first_image", firstImage)}` : "";
  const batchStride = size("batch_stride", matrix.batchStride);
  const fold = (index: (d: number) => string, extent: (d: number) => string) =>
    all.slice(1).reduce((text, d) => `(${text} * ${extent(d)} + ${index(d)})`, index(0));
  const row = rowOrder === "channel"
    ? `tap * ${channels} + channel`
    : `channel * ${size("taps", taps)} + tap`;
  // In units of vectors of `interleave`.
  const line = size("leading", leading / interleave);
  const at = inner === "columns"
    ? `(group * ${size("rows", rows)} + ${row}) * ${line} + image * ${spots} + spot`
    : `(group * ${size("columns", columns)} + image * ${spots} + spot) * ${line} + ${row}`;
  const offset = `(image * ${interleave}u${first}) * ${batchStride} + (group * ${channels} + ` +
    `channel) * ${size("channel_stride", matrix.channelStride)} + ${
      all.map((d) => `at${d} * ${sizes.sourceStride[d]}`).join(" + ")
    }`;
  const coordinates = [
    "channel",
    ...all.map((d) => `at${d}`),
  ];
  const extents = [channels, ...sizes.size];
  // Neighbouring threads go where the matrix lies together: along the last axis, or the channels.
  const order = inner === "columns" ? coordinates : [...coordinates.slice(1), "channel"];
  const orderedExtents = inner === "columns" ? extents : [...extents.slice(1), channels];
  const groups = size("groups", matrix.groups);
  const wgsl = render(template, {
    name,
    begin: eachElement(size("count", resultVectors(matrix))),
    zero: zeroOf(source.value, interleave),
    // The image is what is left, so that none of the others is.
    coordinates: digitsText(
      "i",
      "rest",
      axisDigits(["image", "group", ...order], ["", groups, ...orderedExtents]),
    ),
    loops: all.map((d) =>
      [
        `  for (var tap${d} = 0u; tap${d} < ${sizes.taps[d]}; tap${d}++) {`,
        `    let far${d} = at${d} + ${sizes.padding[d]} - tap${d} * ${sizes.dilation[d]};`,
        `    let place${d} = far${d} / ${sizes.stride[d]};`,
        `    if (place${d} >= ${sizes.places[d]} || far${d} % ${
          sizes.stride[d]
        } != 0u) { continue; }`,
      ].join("\n")
    ).join("\n"),
    tap: fold((d) => `tap${d}`, (d) => sizes.taps[d]!),
    spot: fold((d) => `place${d}`, (d) => sizes.places[d]!),
    load: source.load(at),
    ends: all.map(() => "  }").join("\n"),
    offset,
    stores: (interleave === 1 ? ["sum"] : [..."xyzw"].map((x) => `sum.${x}`))
      .map((value, x) =>
        result.store(x === 0 ? "offset" : `offset + ${x}u * ${batchStride}`, value)
      ).join("\n  "),
    declarations: module.declarations(),
  });
  const iterations = axes.reduceRight((inner, axis) => loopIterations(axis.taps, inner), 0);
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0, iterations);
}
