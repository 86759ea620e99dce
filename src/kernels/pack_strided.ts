import stagedTemplate from "../../shaders/pack_staged.wgsl" with { type: "text" };
import directTemplate from "../../shaders/pack_strided.wgsl" with { type: "text" };
import { axisDigits, digitsText } from "./axes.ts";
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
import { type Scalar, scalarBytes, zeroOf } from "../elements/scalar.ts";

/** A filter or matrix as a stack of matrices: element = group·groupStride + row·rowStride + channel·channelStride + tap·tapStride. */
export interface PackShape {
  readonly groups: number;
  readonly rows: number;
  readonly paddedRows: number;
  readonly channels: number;
  readonly paddedChannels: number;
  readonly taps: number;
  /** taps·paddedChannels, rounded up to the tile's depth. */
  readonly depth: number;
  readonly groupStride: number;
  readonly rowStride: number;
  readonly channelStride: number;
  readonly tapStride: number;
  /**
   * Window order: taps of all axes but the last count fastest, `outerTaps` of them, `innerTaps` of the last.
   * Row-major where absent.
   */
  readonly window?: { readonly outerTaps: number; readonly innerTaps: number };
  /**
   * Rows are `channels` of a filter and classes of strides, of which the named ones count fastest: tap j of class m is tap
   * m + j·stride − lead of the filter along an axis, zero where that is none.
   */
  readonly classes?: {
    readonly inner: "channels" | "classes";
    readonly channels: number;
    /** `taps` of the filter, `most` of a class. */
    readonly axes: readonly {
      readonly stride: number;
      readonly lead: number;
      readonly taps: number;
      readonly most: number;
    }[];
  };
}

/** Elements of the packed operand. */
export function packedElements(shape: PackShape): number {
  return shape.groups * shape.paddedRows * shape.depth;
}

/** Which of an operand's own depth lies closest together, where that is closer than its rows; else undefined. */
function depthFirst(shape: PackShape): "tap" | "channel" | undefined {
  const { taps, channels, tapStride, channelStride, rowStride, classes } = shape;
  if (classes !== undefined) return undefined;
  const tapFirst = taps > 1 && (channels === 1 || tapStride < channelStride);
  if ((tapFirst ? tapStride : channelStride) >= rowStride) return undefined;
  return tapFirst ? "tap" : "channel";
}

/** Workgroups of {@linkcode packStridedKernel}. */
export function packWorkgroups(shape: PackShape): number {
  return depthFirst(shape) === undefined
    ? Math.ceil(packedElements(shape) / 256)
    : shape.groups * Math.ceil(shape.paddedRows / 32) * Math.ceil(shape.depth / 32);
}

/**
 * Copies an operand of any strides to [group][depth][rows], padded, for {@linkcode packedLoader}: through workgroup
 * memory where its depth lies together, so that both sides move in whole lines. Binds `unpacked` and `packed`.
 */
export function packStridedKernel(
  shape: PackShape,
  mode: SizeMode,
  source: TensorSplit,
  packed: TensorSplit,
  element: Scalar = "f32",
): SizedKernel {
  const module = moduleBuilder(mode);
  const from = module.tensor("unpacked", "read", 1, source, element);
  const to = module.tensor("packed", "write", 1, packed, element);
  const { window } = shape;
  const first = depthFirst(shape);
  const name = `pack_strided_${element}${first === undefined ? "" : `_${first}`}${
    window ? "_window" : ""
  }${shape.classes ? `_${shape.classes.inner}${shape.classes.axes.length}d` : ""}${
    splitTrait(source, packed)
  }`;
  const size = (key: Exclude<keyof PackShape, "window" | "classes">) =>
    module.size(key, shape[key]);
  const outerTaps = window && module.size("outer_taps", window.outerTaps);
  const innerTaps = window && module.size("inner_taps", window.innerTaps);
  const sizes = {
    name,
    rows: size("rows"),
    paddedRows: size("paddedRows"),
    channels: size("channels"),
    paddedChannels: size("paddedChannels"),
    taps: size("taps"),
    depth: size("depth"),
    groupStride: size("groupStride"),
    rowStride: size("rowStride"),
    channelStride: size("channelStride"),
    tapStride: size("tapStride"),
    zero: zeroOf(from.value, 1),
    load: from.load("offset"),
    // A tap of the source by its place in the depth, and the other way around.
    fromTap: window ? `tap % ${outerTaps} * ${innerTaps} + tap / ${outerTaps}` : "tap",
    toTap: window ? `from_tap % ${innerTaps} * ${outerTaps} + from_tap / ${innerTaps}` : "from_tap",
  };
  const count = packedElements(shape);
  const classes = shape.classes && classTaps(module, shape.classes);
  const values = first === undefined
    ? {
      fromRow: "row",
      classes: undefined,
      ...classes,
      begin: eachElement(module.size("count", count)),
      store: (value: string) => to.store("i", value),
    }
    : {
      type: from.value,
      tapFirst: first === "tap",
      workgroups: module.size("workgroups", packWorkgroups(shape)),
      depthTiles: module.size("depth_tiles", Math.ceil(shape.depth / 32)),
      rowTiles: module.size("row_tiles", Math.ceil(shape.paddedRows / 32)),
      store: (value: string) =>
        to.store(`(group * ${sizes.depth} + depth) * ${sizes.paddedRows} + row`, value),
    };
  const wgsl = render(first === undefined ? directTemplate : stagedTemplate, {
    ...sizes,
    ...values,
    declarations: module.declarations(),
  });
  if (first === undefined) return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
  return sizedKernel(
    name,
    mode,
    wgsl,
    module,
    [32, 8, 1],
    33 * 32 * scalarBytes(from.value),
  );
}

/** Finds the channel of a row and its tap in the filter. */
function classTaps(
  module: ModuleBuilder,
  { inner, channels, axes }: NonNullable<PackShape["classes"]>,
) {
  const size = (name: string, value: number) => module.size(`class_${name}`, value);
  const count = size("count", axes.reduce((product, { stride }) => product * stride, 1));
  const rowChannels = size("channels", channels);
  const [channel, index] = inner === "channels"
    ? [`row % ${rowChannels}`, `row / ${rowChannels}`]
    : [`row / ${count}`, `row % ${count}`];
  const strides = axes.map(({ stride }, d) => size(`stride${d}`, stride));
  const most = axes.map(({ most }, d) => size(`most${d}`, most));
  const taps = axes.map(({ taps }, d) => size(`taps${d}`, taps));
  const leads = axes.map(({ lead }, d) => size(`lead${d}`, lead));
  const all = axes.map((_, d) => d);
  return {
    fromRow: `(${channel})`,
    fromTap: all.reduce(
      (text, d) => d === 0 ? "from0" : `(${text} * ${taps[d]} + from${d})`,
      "",
    ),
    classes: [
      digitsText(`(${index})`, "class_rest", axisDigits(all.map((d) => `class${d}`), strides)),
      digitsText("tap", "tap_rest", axisDigits(all.map((d) => `tap${d}`), most)),
      ...all.map((d) => `  let from${d} = class${d} + tap${d} * ${strides[d]} - ${leads[d]};`),
      `  let meets = ${all.map((d) => `from${d} < ${taps[d]}`).join(" && ")};`,
    ].join("\n"),
  };
}
