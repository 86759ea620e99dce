import { range } from "./lists.ts";
import directTemplate from "../../shaders/im2win.wgsl" with { type: "text" };
import stagedTemplate from "../../shaders/im2win_staged.wgsl" with { type: "text" };
import { type Axis, axisDigits, axisSizes, digitsText } from "./axes.ts";
import type { ModuleBuilder } from "./module.ts";
import { type SizedKernel, templateKernel } from "./sized_kernel.ts";
import { masked, type Scalar, scalarBytes, typeName, zeroOf } from "../elements/scalar.ts";

/**
 * An input tensor in window order. The axes but the last are *outer*: H, or D and H. For four images at a time,
 * each group and each outer place m, there is one row of `width` (the padded last axis) times `run` elements:
 *
 *     Î(i, m, k, u, r) = I(i, r, m·s + u·d, k − padding), zero outside of I
 *
 * u counts the outer taps and r the channels of the group, r fastest; `run` = outer taps · channels. This is the
 * paper's Î(i, r, m, k·H_f + u) with the channels innermost: the whole window of place n, all channels of it, is
 * the one run of W_f·run elements from n·s·run on, so that the depth of the product is an address. With
 * `interleave` 4 each element is a vector of four images.
 */
export interface WindowShape {
  readonly axes: readonly Axis[];
  /** A multiple of `interleave`. */
  readonly images: number;
  readonly interleave: 1 | 4;
  readonly groups: number;
  /** Of a group. */
  readonly channels: number;
  /** Last axis of the source with its padding on both sides. */
  readonly width: number;
  /** In elements of the source. */
  readonly batchStride: number;
  readonly channelStride: number;
  /** Whether passes differ in the first image they read. */
  readonly chunked: boolean;
}

const product = (values: readonly number[]) => values.reduce((result, value) => result * value, 1);

/** Derived extents of a window tensor. */
export function windowExtents({ axes, channels, width }: WindowShape) {
  const outer = axes.slice(0, -1);
  const outerTaps = product(outer.map(({ taps }) => taps));
  const outerPlaces = product(outer.map(({ places }) => places));
  const run = outerTaps * channels;
  return { outerTaps, outerPlaces, run, row: width * run };
}

/** Elements of the window tensor: images · C · places of the outer axes · outer taps · width. */
export function windowElements(shape: WindowShape): number {
  const { outerPlaces, row } = windowExtents(shape);
  return shape.images * shape.groups * outerPlaces * row;
}

const THREADS = 256;
/** Most elements that a thread moves: all its loads travel together. */
const DEALT = 4;
/** Elements of a staged tile: 16 KiB of vectors, the least that devices have. */
const STAGED = THREADS * DEALT;

/** Tiles of a staged transform, and elements from one row of a tile to the next. */
interface Stage {
  readonly run: number;
  readonly width: number;
  readonly pitch: number;
}

/**
 * Whole runs where they are short, so that a tile is written as one piece; else up to 32 rows, cut
 * evenly, of 16 neighbours of the source. The pitch is odd: neighbours along a column lie in banks of their own.
 */
function stageOf(shape: WindowShape): Stage {
  const { run } = windowExtents(shape);
  const even = (extent: number, most: number) => Math.ceil(extent / Math.ceil(extent / most));
  const odd = (width: number) => width + 1 - width % 2;
  if (run > 64) return { run: even(run, 32), width: 16, pitch: 17 };
  // One less: the odd pitch must fit too.
  const width = even(shape.width, Math.floor(STAGED / run) - 1);
  return { run, width, pitch: odd(width) };
}

/**
 * Transforms images to window order. Binds `input` and `windows`; the parameter `first_image` is where a chunk
 * begins.
 */
export function im2winKernel(
  module: ModuleBuilder,
  shape: WindowShape,
  firstImage: number,
  element: Scalar,
): SizedKernel {
  const { axes, interleave } = shape;
  const { mode } = module;
  const from = module.bind("input", "read", 1, element, element);
  const to = module.bind("windows", "write", interleave, element, element);
  const { outerTaps, outerPlaces, run, row } = windowExtents(shape);
  const { size } = module;
  const sizes = axisSizes(module, "axis", axes);
  const last = axes.length - 1;
  const outer = range(axes.slice(0, -1).length);
  const first = shape.chunked ? ` + ${module.parameter("first_image", firstImage)}` : "";
  const batchStride = size("batch_stride", shape.batchStride);
  const channels = size("channels", shape.channels);
  const names = (prefix: string) => outer.map((d) => `${prefix}${d}`);
  const load = (offset: string) => {
    if (interleave === 1) return from.load(offset);
    const four = [0, 1, 2, 3].map((x) =>
      from.load(x === 0 ? offset : `${offset} + ${x}u * ${batchStride}`)
    );
    return `${typeName(element, 4)}(${four.join(", ")})`;
  };
  // Where neighbours of the source's last axis lie together the transform turns tiles around.
  const staged = axes[last]!.sourceStride === 1 && shape.channelStride !== 1;
  const stage = stageOf(shape);
  const [runTiles, widthTiles] = [
    Math.ceil(run / stage.run),
    Math.ceil(shape.width / stage.width),
  ];
  const count = windowElements(shape) / interleave;
  const workgroups = staged ? count / row * runTiles * widthTiles : Math.ceil(count / STAGED);
  // Less workgroup memory leaves more of it to the cache.
  const tile = mode === "constant" ? stage.run * stage.pitch : STAGED;
  const traits = `im2win_${element}_${axes.length}d_${staged ? "staged" : "direct"}_i${interleave}${
    shape.chunked ? "_chunk" : ""
  }${module.splitTrait()}`;
  const values = {
    type: typeName(element, interleave),
    workgroups: size("workgroups", workgroups),
    count: size("count", count),
    groups: size("groups", shape.groups),
    outerPlaces: size("outer_places", outerPlaces),
    width: size("width", shape.width),
    run: size("run", run),
    channels,
    outerTaps: size("outer_taps", outerTaps),
    runTiles: size("run_tiles", runTiles),
    widthTiles: size("width_tiles", widthTiles),
    stage: {
      run: size("stage_run", stage.run),
      width: size("stage_width", stage.width),
      pitch: size("stage_pitch", stage.pitch),
      count: size("stage_count", stage.run * stage.width),
      elements: tile,
    },
    // Baked sizes know how many elements of a tile a thread has.
    dealt: staged && mode === "constant" ? Math.ceil(stage.run * stage.width / THREADS) : DEALT,
    source: sourceText(),
    store: to.store,
  };
  const bytes = staged ? tile * scalarBytes(from.value) * interleave : 0;
  return templateKernel(module, traits, staged ? stagedTemplate : directTemplate, values, {
    workgroups,
    bytes: Math.ceil(bytes / 16) * 16,
  });

  /** Declares `value`, the source at outer place `m`, outer tap `u`, column `k` and channel `r`. */
  function sourceText(): string {
    const all = range(axes.length);
    return [
      ...(outer.length === 0 ? [] : [
        digitsText("m", "m_rest", axisDigits(names("m"), sizes.places), "    "),
        digitsText("u", "u_rest", axisDigits(names("u"), sizes.taps), "    "),
      ]),
      ...outer.map((d) =>
        `    let at${d} = m${d} * ${sizes.stride[d]} + u${d} * ${sizes.dilation[d]} - ${
          sizes.padding[d]
        };`
      ),
      // Unsigned: below zero is huge.
      `    let at${last} = k - ${sizes.padding[last]};`,
      `    let inside = ${all.map((d) => `at${d} < ${sizes.size[d]}`).join(" && ")};`,
      `    let offset = (image * ${interleave}u${first}) * ${batchStride} + ` +
      `(group * ${channels} + r) * ${size("channel_stride", shape.channelStride)} + ${
        all.map((d) => `at${d} * ${sizes.sourceStride[d]}`).join(" + ")
      };`,
      `    let value = ${masked(load("offset"), zeroOf(element, interleave), ["inside"])};`,
    ].join("\n");
  }
}
