import type { Axis } from "../axes.ts";
import type { TileLoader } from "../loader.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { classSteps } from "../stride_classes.ts";
import { packedLoader } from "./packed.ts";
import { tapCountText } from "./taps.ts";

/** The tap of the filter along an axis that a workgroup's class has come to. */
export function classTap(module: ModuleBuilder, axes: readonly Axis[]): (axis: number) => string {
  return (d) =>
    `(class_tap${d} + b_tap${d} * ${module.size(`a_tap_step${d}`, classSteps(axes[d]!).step)})`;
}

/**
 * Loads a packed filter whose rows are the channels of a workgroup's class of strides (`classText()`), at the taps that
 * the gradient's `gatherLoader()` has come to, whose state it shares.
 *
 * @param packed Of all taps, whose channels are padded to whole steps.
 */
export function classFilterLoader(
  module: ModuleBuilder,
  access: TensorAccess,
  axes: readonly Axis[],
  packed: {
    readonly places: number;
    readonly depth: number;
    readonly tileDepth: number;
    readonly paddedChannels: number;
    readonly vector?: TileLoader["vector"];
  },
): TileLoader {
  const loader = packedLoader(module, "a", access, packed);
  const size = (name: string, value: number) => module.size(`a_${name}`, value);
  const taps = tapCountText(module, "a", axes.map(({ taps }) => taps), classTap(module, axes));
  const channels = size("padded_channels", packed.paddedChannels);
  return {
    ...loader,
    begin: "",
    step: `      let a_deep = ${taps} * ${channels} + b_block * ${packed.tileDepth}u;`,
    advance: "",
    place: (slot, place) => loader.place(slot, `(${place} - class_row)`),
  };
}
