import stagedTemplate from "../../shaders/pack_staged.wgsl" with { type: "text" };
import directTemplate from "../../shaders/pack_strided.wgsl" with { type: "text" };
import {
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
}

/** Elements of the packed operand. */
export function packedElements(shape: PackShape): number {
  return shape.groups * shape.paddedRows * shape.depth;
}

/** Which of an operand's own depth lies closest together, where that is closer than its rows; else undefined. */
function depthFirst(shape: PackShape): "tap" | "channel" | undefined {
  const { taps, channels, tapStride, channelStride, rowStride } = shape;
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
  }${splitTrait(source, packed)}`;
  const size = (key: Exclude<keyof PackShape, "window">) => module.size(key, shape[key]);
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
  const values = first === undefined
    ? {
      count: module.size("count", count),
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
