import { lines, product, range } from "../lists.ts";
import { masked, typeName, zeroOf } from "../../elements/scalar.ts";
import { type Axis, axisDigits, axisSizes, digitsText, reachesOutside } from "../axes.ts";
import { windowExtents, type WindowShape } from "../im2win.ts";
import { deepState, stepState, type TileLoader } from "../loader.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";

/** Elements of one load of a window tensor that are not interleaved: four along the depth where all windows begin and end on fours. */
export function windowVector(shape: WindowShape): 1 | 4 {
  if (shape.interleave === 4) return 4;
  const { run, row } = windowExtents(shape);
  const { stride, taps, dilation } = shape.axes.at(-1)!;
  const whole = [run * stride, run * taps, row, ...(dilation === 1 ? [] : [run])];
  return whole.every((elements) => elements % 4 === 0) ? 4 : 1;
}

/** Places of a column: declares `b_image{slot}`, `b_spot{slot}`; the first image of four where they are interleaved. */
function columnText(
  module: ModuleBuilder,
  slot: number,
  column: string,
  { axes, interleave }: { readonly axes: readonly Axis[]; readonly interleave: 1 | 4 },
): string {
  const spots = module.size("spots", product(axes.map(({ places }) => places)));
  return lines(
    `  let b_column${slot} = ${column}${interleave === 4 ? " / 4u" : ""};`,
    `  let b_image${slot} = b_column${slot} / ${spots};`,
    `  let b_spot${slot} = b_column${slot} % ${spots};`,
  );
}

/**
 * B of the im2win convolution: depth = (tap of the last axis, outer tap, channel), which lie one after the other
 * from a window's start on. No branches: padding is in the tensor.
 */
export function windowLoader(
  module: ModuleBuilder,
  windows: TensorAccess,
  shape: WindowShape,
  { tileDepth, vector }: { tileDepth: number; vector: 1 | 4 },
): TileLoader {
  const { axes, interleave } = shape;
  const unit = interleave === 4 ? 1 : vector;
  const { run, row, outerPlaces } = windowExtents(shape);
  const size = (name: string, value: number) => module.size(`window_${name}`, value);
  const { places, stride, dilation, taps } = axes.at(-1)!;
  const depth = taps * run;
  const padded = module.mode === "uniform" || depth % tileDepth !== 0;
  const dilated = module.mode === "uniform" || dilation !== 1;
  return {
    access: {
      vector,
      value: windows.value,
      along: "depth",
      ...(interleave === 4 ? { vectorAlong: "place" } : {}),
    },
    state: deepState("b", tileDepth),
    place: (slot, column) =>
      lines(
        columnText(module, slot, column, shape),
        `  let b_base${slot} = ((b_image${slot} * ${size("groups", shape.groups)} + group) * ${
          size("outer_places", outerPlaces)
        } + b_spot${slot} / ${size("places", places)}) * ${
          size("row", row / unit)
        } + b_spot${slot} ` +
          `% ${size("places", places)} * ${size("stride", stride * run / unit)};`,
      ),
    depth(slot, at) {
      const skipped = dilated
        ? ` + b_d${slot} / ${size("run", run)} * ${size("skip", (dilation - 1) * run / unit)}`
        : "";
      return lines(
        `      let b_d${slot} = b_deep + ${at};`,
        `      let b_far${slot} = b_d${slot}${unit === 4 ? " / 4u" : ""}${skipped};`,
      );
    },
    load(place, at, target) {
      const inside = padded ? [`b_d${at} < ${size("depth", depth)}`] : [];
      return `      ${target} = ${windows.load(`b_base${place} + b_far${at}`, inside)};`;
    },
  };
}

/** What {@linkcode windowGatherLoader} reads: the input as it is. */
export interface WindowGatherShape {
  readonly axes: readonly Axis[];
  readonly interleave: 1 | 4;
  /** Of a group. */
  readonly channels: number;
  /** Channels in the depth order: a multiple of the tile depth, or `channels` itself. */
  readonly paddedChannels: number;
  readonly batchStride: number;
  readonly channelStride: number;
  /** Elements of a load that lie together in memory. */
  readonly sourceVector: 1 | 4;
  /** Along which side neighbouring threads lie. */
  readonly along: "place" | "depth";
  readonly tileDepth: number;
}

/**
 * B of the fused im2win convolution: the order of {@linkcode windowLoader}, built in workgroup memory from the
 * input as it lies, a strip of window rows at a time, with no tensor between. The four images of a vector share
 * their index arithmetic and their mask.
 */
export function windowGatherLoader(
  module: ModuleBuilder,
  input: TensorAccess,
  shape: WindowGatherShape,
): TileLoader {
  const { axes, interleave, sourceVector, tileDepth, along } = shape;
  const size = (name: string, value: number) => module.size(`gather_${name}`, value);
  const sizes = axisSizes(module, "gather", axes);
  const vector = interleave === 4 || sourceVector === 4 ? 4 : 1;
  const last = axes.length - 1;
  const all = range(axes.length);
  // Slowest first: the taps of the last axis, then those of the others.
  const tapOrder = [last, ...all.slice(0, -1)];
  const padded = size("padded_channels", shape.paddedChannels);
  const channels = size("channels", shape.channels);
  const uniform = module.mode === "uniform";
  const taps = product(axes.map(({ taps }) => taps));
  const tailMasked = uniform || (shape.paddedChannels * taps) % tileDepth !== 0;
  const checked = all.filter((d) => uniform || reachesOutside(axes[d]!, "forward"));
  const batchStride = size("batch_stride", shape.batchStride);
  const blocks = size("blocks", Math.ceil(shape.paddedChannels / tileDepth));
  const tapsOf = (prefix: string, rest: string, indent: string) =>
    digitsText(
      rest,
      `${rest}_`,
      axisDigits(tapOrder.map((d) => `${prefix}${d}`), tapOrder.map((d) => sizes.taps[d]!)),
      indent,
    );
  const channelFar = (slot: number) =>
    `      let b_far${slot} = b_c${slot} * ${size("channel_stride", shape.channelStride)};`;

  /** Declares `b_at{suffix}`, the offset at a place and a tap, and `b_in{suffix}` where it may lie outside. */
  const reach = (slot: number, tap: (d: number) => string, suffix: string) => {
    const inside = checked.map((d) => `b_at${suffix}_${d} < ${sizes.size[d]}`).join(" && ");
    return lines(
      all.map((d) =>
        `      let b_at${suffix}_${d} = b_origin${slot}_${d} + ${tap(d)} * ${sizes.dilation[d]};`
      ),
      checked.length > 0 && `      let b_in${suffix} = ${inside};`,
      `      let b_at${suffix} = b_base${slot} + ${
        all.map((d) => `b_at${suffix}_${d} * ${sizes.sourceStride[d]}`).join(" + ")
      };`,
    );
  };
  /** Assigns what lies at an offset, where its place, its channel and what else is said lie inside. */
  const assign = (target: string, suffix: string, k: number, tail: readonly string[]) => {
    const offset = `b_at${suffix} + b_far${k}`;
    const image = (x: number) => x === 0 ? offset : `${offset} + ${x}u * ${batchStride}`;
    const value = sourceVector === 4
      ? input.load(`(${offset}) / 4u`)
      : interleave === 4
      ? `${typeName(input.value, 4)}(${range(4).map((x) => input.load(image(x))).join(", ")})`
      : input.load(offset);
    const inside = [
      ...(checked.length === 0 ? [] : [`b_in${suffix}`]),
      ...(uniform || shape.channels !== shape.paddedChannels ? [`b_c${k} < ${channels}`] : []),
      ...tail,
    ];
    return `      ${target} = ${masked(value, zeroOf(input.value, vector), inside)};`;
  };
  const common = {
    access: {
      vector,
      value: input.value,
      along,
      ...(interleave === 4 && along === "depth" ? { vectorAlong: "place" as const } : {}),
    },
    place: (slot: number, column: string) =>
      lines(
        columnText(module, slot, column, shape),
        `  let b_base${slot} = b_image${slot} * ${interleave}u * ${batchStride} + group * ${
          size("group_stride", shape.channels * shape.channelStride)
        };`,
        digitsText(
          `b_spot${slot}`,
          `b_spot_rest${slot}_`,
          axisDigits(all.map((d) => `b_p${slot}_${d}`), sizes.places),
        ),
        all.map((d) =>
          `  let b_origin${slot}_${d} = b_p${slot}_${d} * ${sizes.stride[d]} - ${sizes.padding[d]};`
        ),
      ),
  } as const;

  if (shape.paddedChannels % tileDepth === 0) {
    // The next tap in window order; the slowest runs on past the end, where nothing is used.
    const next = (i: number): string => {
      const d = tapOrder[i]!;
      return i === 0
        ? `b_tap${d} += 1u;`
        : `b_tap${d} += 1u; if (b_tap${d} == ${sizes.taps[d]}) { b_tap${d} = 0u; ${next(i - 1)} }`;
    };
    return {
      ...common,
      state: {
        begin: lines(
          `  var b_block = first_step % ${blocks};`,
          all.map((d) => `  var b_tap${d} = 0u;`),
          "  {",
          `    let rest = first_step / ${blocks};`,
          tapsOf("first", "rest", "    "),
          all.map((d) => `    b_tap${d} = first${d};`),
          "  }",
        ),
        step: `      let b_channel = b_block * ${tileDepth}u;`,
        advance: `      b_block += 1u; if (b_block == ${blocks}) { b_block = 0u; ${next(last)} }`,
      },
      depth: (slot, row) => lines(`      let b_c${slot} = b_channel + ${row};`, channelFar(slot)),
      placeStep: (slot) => reach(slot, (d) => `b_tap${d}`, `_p${slot}`),
      load: (p, k, target) => assign(target, `_p${p}`, k, []),
    };
  }
  return {
    ...common,
    state: stepState("b"),
    depth: (slot, row) =>
      lines(
        `      let b_k${slot} = b_step * ${tileDepth}u + ${row};`,
        `      let b_c${slot} = b_k${slot} % ${padded};`,
        `      let b_rest${slot} = b_k${slot} / ${padded};`,
        tapsOf(`b_tap${slot}_`, `b_rest${slot}`, "      "),
        channelFar(slot),
      ),
    load: (p, k, target) =>
      lines(
        "      {",
        reach(p, (d) => `b_tap${k}_${d}`, "_l"),
        assign(
          target,
          "_l",
          k,
          tailMasked ? [`b_k${k} < ${padded} * ${size("taps", taps)}`] : [],
        ),
        "      }",
      ),
  };
}
