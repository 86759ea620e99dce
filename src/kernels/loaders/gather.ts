import { range } from "../lists.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { type Axis, axisDigits, digitsText, type Direction, reachesOutside } from "../axes.ts";
import type { TapRow, TileLoader } from "../loader.ts";
import { fitsWord, tapWordText } from "./taps.ts";
import { zeroOf } from "../../elements/scalar.ts";

export interface GatherShape {
  readonly direction: Direction;
  readonly axes: readonly Axis[];
  /** Backward: columns are places of the workgroup's class of strides (`classText()`), whose taps a step lies within. */
  readonly classes?: boolean;
  readonly batch: number;
  /** Source channels of a group. */
  readonly channels: number;
  /** Channels in the depth order, at least `channels`: a multiple of the tile depth, or `channels` itself. */
  readonly paddedChannels: number;
  readonly batchStride: number;
  readonly channelStride: number;
  /** Columns count images fastest (chwn) instead of places. */
  readonly batchInner: boolean;
  /** 4 where columns count four images at one place after each other, as {@linkcode ColumnOrder} does. */
  readonly interleave: 1 | 4;
  readonly vector: TileLoader["vector"];
  readonly along: "place" | "depth";
  /** Elements from a place to the next in memory, where they do not lie beside each other. */
  readonly pitch?: number | undefined;
  readonly tileDepth: number;
  readonly walk: GatherWalk;
}

/**
 * What a step of the loop reaches into: the only tap there is, so that columns stay where they are; one tap, where the padded
 * channels are a multiple of the tile depth; several, so that each depth is taken apart; or a row of taps along the last axis, of which
 * every place is loaded once for all of them.
 */
export type GatherWalk = "point" | "tap" | "linear" | WalkedRow;

/** A row of results as columns count it where a step reaches into a row of taps. */
export interface WalkedRow extends TapRow {
  /** Columns of a row: its results, then such as are none and fall away. */
  readonly places: number;
  /** Places of the source before the first that a row's first result takes of it. */
  readonly lead: number;
}

/**
 * How a row of results along an axis of stride 1 is walked by rows of taps. Sources of all rows follow each other with zeros
 * between, as many as taps reach beyond either end, so that a tap is so many places from the next wherever a row begins. Undefined
 * where taps of the first results would begin within the source.
 */
export function walkedRow(
  { places, taps, size, padding, dilation }: Axis,
  direction: Direction,
): WalkedRow | undefined {
  const reach = (taps - 1) * dilation;
  const lead = direction === "forward" ? padding : reach - padding;
  const after = places - 1 + reach - lead - (size - 1);
  if (lead < 0) return undefined;
  return { taps, dilation, places: Math.max(places, size + Math.max(lead, after)), lead };
}

/** `row3`, `row3x2`: taps of a row and their dilation, as they stand in kernel names. */
export function rowTrait({ taps, dilation }: TapRow): string {
  return `row${taps}${dilation === 1 ? "" : `x${dilation}`}`;
}

/**
 * Implicit GEMM's B operand for forward and backward-data: column = (image, place), depth = (tap,
 * channel), channels fastest.
 */
export function gatherLoader(
  module: ModuleBuilder,
  source: TensorAccess,
  shape: GatherShape,
): TileLoader {
  const { axes, classes = false, vector } = shape;
  const forward = shape.direction === "forward";
  const size = (name: string, value: number) => module.size(`gather_${name}`, value);
  const elements = (name: string, stride: number) => size(name, stride / vector);
  const masked = module.mode === "uniform" || shape.channels !== shape.paddedChannels;
  // Channels of a step.
  const row = typeof shape.walk === "string" ? undefined : shape.walk;
  const deep = shape.tileDepth / (row?.taps ?? 1);
  const blocks = size("blocks", Math.ceil(shape.paddedChannels / deep));
  const channels = size("channels", shape.channels);
  const padded = size("padded_channels", shape.paddedChannels);
  const batch = size("batch", shape.batch);
  const places = size("places", axes.reduce((product, axis) => product * axis.places, 1));
  const taps = axes.map((axis, d) => classes ? `class_taps${d}` : size(`taps${d}`, axis.taps));
  const tapCount = classes
    ? "class_taps"
    : size("taps", axes.reduce((product, axis) => product * axis.taps, 1));
  const sizes = axes.map((axis, d) => size(`size${d}`, axis.size));
  const strides = forward ? axes.map((axis, d) => size(`stride${d}`, axis.stride)) : [];
  const paddings = classes ? [] : axes.map((axis, d) => size(`padding${d}`, axis.padding));
  const dilations = axes.map((axis, d) => size(`dilation${d}`, axis.dilation));
  const widths = axes.map((axis, d) => size(`places${d}`, axis.places));
  const steps = axes.map((axis, d) => elements(`step${d}`, axis.sourceStride));
  const groupStride = elements("group_stride", shape.channels * shape.channelStride);
  const batchStride = vector !== 1 && shape.batchStride === 1
    ? undefined
    : elements("batch_stride", shape.batchStride);
  const channelStride = vector !== 1 && shape.channelStride === 1
    ? undefined
    : elements("channel_stride", shape.channelStride);
  const unit = (index: string, stride: string | undefined) =>
    stride === undefined ? `${index} / ${vector}u` : `${index} * ${stride}`;
  // The tap of a depth index, one coordinate an axis.
  const tapsOf = (tap: string, name: (d: number) => string, indent: string) =>
    digitsText(tap, `${name(0)}_rest`, axisDigits(axes.map((_, d) => name(d)), taps), indent);
  // Source coordinate and whether it exists, for origin `o` and tap `k`. Unsigned: below zero is huge.
  const reach = (d: number, o: string, k: string, suffix: string) => [
    `      let at${d}${suffix} = ${o} ${forward ? "+" : "-"} ${k} * ${dilations[d]};`,
    `      let in${d}${suffix} = at${d}${suffix} < ${sizes[d]};`,
  ];
  // Source coordinate of a place and tap 0.
  const origin = (d: number, at: string) =>
    forward
      ? `${at} * ${strides[d]} - ${paddings[d]}`
      : `${at} + ${classes ? `class_origin${d}` : paddings[d]}`;
  const gathered = (placeSlot: number, tap: (d: number) => string, suffix: string) => {
    const all = range(axes.length);
    return [
      ...all.flatMap((d) => reach(d, `b_origin${placeSlot}_${d}`, tap(d), suffix)),
      `      let inside${suffix} = ${all.map((d) => `in${d}${suffix}`).join(" && ")};`,
      `      let offset${suffix} = b_base${placeSlot} + ${
        all.map((d) => `at${d}${suffix} * ${steps[d]}`).join(" + ")
      };`,
    ].join("\n");
  };
  // The next tap of the first axes, up to this one.
  const nextTap = (d: number): string =>
    d < 0
      ? ""
      : d === 0
      ? "b_tap0 += 1u;"
      : `b_tap${d} += 1u; if (b_tap${d} == ${taps[d]}) { b_tap${d} = 0u; ${nextTap(d - 1)} }`;
  const zero = zeroOf(source.value, source.vector);
  const beyond = masked || shape.channels % deep !== 0;

  const place = (slot: number, column: string) => {
    const [image, spot] = shape.batchInner
      ? [`b_column${slot} % ${batch}`, `b_column${slot} / ${batch}`]
      : shape.interleave === 4
      ? [
        `b_column${slot} / 4u / ${places} * 4u + b_column${slot} % 4u`,
        `b_column${slot} / 4u % ${places}`,
      ]
      : [`b_column${slot} / ${places}`, `b_column${slot} % ${places}`];
    const at = (d: number) => `b_place${slot}_${d}`;
    return [
      `  let b_column${slot} = ${column};`,
      `  let b_base${slot} = ${unit(`(${image})`, batchStride)} + group * ${groupStride};`,
      digitsText(`(${spot})`, `b_rest${slot}_`, axisDigits(axes.map((_, d) => at(d)), widths)),
      ...axes.map((_, d) => `  let b_origin${slot}_${d} = ${origin(d, at(d))};`),
    ].join("\n");
  };

  const channelDepth = (slot: number, row: string) =>
    [
      `      let b_c${slot} = b_channel + ${row};`,
      `      let b_far${slot} = ${unit(`b_c${slot}`, channelStride)};`,
    ].join("\n");
  const channelStep = `      let b_channel = b_block * ${deep}u;`;
  const loaded = (value: string, k: number) =>
    beyond ? `select(${zero}, ${value}, b_c${k} < ${channels})` : value;

  const common = {
    vector,
    value: source.value,
    along: shape.along,
    // Where only the device knows sizes one text is all pitches': that of most, whose places share no line.
    ...(module.mode === "constant" && shape.pitch !== undefined ? { pitch: shape.pitch } : {}),
  };
  if (shape.walk === "point") {
    const outside = module.mode === "uniform" ||
      axes.some((axis) => reachesOutside(axis, shape.direction));
    return {
      ...common,
      begin: "  var b_block = first_step;",
      step: channelStep,
      advance: "      b_block += 1u;",
      place: (slot, column) => {
        const at = (d: number) => `b_origin${slot}_${d}`;
        const all = range(axes.length);
        return [
          place(slot, column),
          `  let b_offset${slot} = b_base${slot} + ${
            all.map((d) => `${at(d)} * ${steps[d]}`).join(" + ")
          };`,
          ...(outside
            ? [`  let b_keep${slot} = ${all.map((d) => `${at(d)} < ${sizes[d]}`).join(" && ")};`]
            : []),
        ].join("\n");
      },
      depth: channelDepth,
      placeStep: () => "",
      load: (p, k, target) =>
        `      ${target} = ${loaded(source.load(`b_offset${p} + b_far${k}`), k)};`,
      ...(outside
        ? { mask: (p: number, value: string) => `select(${zero}, ${value}, b_keep${p})` }
        : {}),
    };
  }

  // Axes along which a step has a tap of its own.
  const last = axes.length - 1;
  const walked = row === undefined ? axes : axes.slice(0, last);
  const each = range(walked.length);
  // The arithmetic of a step is in the way of its products: where a place lies is found once, but for what the step's tap adds to all
  // places alike. Not where only the device knows the taps.
  const once = module.mode === "constant" && !classes && fitsWord(walked);
  const sum = (...terms: string[]) => terms.join(" + ");
  const tapPlaces = (d: number) => `b_tap${d} * ${dilations[d]}`;
  const blockState = {
    begin: [
      `  var b_block = first_step % ${blocks};`,
      ...each.map((d) => `  var b_tap${d} = 0u;`),
      ...(walked.length === 0 ? [] : [
        "  {",
        digitsText(
          `(first_step / ${blocks})`,
          "first_rest",
          axisDigits(each.map((d) => `first${d}`), taps.slice(0, walked.length)),
          "    ",
        ),
        ...each.map((d) => `    b_tap${d} = first${d};`),
        "  }",
      ]),
      ...(once ? [`  var b_bit = 1u << (first_step / ${blocks});`] : []),
    ].join("\n"),
    step: [
      channelStep,
      ...(once && walked.length > 0
        ? [
          `      let b_tap_far = ${
            sum(...each.map((d) => `${forward ? "" : "0u - "}${tapPlaces(d)} * ${steps[d]}`))
          };`,
        ]
        : []),
    ].join("\n"),
    advance: `      b_block += 1u; if (b_block == ${blocks}) { b_block = 0u; ${
      once ? "b_bit <<= 1u; " : ""
    }${nextTap(walked.length - 1)} }`,
    depth: once && walked.length > 0
      ? (slot: number, row: string) =>
        [
          `      let b_c${slot} = b_channel + ${row};`,
          `      let b_far${slot} = ${sum(unit(`b_c${slot}`, channelStride), "b_tap_far")};`,
        ].join("\n")
      : channelDepth,
    load: (p: number, k: number, target: string) =>
      `      ${target} = ${
        loaded(source.load(`${once ? `b_fixed${p}` : `offset_p${p}`} + b_far${k}`), k)
      };`,
    mask: (p: number, value: string) => `select(${zero}, ${value}, b_keep${p})`,
  };
  // Where a place lies at tap 0, and at which taps it lies inside.
  const found = (slot: number, there: string | undefined) => {
    const at = (d: number, places: number) =>
      `b_origin${slot}_${d} ${forward ? "+" : "-"} ${places}u`;
    const inside = walked.length === 0 ? "1u" : `b_taps${slot}_0`;
    return [
      `  let b_fixed${slot} = ${
        sum(`b_base${slot}`, ...each.map((d) => `b_origin${slot}_${d} * ${steps[d]}`))
      };`,
      tapWordText(`b_taps${slot}_`, walked, shape.direction, at, (d) => sizes[d]!),
      `  let b_inside${slot} = ${
        there === undefined ? inside : `select(0u, ${inside}, ${there})`
      };`,
    ].filter((line) => line !== "").join("\n");
  };
  const keptOnce = (slot: number) => `      b_keep${slot} = (b_inside${slot} & b_bit) != 0u;`;

  if (row !== undefined) {
    const { places, lead, ...tapRow } = row;
    const width = size("row_places", places);
    const rows = size("rows", walked.reduce((product, axis) => product * axis.places, 1));
    const at = (slot: number, d: number) => `b_place${slot}_${d}`;
    return {
      ...common,
      ...blockState,
      tapRow,
      place: (slot, column) =>
        [
          // A row's places before the first are the last ones of the row before, so that none lies below zero.
          `  let b_cell${slot} = ${column} + ${width} - ${size("lead", lead)};`,
          `  let b_row${slot} = b_cell${slot} / ${width} - 1u;`,
          `  let b_x${slot} = b_cell${slot} % ${width};`,
          `  let b_base${slot} = ${unit(`(b_row${slot} / ${rows})`, batchStride)} + group * ` +
          `${groupStride} + b_x${slot} * ${steps[last]};`,
          `  let b_there${slot} = b_x${slot} < ${
            sizes[last]
          } && b_row${slot} < ${batch} * ${rows};`,
          ...(last === 0 ? [] : [
            digitsText(
              `(b_row${slot} % ${rows})`,
              `b_rest${slot}_`,
              axisDigits(each.map((d) => at(slot, d)), widths.slice(0, last)),
            ),
            ...each.map((d) => `  let b_origin${slot}_${d} = ${origin(d, at(slot, d))};`),
          ]),
          ...(once ? [found(slot, `b_there${slot}`)] : []),
          `  var b_keep${slot} = false;`,
        ].join("\n"),
      placeStep: (slot) =>
        once ? keptOnce(slot) : [
          ...each.flatMap((d) => reach(d, `b_origin${slot}_${d}`, `b_tap${d}`, `_p${slot}`)),
          `      let offset_p${slot} = ${
            sum(`b_base${slot}`, ...each.map((d) => `at${d}_p${slot} * ${steps[d]}`))
          };`,
          `      b_keep${slot} = ${
            [`b_there${slot}`, ...each.map((d) => `in${d}_p${slot}`)].join(" && ")
          };`,
        ].join("\n"),
    };
  }

  if (shape.walk === "tap") {
    return {
      ...common,
      ...blockState,
      place: (slot, column) =>
        [
          place(slot, column),
          ...(once ? [found(slot, undefined)] : []),
          `  var b_keep${slot} = false;`,
        ].join("\n"),
      placeStep: (slot) =>
        once ? keptOnce(slot) : [
          gathered(slot, (d) => `b_tap${d}`, `_p${slot}`),
          `      b_keep${slot} = inside_p${slot};`,
        ].join("\n"),
    };
  }
  return {
    ...common,
    begin: "  var b_step = first_step;",
    step: "",
    advance: "      b_step += 1u;",
    place,
    depth: (slot, row) =>
      [
        `      let b_k${slot} = b_step * ${shape.tileDepth}u + ${row};`,
        `      let b_far${slot} = ${unit(`(b_k${slot} % ${padded})`, channelStride)};`,
        tapsOf(`(b_k${slot} / ${padded})`, (d) => `b_tap${slot}_${d}`, "      "),
        `      let b_in${slot} = b_k${slot} < ${padded} * ${tapCount};`,
      ].join("\n"),
    placeStep: () => "",
    load: (p, k, target) =>
      [
        "      {",
        gathered(p, (d) => `b_tap${k}_${d}`, ""),
        `      let value = ${source.load(`offset + b_far${k}`)};`,
        `      ${target} = select(${zero}, value, inside && b_in${k});`,
        "      }",
      ].join("\n"),
  };
}
