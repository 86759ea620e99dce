import { stepState, type TileAccess, type TileLoader } from "../loader.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { PackShape } from "../pack.ts";
import { type Axis, tapCountText } from "../axes.ts";
import { classSteps } from "../stride_classes.ts";
import { packedLoader } from "./matrix.ts";

/** A filter that is read as it lies: a product's rows, deep along (tap, channel), channels fastest. */
export interface FilterShape extends
  Pick<
    PackShape,
    | "groups"
    | "channels"
    | "paddedChannels"
    | "strides"
    | "tapRows"
  > {
  /** Taps of each axis. */
  readonly taps: readonly number[];
  readonly along: "place" | "depth";
  /** Whether neighbours along that side are neighbours in memory. */
  readonly together: boolean;
  readonly vector: TileAccess["vector"];
  readonly tileDepth: number;
  /**
   * The step's tap of an axis, whose loop state `gatherLoader()` declares, but of a row's, which it has all of; absent where steps reach
   * into several other taps.
   */
  readonly tap?: (axis: number) => string;
  /** The filter's row of a row of the product; the same where absent. */
  readonly row?: (place: string) => string;
}

/**
 * A of implicit GEMM without a pass that packs it. Rows beyond the last are read from what follows, and stored nowhere.
 */
export function filterLoader(
  module: ModuleBuilder,
  filter: TensorAccess,
  shape: FilterShape,
): TileLoader {
  const { vector, along, together, tap, row: rowOf = (place) => place } = shape;
  const size = (name: string, value: number) => module.size(`filter_${name}`, value);
  // Kernels of one name differ in sizes only: a stride that happens to be 1 is a size.
  const far = (index: string, name: string, stride: number, side: "place" | "depth") =>
    together && along === side
      ? vector === 1 ? index : `${index} / ${vector}u`
      : `${index} * ${size(`${name}_stride`, stride / vector)}`;
  const channels = size("channels", shape.channels);
  const group = size("group_stride", shape.groups > 1 ? shape.strides.group / vector : 0);
  const tapCount = shape.taps.reduce((product, one) => product * one, 1);
  const tapStride = size("tap_stride", tapCount > 1 ? shape.strides.tap / vector : 0);
  const place = (slot: number, place: string) =>
    `  let a_base${slot} = group * ${group} + ${
      far(`(${rowOf(place)})`, "row", shape.strides.row, "place")
    };`;
  const load = (masked: boolean) => (p: number, k: number, target: string) =>
    `      ${target} = ${filter.load(`a_base${p} + a_far${k}`, masked ? [`a_in${k}`] : [])};`;
  const access = { vector, value: filter.value, along };
  if (tap !== undefined) {
    const { taps: runs, channels: deep, reversed } = shape.tapRows ??
      { taps: 1, channels: shape.tileDepth, reversed: false };
    const masked = module.mode === "uniform" || shape.channels % deep !== 0;
    const last = shape.taps.length - 1;
    const tapOf = (d: number) => runs > 1 && d === last ? "0u" : tap(d);
    // A depth's tap of the row, and its channel among the step's.
    const within = (row: string, run: number | undefined) => {
      if (runs === 1) return { tap: "a_tap", channel: row };
      const [forth, channel] = run === undefined
        ? [`${row} / ${deep}u`, `${row} % ${deep}u`]
        : [`${run}u`, row];
      return { tap: `(a_tap + ${reversed ? `${runs - 1}u - ${forth}` : forth})`, channel };
    };
    return {
      access: { ...access, ...(runs > 1 && { runs }) },
      state: {
        begin: "",
        step: `      let a_tap = ${tapCountText(module, "filter", shape.taps, tapOf)};`,
        advance: "",
      },
      place,
      depth: (slot, row, run) => {
        const { tap, channel } = within(row, run);
        return [
          `      let a_c${slot} = b_block * ${deep}u + ${channel};`,
          ...(masked ? [`      let a_in${slot} = a_c${slot} < ${channels};`] : []),
          `      let a_far${slot} = ${tap} * ${tapStride} + ${
            far(`a_c${slot}`, "channel", shape.strides.channel, "depth")
          };`,
        ].join("\n");
      },
      load: load(masked),
    };
  }
  const padded = size("padded_channels", shape.paddedChannels);
  const taps = size("taps", tapCount);
  return {
    access,
    state: stepState("a"),
    place,
    depth: (slot, row) =>
      [
        `      let a_k${slot} = a_step * ${shape.tileDepth}u + ${row};`,
        `      let a_in${slot} = a_k${slot} < ${padded} * ${taps};`,
        `      let a_far${slot} = ${
          far(`(a_k${slot} % ${padded})`, "channel", shape.strides.channel, "depth")
        } + ` +
        `(a_k${slot} / ${padded}) * ${tapStride};`,
      ].join("\n"),
    load: load(true),
  };
}

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
    readonly vector?: TileAccess["vector"];
  },
): TileLoader {
  const loader = packedLoader(module, "a", access, packed);
  const size = (name: string, value: number) => module.size(`a_${name}`, value);
  const taps = tapCountText(module, "a", axes.map(({ taps }) => taps), classTap(module, axes));
  const channels = size("padded_channels", packed.paddedChannels);
  return {
    ...loader,
    state: {
      begin: "",
      step: `      let a_deep = ${taps} * ${channels} + b_block * ${packed.tileDepth}u;`,
      advance: "",
    },
    place: (slot, place) => loader.place(slot, `(${place} - class_row)`),
  };
}
