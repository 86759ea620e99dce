import { range } from "../lists.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { type Axis, axisDigits, digitsText, reachesOutside } from "../axes.ts";
import type { TileLoader } from "../loader.ts";
import { zeroOf } from "../../elements/scalar.ts";

/**
 * The depth of backward-filter: (image, place) of the output gradient, in the order that lies
 * contiguously in memory.
 */
export interface CorrelationDepth {
  readonly batch: number;
  /** Output size, one entry a spatial axis. */
  readonly places: readonly number[];
  /** Depth counts images fastest (chwn). */
  readonly batchInner: boolean;
  /** Places of all images follow each other in the operand, so that it is one image's. */
  readonly flat?: boolean;
  readonly tileDepth: number;
}

interface LoaderText {
  readonly operand: "a" | "b";
  readonly module: ModuleBuilder;
  readonly depth: CorrelationDepth;
}

/** Places of an image. */
function totalOf({ places }: CorrelationDepth): number {
  return places.reduce((product, size) => product * size, 1);
}

/** Whether the last step reaches beyond the depth. */
function isRagged({ module, depth }: LoaderText): boolean {
  return module.mode === "uniform" || depth.batch * totalOf(depth) % depth.tileDepth !== 0;
}

/** Declares `{operand}_image{slot}`, `{operand}_spot{slot}` and `{operand}_in{slot}` of a depth slot. */
function depthText({ operand, module, depth }: LoaderText, slot: number, row: string): string {
  const total = totalOf(depth);
  const batch = module.size("batch", depth.batch);
  const places = module.size("places", total);
  const at = `${operand}_d${slot}`;
  const alone = depth.flat || module.mode === "constant" && depth.batch === 1;
  const [image, spot] = alone
    ? ["0u", at]
    : depth.batchInner
    ? [`${at} % ${batch}`, `${at} / ${batch}`]
    : [`${at} / ${places}`, `${at} % ${places}`];
  return [
    `      let ${at} = ${operand}_step * ${depth.tileDepth}u + ${row};`,
    ...(isRagged({ operand, module, depth })
      ? [`      let ${operand}_in${slot} = ${at} < ${batch} * ${places};`]
      : []),
    `      let ${operand}_image${slot} = ${image};`,
    `      let ${operand}_spot${slot} = ${spot};`,
  ].join("\n");
}

const stepState = (operand: string) => ({
  begin: `  var ${operand}_step = first_step;`,
  step: "",
  advance: `      ${operand}_step += 1u;`,
});

/** Strides of a tensor that has the places of the depth, in elements; the spatial axes are contiguous among themselves. */
export interface PlacesShape {
  /** Channels of a group. */
  readonly channels: number;
  readonly channelStride: number;
  readonly batchStride: number;
  readonly placeStride: number;
  readonly vector: TileLoader["vector"];
  readonly along: "place" | "depth";
}

/**
 * An operand of backward-filter whose depth is its own places: A, whose rows are channels of the output gradient, and B of a
 * filter that meets the input place by place, whose columns are channels of that.
 */
export function placesLoader(
  module: ModuleBuilder,
  operand: "a" | "b",
  tensor: TensorAccess,
  depth: CorrelationDepth,
  shape: PlacesShape,
): TileLoader {
  const { vector } = shape;
  const text: LoaderText = { operand, module, depth };
  const name = operand === "a" ? "gradient" : "input";
  const scaled = (stride: string, index: string, elements: number, contiguous: boolean) =>
    vector !== 1 && contiguous
      ? `${index} / ${vector}u`
      : `${index} * ${module.size(`${name}_${stride}`, elements / vector)}`;
  const alongPlace = shape.along === "place";
  const group = module.size(`${name}_group`, shape.channels * shape.channelStride / vector);
  return {
    vector,
    value: tensor.value,
    along: shape.along,
    ...stepState(operand),
    place: (slot, row) =>
      `  let ${operand}_base${slot} = group * ${group} + ${
        scaled("channel_stride", row, shape.channelStride, alongPlace)
      };`,
    depth: (slot, row) =>
      [
        depthText(text, slot, row),
        `      let ${operand}_far${slot} = ${
          scaled(
            "batch_stride",
            `${operand}_image${slot}`,
            shape.batchStride,
            !alongPlace && depth.batchInner,
          )
        } + ${
          scaled(
            "place_stride",
            `${operand}_spot${slot}`,
            shape.placeStride,
            !alongPlace && !depth.batchInner,
          )
        };`,
      ].join("\n"),
    placeStep: () => "",
    load: (p, k, target) => {
      const value = tensor.load(`${operand}_base${p} + ${operand}_far${k}`);
      const zero = zeroOf(tensor.value, tensor.vector);
      return `      ${target} = ${
        isRagged(text) ? `select(${zero}, ${value}, ${operand}_in${k})` : value
      };`;
    },
  };
}

export interface ShiftedInputShape {
  readonly axes: readonly Axis[];
  /** Input channels of a group. */
  readonly channels: number;
  readonly channelStride: number;
  readonly batchStride: number;
  /** Columns count channels fastest (krsc) instead of taps. */
  readonly channelsInner: boolean;
  readonly vector: TileLoader["vector"];
  readonly along: "place" | "depth";
}

/** B of backward-filter: columns are (channel, tap), depth runs over the input at each output place. */
export function shiftedInputLoader(
  module: ModuleBuilder,
  input: TensorAccess,
  depth: CorrelationDepth,
  shape: ShiftedInputShape,
): TileLoader {
  const { axes, vector } = shape;
  const text: LoaderText = { operand: "b", module, depth };
  const size = (name: string, value: number) => module.size(`input_${name}`, value);
  const channels = size("channels", shape.channels);
  const tapCount = size("taps", axes.reduce((product, axis) => product * axis.taps, 1));
  const group = size("group", shape.channels * shape.channelStride / vector);
  const channelFar = (index: string) =>
    vector !== 1 && shape.along === "place"
      ? `${index} / ${vector}u`
      : `${index} * ${size("channel_stride", shape.channelStride / vector)}`;
  const batchFar = (index: string) =>
    vector !== 1 && shape.along === "depth"
      ? `${index} / ${vector}u`
      : `${index} * ${size("batch_stride", shape.batchStride / vector)}`;
  const all = range(axes.length);
  const step = axes.map((axis, d) => size(`step${d}`, axis.sourceStride / vector));
  return {
    vector,
    value: input.value,
    along: shape.along,
    // Of each of a thread's places where it begins and its shift along each axis: in `tall` 219 registers for 168.
    highRegisterPressure: vector === 1 && shape.along === "depth" && !depth.batchInner,
    ...stepState("b"),
    place: (slot, column) => {
      const [channel, tap] = shape.channelsInner
        ? [`b_column${slot} % ${channels}`, `b_column${slot} / ${channels}`]
        : [`b_column${slot} / ${tapCount}`, `b_column${slot} % ${tapCount}`];
      const tapOf = (d: number) => `b_tap${slot}_${d}`;
      const taps = axes.map((axis, d) => size(`taps${d}`, axis.taps));
      return [
        `  let b_column${slot} = ${column};`,
        digitsText(`(${tap})`, `b_taps${slot}_`, axisDigits(all.map(tapOf), taps)),
        ...axes.map((axis, d) =>
          `  let b_shift${slot}_${d} = ${tapOf(d)} * ${size(`dilation${d}`, axis.dilation)} - ${
            size(`padding${d}`, axis.padding)
          };`
        ),
        `  let b_base${slot} = group * ${group} + ${channelFar(`(${channel})`)} + ${
          all.map((d) => `b_shift${slot}_${d} * ${step[d]}`).join(" + ")
        };`,
      ].join("\n");
    },
    depth: (slot, row) => {
      const placeOf = (d: number) => `b_place${slot}_${d}`;
      const places = axes.map((axis, d) => size(`places${d}`, axis.places));
      return [
        depthText(text, slot, row),
        digitsText(
          `b_spot${slot}`,
          `b_rest${slot}_`,
          axisDigits(all.map(placeOf), places),
          "      ",
        ),
        ...axes.map((axis, d) =>
          `      let b_at${slot}_${d} = ${placeOf(d)} * ${size(`stride${d}`, axis.stride)};`
        ),
        `      let b_far${slot} = ${batchFar(`b_image${slot}`)} + ${
          all.map((d) => `b_at${slot}_${d} * ${step[d]}`).join(" + ")
        };`,
      ].join("\n");
    },
    placeStep: () => "",
    load: (p, k, target) => {
      // Unsigned sums: a coordinate below zero is huge. Offsets wrap the same way and meet again.
      const inside = all
        .filter((d) => module.mode === "uniform" || reachesOutside(axes[d]!, "forward"))
        .map((d) => `b_at${k}_${d} + b_shift${p}_${d} < ${size(`size${d}`, axes[d]!.size)}`);
      const conditions = [...(isRagged(text) ? [`b_in${k}`] : []), ...inside];
      const value = input.load(`b_base${p} + b_far${k}`);
      const zero = zeroOf(input.value, input.vector);
      return `      ${target} = ${
        conditions.length > 0 ? `select(${zero}, ${value}, ${conditions.join(" && ")})` : value
      };`;
    },
  };
}
