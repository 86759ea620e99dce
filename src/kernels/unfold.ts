import template from "../../shaders/unfold.wgsl" with { type: "text" };
import { type Scalar, typeName, zeroOf } from "../elements/scalar.ts";
import { type Axis, digitsText } from "./axes.ts";
import {
  eachElement,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

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

/** Elements that a thread stores at once: of int8 four words. */
function storedVector({ paddedChannels }: UnfoldShape, element: Scalar): 1 | 4 | 16 {
  if (element === "i8") return 16;
  return paddedChannels % 4 === 0 ? 4 : 1;
}

/** Workgroups of {@linkcode unfoldKernel}. */
export function unfoldWorkgroups(shape: UnfoldShape, element: Scalar): number {
  return Math.ceil(unfoldedElements(shape) / storedVector(shape, element) / 256);
}

/**
 * Copies a tensor to [batch][rows][places][taps·channels], padded; of int8 to a multiple of 16. Binds `unpacked` and `packed`, of int8 both
 * as words.
 */
export function unfoldKernel(
  shape: UnfoldShape,
  mode: SizeMode,
  source: TensorSplit,
  packed: TensorSplit,
  element: Scalar,
): SizedKernel {
  const module = moduleBuilder(mode);
  const vector = storedVector(shape, element);
  const bytes = element === "i8";
  const stored = bytes ? "u32" : element;
  const from = module.tensor("unpacked", "read", 1, source, stored);
  const to = module.tensor("packed", "write", vector === 1 ? 1 : 4, packed, stored);
  const { axis } = shape;
  const name = `unfold_${element}x${vector}${splitTrait(source, packed)}`;
  const size = (key: Exclude<keyof UnfoldShape, "axis" | "batch" | "paddedChannels">) =>
    module.size(key, shape[key]);
  const along = (key: keyof Axis) => module.size(`axis_${key}`, axis[key]);
  const vectors = module.size("vectors", shape.paddedChannels / vector);
  const elements = Array.from(
    { length: vector },
    (_, e) => `element(batch, row, place, vector * ${vector}u + ${e}u)`,
  );
  const words = Array.from(
    { length: 4 },
    (_, w) => `word(${elements.slice(4 * w, 4 * w + 4).join(", ")})`,
  );
  const wgsl = render(template, {
    name,
    value: from.value,
    zero: zeroOf(from.value, 1),
    load: (offset: string) =>
      bytes ? `${from.load(`${offset} / 4u`)} >> (${offset} % 4u * 8u)` : from.load(offset),
    bytes,
    channels: size("channels"),
    batchStride: size("batchStride"),
    rowStride: size("rowStride"),
    channelStride: size("channelStride"),
    taps: along("taps"),
    size: along("size"),
    stride: along("stride"),
    padding: along("padding"),
    dilation: along("dilation"),
    sourceStride: along("sourceStride"),
    begin: eachElement(module.size("count", unfoldedElements(shape) / vector)),
    digits: digitsText("i", "rest", [
      { name: "vector", radix: vectors },
      { name: "place", radix: along("places") },
      { name: "row", radix: size("rows") },
      { name: "batch", radix: "" },
    ]),
    store: to.store(
      "i",
      `${typeName(to.value, vector === 1 ? 1 : 4)}(${(bytes ? words : elements).join(", ")})`,
    ),
    declarations: module.declarations(),
  });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}
