import { lines, product, range } from "../lists.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import {
  type Axis,
  axisDigits,
  digitsText,
  type Direction,
  fitsWord,
  reachesOutside,
  tapWordText,
} from "../axes.ts";
import {
  type LoaderState,
  stepState,
  type Taps,
  type TileAccess,
  type TileLoader,
} from "../loader.ts";
import { masked, zeroOf } from "../../elements/scalar.ts";

export interface GatherShape {
  readonly direction: Direction;
  readonly axes: readonly Axis[];
  /** Backward: columns are places of the workgroup's class of strides (`classText()`), whose taps a step lies within. */
  readonly classes?: boolean;
  readonly source: GatherSource;
  /** Channels in the depth order, at least the source's: a multiple of the tile depth, or these themselves. */
  readonly paddedChannels: number;
  /** Columns count images fastest (chwn) instead of places. */
  readonly batchInner: boolean;
  /** 4 where columns count four images at one place after each other, as {@linkcode ColumnOrder} does. */
  readonly interleave: 1 | 4;
  readonly vector: TileAccess["vector"];
  readonly along: "place" | "depth";
  readonly tileDepth: number;
  readonly walk: GatherWalk;
}

/** Images as they lie, strides in elements. */
export interface GatherSource {
  readonly batch: number;
  /** Of a group. */
  readonly channels: number;
  readonly batchStride: number;
  readonly channelStride: number;
  /** From a place to the next, where they do not lie beside each other. */
  readonly pitch?: number | undefined;
}

/**
 * What a step of the loop reaches into: the only tap there is, so that columns stay where they are; one tap, where the padded
 * channels are a multiple of the tile depth; several, so that each depth is taken apart; or a row of taps along the last axis, of which
 * every place is loaded once for all of them.
 */
export type GatherWalk = "point" | "tap" | "linear" | WalkedRow;

/** A row of results as columns count it where a step reaches into a row of taps. */
export interface WalkedRow extends Taps {
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
export function rowTrait({ taps, dilation }: Taps): string {
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
  const { axes, classes = false, vector, walk, direction, source: lies } = shape;
  const forward = direction === "forward";
  const size = (name: string, value: number) => module.size(`gather_${name}`, value);
  const elements = (name: string, stride: number) => size(name, stride / vector);
  // Vectors of four lie along what has no stride.
  const stride = (name: string, value: number) =>
    vector !== 1 && value === 1 ? undefined : elements(name, value);
  const unit = (index: string, stride: string | undefined) =>
    stride === undefined ? `${index} / ${vector}u` : `${index} * ${stride}`;
  const row = typeof walk === "string" ? undefined : walk;
  // Channels of a step.
  const deep = shape.tileDepth / (row?.taps ?? 1);
  const blocks = size("blocks", Math.ceil(shape.paddedChannels / deep));
  const channels = size("channels", lies.channels);
  const padded = size("padded_channels", shape.paddedChannels);
  const batch = size("batch", lies.batch);
  const places = size("places", product(axes.map(({ places }) => places)));
  const taps = axes.map((axis, d) => classes ? `class_taps${d}` : size(`taps${d}`, axis.taps));
  const tapCount = classes ? "class_taps" : size("taps", product(axes.map(({ taps }) => taps)));
  const sizes = axes.map((axis, d) => size(`size${d}`, axis.size));
  const strides = forward ? axes.map((axis, d) => size(`stride${d}`, axis.stride)) : [];
  const paddings = classes ? [] : axes.map((axis, d) => size(`padding${d}`, axis.padding));
  const dilations = axes.map((axis, d) => size(`dilation${d}`, axis.dilation));
  const widths = axes.map((axis, d) => size(`places${d}`, axis.places));
  const steps = axes.map((axis, d) => elements(`step${d}`, axis.sourceStride));
  const groupStride = elements("group_stride", lies.channels * lies.channelStride);
  const batchStride = stride("batch_stride", lies.batchStride);
  const channelStride = stride("channel_stride", lies.channelStride);
  const all = range(axes.length);
  const sum = (...terms: string[]) => terms.join(" + ");
  const far = (axes: readonly number[], at: (d: number) => string) =>
    axes.map((d) => `${at(d)} * ${steps[d]}`);
  // Source coordinate and whether it exists, for the origin of a place and tap `k`. Unsigned: below zero is huge.
  const reach = (d: number, slot: number, k: string, suffix: string) => [
    `      let at${d}${suffix} = b_origin${slot}_${d} ${forward ? "+" : "-"} ${k} * ${
      dilations[d]
    };`,
    `      let in${d}${suffix} = at${d}${suffix} < ${sizes[d]};`,
  ];
  // Source coordinate of a place and tap 0.
  const origin = (slot: number, d: number) => {
    const at = `b_place${slot}_${d}`;
    return `  let b_origin${slot}_${d} = ${
      forward
        ? `${at} * ${strides[d]} - ${paddings[d]}`
        : `${at} + ${classes ? `class_origin${d}` : paddings[d]}`
    };`;
  };
  const placeDigits = (slot: number, spot: string, axes: readonly number[]) =>
    digitsText(
      `(${spot})`,
      `b_rest${slot}_`,
      axisDigits(axes.map((d) => `b_place${slot}_${d}`), widths.slice(0, axes.length)),
    );
  const gathered = (slot: number, tap: (d: number) => string, suffix: string) => [
    ...all.flatMap((d) => reach(d, slot, tap(d), suffix)),
    `      let inside${suffix} = ${all.map((d) => `in${d}${suffix}`).join(" && ")};`,
    `      let offset${suffix} = ${sum(`b_base${slot}`, ...far(all, (d) => `at${d}${suffix}`))};`,
  ];
  // The next tap of the first axes, up to this one.
  const nextTap = (d: number): string =>
    d < 0
      ? ""
      : d === 0
      ? "b_tap0 += 1u;"
      : `b_tap${d} += 1u; if (b_tap${d} == ${taps[d]}) { b_tap${d} = 0u; ${nextTap(d - 1)} }`;
  const zero = zeroOf(source.value, source.vector);
  const place = (slot: number, column: string) => {
    const [image, spot] = shape.batchInner
      ? [`b_column${slot} % ${batch}`, `b_column${slot} / ${batch}`]
      : shape.interleave === 4
      ? [
        `b_column${slot} / 4u / ${places} * 4u + b_column${slot} % 4u`,
        `b_column${slot} / 4u % ${places}`,
      ]
      : [`b_column${slot} / ${places}`, `b_column${slot} % ${places}`];
    return lines(
      `  let b_column${slot} = ${column};`,
      `  let b_base${slot} = ${unit(`(${image})`, batchStride)} + group * ${groupStride};`,
      placeDigits(slot, spot, all),
      all.map((d) => origin(slot, d)),
    );
  };
  // Channels beyond the last are zero.
  const beyond = module.mode === "uniform" || lies.channels !== shape.paddedChannels ||
    lies.channels % deep !== 0;
  const load = (base: (p: number) => string) => (p: number, k: number, target: string) => {
    const inside = beyond ? [`b_c${k} < ${channels}`] : [];
    return `      ${target} = ${source.load(`${base(p)} + b_far${k}`, inside)};`;
  };
  const mask = (p: number, value: string) => masked(value, zero, [`b_keep${p}`]);
  const channelDepth = (more: readonly string[]) => (slot: number, row: string) =>
    lines(
      `      let b_c${slot} = b_channel + ${row};`,
      `      let b_far${slot} = ${sum(unit(`b_c${slot}`, channelStride), ...more)};`,
    );
  const channelStep = `      let b_channel = b_block * ${deep}u;`;
  const access = {
    vector,
    value: source.value,
    along: shape.along,
    // Where only the device knows sizes one text is all pitches': that of most, whose places share no line.
    ...(module.mode === "constant" && lies.pitch !== undefined ? { pitch: lies.pitch } : {}),
  };
  if (walk === "point") {
    const outside = module.mode === "uniform" ||
      axes.some((axis) => reachesOutside(axis, direction));
    return {
      access,
      state: {
        begin: "  var b_block = first_step;",
        step: channelStep,
        advance: "      b_block += 1u;",
      },
      place(slot, column) {
        const at = (d: number) => `b_origin${slot}_${d}`;
        const inside = all.map((d) => `${at(d)} < ${sizes[d]}`).join(" && ");
        return lines(
          place(slot, column),
          `  let b_offset${slot} = ${sum(`b_base${slot}`, ...far(all, at))};`,
          outside && `  let b_keep${slot} = ${inside};`,
        );
      },
      depth: channelDepth([]),
      load: load((p) => `b_offset${p}`),
      ...(outside ? { mask } : {}),
    };
  }
  if (walk === "linear") {
    const tapsOf = (slot: number) => all.map((d) => `b_tap${slot}_${d}`);
    return {
      access,
      state: stepState("b"),
      place,
      depth: (slot, row) =>
        lines(
          `      let b_k${slot} = b_step * ${shape.tileDepth}u + ${row};`,
          `      let b_far${slot} = ${unit(`(b_k${slot} % ${padded})`, channelStride)};`,
          digitsText(
            `(b_k${slot} / ${padded})`,
            `b_tap${slot}_0_rest`,
            axisDigits(tapsOf(slot), taps),
            "      ",
          ),
          `      let b_in${slot} = b_k${slot} < ${padded} * ${tapCount};`,
        ),
      load: (p, k, target) =>
        lines(
          "      {",
          gathered(p, (d) => tapsOf(k)[d]!, ""),
          `      let value = ${source.load(`offset + b_far${k}`)};`,
          `      ${target} = ${masked("value", zero, ["inside", `b_in${k}`])};`,
          "      }",
        ),
    };
  }

  // Axes along which a step has a tap of its own.
  const last = axes.length - 1;
  const walked = row === undefined ? axes : axes.slice(0, last);
  const each = range(walked.length);
  // The arithmetic of a step is in the way of its products: where a place lies is found once, but for what the step's tap adds to all
  // places alike. Not where only the device knows the taps.
  const once = module.mode === "constant" && !classes && fitsWord(walked);
  const tapFar = once && walked.length > 0;
  const state: LoaderState = {
    begin: lines(
      `  var b_block = first_step % ${blocks};`,
      each.map((d) => `  var b_tap${d} = 0u;`),
      walked.length > 0 && [
        "  {",
        digitsText(
          `(first_step / ${blocks})`,
          "first_rest",
          axisDigits(each.map((d) => `first${d}`), taps.slice(0, walked.length)),
          "    ",
        ),
        each.map((d) => `    b_tap${d} = first${d};`),
        "  }",
      ],
      once && `  var b_bit = 1u << (first_step / ${blocks});`,
    ),
    step: lines(
      channelStep,
      tapFar &&
        `      let b_tap_far = ${
          sum(...far(each, (d) => `${forward ? "" : "0u - "}b_tap${d} * ${dilations[d]}`))
        };`,
    ),
    advance: `      b_block += 1u; if (b_block == ${blocks}) { b_block = 0u; ${
      once ? "b_bit <<= 1u; " : ""
    }${nextTap(walked.length - 1)} }`,
  };
  const loads = {
    depth: channelDepth(tapFar ? ["b_tap_far"] : []),
    load: load((p) => once ? `b_fixed${p}` : `offset_p${p}`),
    mask,
  };
  // Where a place lies at tap 0, and at which taps it lies inside.
  const found = (slot: number, there: string | undefined) => {
    const origin = (d: number) => `b_origin${slot}_${d}`;
    const at = (d: number, places: number) => `${origin(d)} ${forward ? "+" : "-"} ${places}u`;
    const inside = walked.length === 0 ? "1u" : `b_taps${slot}_0`;
    return lines(
      `  let b_fixed${slot} = ${sum(`b_base${slot}`, ...far(each, origin))};`,
      tapWordText(`b_taps${slot}_`, walked, direction, at, (d) => sizes[d]!),
      `  let b_inside${slot} = ${
        there === undefined ? inside : `select(0u, ${inside}, ${there})`
      };`,
    );
  };
  const keptOnce = (slot: number) => `      b_keep${slot} = (b_inside${slot} & b_bit) != 0u;`;

  if (row !== undefined) {
    const { places, lead, taps, dilation } = row;
    const width = size("row_places", places);
    const rows = size("rows", product(walked.map(({ places }) => places)));
    return {
      access: { ...access, sharedTaps: { kind: "row", taps, dilation } },
      state,
      ...loads,
      place: (slot, column) =>
        lines(
          // A row's places before the first are the last ones of the row before, so that none lies below zero.
          `  let b_cell${slot} = ${column} + ${width} - ${size("lead", lead)};`,
          `  let b_row${slot} = b_cell${slot} / ${width} - 1u;`,
          `  let b_x${slot} = b_cell${slot} % ${width};`,
          `  let b_base${slot} = ${unit(`(b_row${slot} / ${rows})`, batchStride)} + group * ` +
            `${groupStride} + b_x${slot} * ${steps[last]};`,
          `  let b_there${slot} = b_x${slot} < ${
            sizes[last]
          } && b_row${slot} < ${batch} * ${rows};`,
          last > 0 && placeDigits(slot, `b_row${slot} % ${rows}`, each),
          each.map((d) => origin(slot, d)),
          once && found(slot, `b_there${slot}`),
          `  var b_keep${slot} = false;`,
        ),
      placeStep: (slot) =>
        once ? keptOnce(slot) : lines(
          each.map((d) => reach(d, slot, `b_tap${d}`, `_p${slot}`)),
          `      let offset_p${slot} = ${
            sum(`b_base${slot}`, ...far(each, (d) => `at${d}_p${slot}`))
          };`,
          `      b_keep${slot} = ${
            [`b_there${slot}`, ...each.map((d) => `in${d}_p${slot}`)].join(" && ")
          };`,
        ),
    };
  }
  return {
    access,
    state,
    ...loads,
    place: (slot, column) =>
      lines(
        place(slot, column),
        once && found(slot, undefined),
        `  var b_keep${slot} = false;`,
      ),
    placeStep: (slot) =>
      once ? keptOnce(slot) : lines(
        gathered(slot, (d) => `b_tap${d}`, `_p${slot}`),
        `      b_keep${slot} = inside_p${slot};`,
      ),
  };
}
