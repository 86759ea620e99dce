import { product, range } from "../lists.ts";
import { type Axis, axisDigits, digitsText, reachesOutside } from "../axes.ts";
import { stepState, type TileAccess, type TileLoader } from "../loader.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";

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

/** Text of an operand's depth: declares `{operand}_image{slot}` and `{operand}_spot{slot}` of a slot; and what says whether it is there. */
function depthText(
  module: ModuleBuilder,
  operand: "a" | "b",
  { batch, places, batchInner, flat, tileDepth }: CorrelationDepth,
) {
  const ragged = module.mode === "uniform" || batch * product(places) % tileDepth !== 0;
  return {
    inside: (slot: number) => ragged ? [`${operand}_in${slot}`] : [],
    declare(slot: number, row: string): string[] {
      const images = module.size("batch", batch);
      const spots = module.size("places", product(places));
      const at = `${operand}_d${slot}`;
      const [image, spot] = flat || module.mode === "constant" && batch === 1
        ? ["0u", at]
        : batchInner
        ? [`${at} % ${images}`, `${at} / ${images}`]
        : [`${at} / ${spots}`, `${at} % ${spots}`];
      return [
        `      let ${at} = ${operand}_step * ${tileDepth}u + ${row};`,
        ...(ragged ? [`      let ${operand}_in${slot} = ${at} < ${images} * ${spots};`] : []),
        `      let ${operand}_image${slot} = ${image};`,
        `      let ${operand}_spot${slot} = ${spot};`,
      ];
    },
  };
}

/** Strides of a tensor that has the places of the depth, in elements; the spatial axes are contiguous among themselves. */
export interface PlacesShape {
  /** Channels of a group. */
  readonly channels: number;
  readonly channelStride: number;
  readonly batchStride: number;
  readonly placeStride: number;
  readonly vector: TileAccess["vector"];
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
  { vector, along, ...shape }: PlacesShape,
): TileLoader {
  const text = depthText(module, operand, depth);
  const name = operand === "a" ? "gradient" : "input";
  const size = (what: string, elements: number) =>
    module.size(`${name}_${what}`, elements / vector);
  const far = (what: string, index: string, elements: number, contiguous: boolean) =>
    vector !== 1 && contiguous ? `${index} / ${vector}u` : `${index} * ${size(what, elements)}`;
  const deep = along === "depth";
  const group = size("group", shape.channels * shape.channelStride);
  return {
    access: { vector, value: tensor.value, along },
    state: stepState(operand),
    place(slot, row) {
      const channel = far("channel_stride", row, shape.channelStride, !deep);
      return `  let ${operand}_base${slot} = group * ${group} + ${channel};`;
    },
    depth(slot, row) {
      const [image, spot] = [`${operand}_image${slot}`, `${operand}_spot${slot}`];
      const own = text.declare(slot, row);
      const images = far("batch_stride", image, shape.batchStride, deep && depth.batchInner);
      const spots = far("place_stride", spot, shape.placeStride, deep && !depth.batchInner);
      return [...own, `      let ${operand}_far${slot} = ${images} + ${spots};`].join("\n");
    },
    load: (p, k, target) =>
      `      ${target} = ${
        tensor.load(`${operand}_base${p} + ${operand}_far${k}`, text.inside(k))
      };`,
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
  readonly vector: TileAccess["vector"];
  readonly along: "place" | "depth";
}

/** B of backward-filter: columns are (channel, tap), depth runs over the input at each output place. */
export function shiftedInputLoader(
  module: ModuleBuilder,
  input: TensorAccess,
  depth: CorrelationDepth,
  { axes, vector, along, ...shape }: ShiftedInputShape,
): TileLoader {
  const text = depthText(module, "b", depth);
  const size = (name: string, value: number) => module.size(`input_${name}`, value);
  const channels = size("channels", shape.channels);
  const tapCount = size("taps", product(axes.map(({ taps }) => taps)));
  const group = size("group", shape.channels * shape.channelStride / vector);
  const far = (index: string, name: string, stride: number, side: "place" | "depth") =>
    vector !== 1 && along === side
      ? `${index} / ${vector}u`
      : `${index} * ${size(name, stride / vector)}`;
  const all = range(axes.length);
  const step = axes.map((axis, d) => size(`step${d}`, axis.sourceStride / vector));
  const steps = (at: string) => all.map((d) => `${at}_${d} * ${step[d]}`).join(" + ");
  return {
    access: { vector, value: input.value, along },
    // Of each of a thread's places where it begins and its shift along each axis: in `tall` 219 registers for 168.
    highRegisterPressure: vector === 1 && along === "depth" && !depth.batchInner,
    state: stepState("b"),
    place(slot, column) {
      const [channel, tap] = shape.channelsInner
        ? [`b_column${slot} % ${channels}`, `b_column${slot} / ${channels}`]
        : [`b_column${slot} / ${tapCount}`, `b_column${slot} % ${tapCount}`];
      const names = all.map((d) => `b_tap${slot}_${d}`);
      const taps = axisDigits(names, axes.map((axis, d) => size(`taps${d}`, axis.taps)));
      return [
        `  let b_column${slot} = ${column};`,
        digitsText(`(${tap})`, `b_taps${slot}_`, taps),
        ...axes.map(({ dilation, padding }, d) =>
          `  let b_shift${slot}_${d} = ${names[d]} * ${size(`dilation${d}`, dilation)} - ${
            size(`padding${d}`, padding)
          };`
        ),
        `  let b_base${slot} = group * ${group} + ${
          far(`(${channel})`, "channel_stride", shape.channelStride, "place")
        } + ${steps(`b_shift${slot}`)};`,
      ].join("\n");
    },
    depth(slot, row) {
      const names = all.map((d) => `b_place${slot}_${d}`);
      const places = axisDigits(names, axes.map((axis, d) => size(`places${d}`, axis.places)));
      return [
        ...text.declare(slot, row),
        digitsText(`b_spot${slot}`, `b_rest${slot}_`, places, "      "),
        ...axes.map(({ stride }, d) =>
          `      let b_at${slot}_${d} = ${names[d]} * ${size(`stride${d}`, stride)};`
        ),
        `      let b_far${slot} = ${
          far(`b_image${slot}`, "batch_stride", shape.batchStride, "depth")
        } + ${steps(`b_at${slot}`)};`,
      ].join("\n");
    },
    load(p, k, target) {
      // Unsigned sums: a coordinate below zero is huge. Offsets wrap the same way and meet again.
      const inside = all
        .filter((d) => module.mode === "uniform" || reachesOutside(axes[d]!, "forward"))
        .map((d) => `b_at${k}_${d} + b_shift${p}_${d} < ${size(`size${d}`, axes[d]!.size)}`);
      const value = input.load(`b_base${p} + b_far${k}`, [...text.inside(k), ...inside]);
      return `      ${target} = ${value};`;
    },
  };
}
