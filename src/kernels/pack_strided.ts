import template from "../../shaders/pack_strided.wgsl" with { type: "text" };
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

/** Copies an operand of any strides to [group][depth][rows], padded, for {@linkcode packedLoader}. */
export function packStridedKernel(
  shape: PackShape,
  mode: SizeMode,
  source: TensorSplit,
  packed: TensorSplit,
  element: StorageElement = "f32",
): SizedKernel {
  const module = moduleBuilder(mode);
  const from = module.tensor("unpacked", "read", 1, source, element);
  const to = module.tensor("packed", "write", 1, packed, element);
  const { window } = shape;
  const name = `pack_strided_${element}${window ? "_window" : ""}${splitTrait(source, packed)}`;
  const size = (key: Exclude<keyof PackShape, "window">) => module.size(key, shape[key]);
  const outerTaps = window && module.size("outer_taps", window.outerTaps);
  const values = {
    name,
    count: module.size("count", packedElements(shape)),
    rows: size("rows"),
    paddedRows: size("paddedRows"),
    channels: size("channels"),
    paddedChannels: size("paddedChannels"),
    depth: size("depth"),
    groupStride: size("groupStride"),
    rowStride: size("rowStride"),
    channelStride: size("channelStride"),
    tapStride: size("tapStride"),
    tap: window
      ? `(tap % ${outerTaps} * ${module.size("inner_taps", window.innerTaps)} + tap / ${outerTaps})`
      : "tap",
    // Depth beyond the last tap is padding too.
    store: to.store(
      "i",
      `select(${zeroOf(from.value, 1)}, ${from.load("offset")}, inside && tap < ${
        module.size("taps", shape.taps)
      })`,
    ),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}
