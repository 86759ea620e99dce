import { lines, product, range } from "../lists.ts";
import template from "../../../shaders/depthwise_filter.wgsl" with { type: "text" };
import { type Elements, elementsTrait, sumOf } from "../../elements/elements.ts";
import { typeName, zeroOf } from "../../elements/scalar.ts";
import { axisSizes, digitsText } from "../axes.ts";
import {
  channelWidth,
  type DepthwisePlaces,
  type DepthwiseStrides,
  groupTraits,
  imageWidth,
  otherAxes,
  plus,
  strideSizes,
  vectorWidth,
} from "./shape.ts";
import type { ModuleBuilder } from "../module.ts";
import { loopIterations, type SizedKernel, templateKernel } from "../sized_kernel.ts";

/** Backward-filter where few channels meet: places are the output's, its axes lie between the output and the input. */
export interface DepthwiseFilterShape extends DepthwisePlaces {
  /** Vectors of channels that a workgroup takes. */
  readonly lanes: number;
  /** Threads that share a channel's places. */
  readonly walkers: number;
  /** Whether neighbouring threads take neighbouring channels; else places. */
  readonly lanesInner: boolean;
  /** Places of a thread's run. */
  readonly places: number;
  /** Taps of a thread: of the run's axis, times those of the others. */
  readonly taps: { readonly run: number; readonly others: number };
  /** Neighbouring filters of a group whose taps a thread sums, and neighbouring channels of each: it loads their places once. */
  readonly own: { readonly filters: number; readonly inputs: number };
  /** Parts into which all places are cut; each leaves a partial result where there are several. */
  readonly segments: number;
  readonly input: DepthwiseStrides;
  readonly output: DepthwiseStrides;
  readonly filter: {
    readonly channel: number;
    readonly input: number;
    readonly axes: readonly number[];
  };
  readonly elements: Elements;
}

/** Elements of workgroup memory in which threads' sums meet. */
const TILE = 4096;

/** What of a shape says how its places are walked, and how its filters are cut. */
type Walk = Pick<DepthwiseFilterShape, "axes" | "run" | "places" | "images" | "vector">;
type Cut = Pick<
  DepthwiseFilterShape,
  "axes" | "run" | "taps" | "channels" | "vector" | "lanes" | "own"
>;

/** Runs of places of a channel, four images' where those are a vector. */
export function depthwiseUnits({ axes, run, places, images, vector }: Walk): number {
  const others = product(otherAxes({ axes, run }).map((d) => axes[d]!.places));
  return others * Math.ceil(axes[run]!.places / places) * images / imageWidth({ vector });
}

/** Pieces of a filter's taps, of the run's axis and of the others, of which a workgroup takes one each, and what threads take of channels. */
function pieces({ axes, run, taps, channels, vector, own }: Cut) {
  const outerTaps = product(otherAxes({ axes, run }).map((d) => axes[d]!.taps));
  return {
    run: Math.ceil(axes[run]!.taps / taps.run),
    others: Math.ceil(outerTaps / taps.others),
    outerTaps,
    channels: channels / channelWidth({ vector }) / (own.filters * own.inputs),
  };
}

/** Workgroups of each segment. */
export function depthwiseFilterBlocks(shape: Cut): number {
  const { run, others, channels } = pieces(shape);
  return run * others * Math.ceil(channels / shape.lanes);
}

/** Products that one sum of a thread adds up, and those of a segment. */
export function depthwiseFilterChains(
  shape: DepthwiseFilterShape,
): { readonly chain: number; readonly segment: number } {
  const units = Math.ceil(depthwiseUnits(shape) / shape.segments);
  const chain = Math.ceil(units / shape.walkers) * shape.places;
  return {
    chain: Math.max(1, chain),
    segment: Math.max(1, units * shape.places * imageWidth(shape)),
  };
}

/**
 * Sums the products of each tap of each channel over places, in three levels that are the same in every run: a thread sums
 * all taps of its piece of the filter over runs of places, whose gradients and inputs it loads once; a workgroup adds up
 * its threads; segments leave partial results where there are several. Binds `input`, `output` and `filter`.
 */
export function depthwiseFilterKernel(
  module: ModuleBuilder,
  shape: DepthwiseFilterShape,
): SizedKernel {
  const { axes, run, places, lanes, walkers, lanesInner, taps, segments, elements } = shape;
  const { filter, own, group: { inputs, outputs } } = shape;
  const width = vectorWidth(shape);
  const input = module.bind("input", "read", width, elements.storage);
  const output = module.bind("output", "read", width, elements.storage);
  const stored = segments > 1 ? sumOf(elements) : elements.result;
  const result = module.bind("filter", "write", 1, stored);
  const { size } = module;
  const sized = axisSizes(module, "axis", axes);
  const others = otherAxes(shape);
  const along = axes[run]!;
  const channelsEach = channelWidth(shape);
  const type = typeName("f32", width);
  const sumType = typeName("f32", channelsEach);
  const threads = lanes * walkers;
  const count = pieces(shape);
  const channels = size("channels", count.channels);
  const laneBlocks = size("channel_blocks", Math.ceil(count.channels / lanes));
  const runPieces = size("run_pieces", count.run);
  const otherPieces = size("other_pieces", count.others);
  const units = depthwiseUnits(shape);
  // What a thread has of filters' channels: the first filter, and the first channel of its group's input.
  const inputBlocks = inputs / own.inputs;
  const times = (text: string, factor: number) => factor === 1 ? text : `(${text} * ${factor}u)`;
  const groupInputs = size("group_inputs", inputBlocks);
  const filterIndex = times(inputs === 1 ? "channel" : `channel / ${groupInputs}`, own.filters);
  const inputOfGroup = times(`channel % ${groupInputs}`, own.inputs);
  const ofGroup = outputs === 1
    ? filterIndex
    : `${filterIndex} / ${size("group_outputs", outputs)}`;
  const from = strideSizes(module, shape.input, "input");
  const gradient = strideSizes(module, shape.output, "output");

  const outerDigits = (index: string, suffix: string, indent: string) =>
    digitsText(
      index,
      `rest${suffix}_`,
      others.toReversed().map((d) => ({ name: `tap${suffix}_${d}`, radix: sized.taps[d]! })),
      indent,
    );
  const each = range(taps.others);
  const place = lines(
    `  let piece = id % (${runPieces} * ${otherPieces});`,
    `  let block = id / (${runPieces} * ${otherPieces});`,
    `  let channel_block = block % ${laneBlocks};`,
    `  let segment = block / ${laneBlocks};`,
    `  let run_tap = piece % ${runPieces} * ${taps.run}u;`,
    `  let outer_tap = piece / ${runPieces} * ${taps.others}u;`,
    `  let lane = ${lanesInner ? `t % ${lanes}u` : `t / ${walkers}u`};`,
    `  let walker = ${lanesInner ? `t / ${lanes}u` : `t % ${walkers}u`};`,
    // Threads beyond the last channel go along with it: all meet at barriers.
    `  let channel = min(channel_block * ${lanes}u + lane, ${channels} - 1u);`,
    each.map((g) => [
      outerDigits(`(${plus("outer_tap", g)})`, `${g}`, "  "),
      others.map((d) =>
        `  let reach${g}_${d} = tap${g}_${d} * ${sized.dilation[d]} - ${sized.padding[d]};`
      ),
    ]),
    `  let input_channel = ${
      inputs === 1 ? ofGroup : `(${ofGroup} * ${size("inputs", inputs)} + ${inputOfGroup})`
    } * ${from.channel};`,
    `  let output_channel = ${filterIndex} * ${gradient.channel};`,
  );

  const tapsOfThread = taps.run * taps.others;
  const products = runProducts(shape);
  const inputPlaces = [...new Set(products.map((product) => product.place))];
  const runs = size("runs", Math.ceil(along.places / places));
  const unitDigits = shape.order.map((d) =>
    d === run ? { name: "run", radix: runs } : { name: `at${d}`, radix: sized.places[d]! }
  );
  const image = { name: "image", radix: size("images", shape.images / imageWidth(shape)) };
  const digits = shape.imagesFirst ? [image, ...unitDigits] : [...unitDigits, image];
  const runPlace = () => `run * ${size("run_places", places)}`;
  const sum = (stride: (d: number) => string) => others.map(stride).join(" + ");
  const body = lines(
    digitsText("unit", "unit_", digits, "    "),
    `    let base = run * ${size("run_step", places * along.stride)} + run_tap * ${
      sized.dilation[run]
    } - ${sized.padding[run]};`,
    inputPlaces.map((at) => `    let in_${at} = ${plus("base", at)} < ${sized.size[run]};`),
    `    let place = output_channel + image * ${gradient.image} + ${runPlace()} * ${
      gradient.axes[run]
    } + ${sum((d) => `at${d} * ${gradient.axes[d]}`)};`,
    range(places).map((q) => `    let there${q} = ${plus(runPlace(), q)} < ${sized.places[run]};`),
    range(own.filters).map((f) =>
      range(places).map((q) => {
        const at = f === 0 ? "place" : `place + ${f}u * ${gradient.channel}`;
        const value = output.load(`${at} + ${q}u * ${gradient.axes[run]}`, [`there${q}`]);
        return `    let gradient${f}_${q} = ${value};`;
      })
    ),
    `    let begin = input_channel + image * ${from.image} + base * ${from.axes[run]};`,
    each.map((g) => [
      others.map((d) => `    let y${g}_${d} = at${d} * ${sized.stride[d]} + reach${g}_${d};`),
      `    let inside${g} = ${others.map((d) => `y${g}_${d} < ${sized.size[d]}`).join(" && ")};`,
      `    let row${g} = begin + ${sum((d) => `y${g}_${d} * ${from.axes[d]}`)};`,
      range(own.inputs).map((i) =>
        inputPlaces.map((at) => {
          const value = `value${g}_${i}_${at}`;
          const row = i === 0 ? `row${g}` : `row${g} + ${i}u * ${from.channel}`;
          const there = [`inside${g}`, `in_${at}`];
          return [
            `    let ${value} = ${input.load(`${row} + ${at}u * ${from.axes[run]}`, there)};`,
            range(own.filters).map((f) =>
              products.filter((product) => product.place === at).map(({ result, tap }) => {
                const sum = `sum${(f * own.inputs + i) * tapsOfThread + g * taps.run + tap}`;
                return `    ${sum} = fma(${value}, gradient${f}_${result}, ${sum});`;
              })
            ),
          ];
        })
      ),
    ]),
  );

  const sumsOfThread = tapsOfThread * own.filters * own.inputs;
  const together = Math.min(sumsOfThread, walkers, Math.floor(TILE / threads / channelsEach));
  const parts = Math.min(walkers, Math.floor(threads / (together * lanes)));
  const four = (value: string) =>
    shape.vector === "images" ? `(${value}.x + ${value}.y) + (${value}.z + ${value}.w)` : value;
  const folds = lines(
    range(Math.ceil(sumsOfThread / together)).map((chunk) => {
      const first = chunk * together;
      return [
        range(Math.min(together, sumsOfThread - first)).map((i) =>
          `  tile[${i * threads}u + t] = ${four(`sum${first + i}`)};`
        ),
        `  fold(${first}u, t, channel_block, outer_tap, run_tap, segment);`,
      ];
    }),
  );
  const tapStrides = filter.axes.map((stride, d) => size(`filter_axis${d}`, stride));
  const channelStride = size("filter_channel", filter.channel);
  const offset = [
    ...others.map((d) => `tap_${d} * ${tapStrides[d]}`),
    `along * ${tapStrides[run]}`,
    ...(channelsEach > 1 ? [`channel * ${channelsEach}u * ${channelStride}`] : [
      `(${filterIndex} + own / ${own.inputs}u) * ${channelStride}`,
      ...(inputs === 1
        ? []
        : [`(${inputOfGroup} + own % ${own.inputs}u) * ${size("filter_input", filter.input)}`]),
    ]),
  ].join(" + ");
  const name = [
    "depthwise_bwd_filter",
    elementsTrait(elements),
    shape.vector === "none" ? "single" : shape.vector,
    `${shape.order.join("")}${shape.imagesFirst ? "n" : ""}x${width}`,
    `${lanesInner ? "l" : "w"}${lanes}x${walkers}`,
    `run${run}r${places}s${along.stride}d${along.dilation}`,
    `taps${taps.run}x${taps.others}`,
    ...groupTraits(shape.group),
    ...(own.filters * own.inputs > 1
      ? [`own${own.filters}x${own.inputs}${inputBlocks > 1 ? "of" : ""}`]
      : []),
    ...(segments > 1 ? ["split"] : []),
  ].join("_") + module.splitTrait();
  const unitsPerSegment = Math.ceil(units / segments);
  const workgroups = depthwiseFilterBlocks(shape) * segments;
  const values = {
    sumType,
    zero: zeroOf("f32", channelsEach),
    tileSize: together * threads,
    together,
    sums: together * lanes,
    parts,
    lanes,
    walkers,
    threads,
    laneStart: lanesInner ? "lane" : `lane * ${walkers}u`,
    walkerStep: lanesInner ? lanes : 1,
    runTaps: taps.run,
    tapsOfThread,
    sumsOfThread,
    outerTaps: size("outer_taps", count.outerTaps),
    allRunTaps: sized.taps[run],
    channels,
    outerDigits: outerDigits("outer", "", "    "),
    elements: size("elements", shape.channels * product(axes.map(({ taps }) => taps))),
    offset,
    stores: lines(
      range(channelsEach).map((i) =>
        result.store(
          i === 0 ? "offset" : `offset + ${i}u * ${channelStride}`,
          channelsEach === 1 ? "value" : `value.${"xyzw"[i]}`,
        )
      ),
    ),
    workgroups: size("workgroups", workgroups),
    place,
    sumsText: lines(range(sumsOfThread).map((i) => `  var sum${i} = ${type}();`)),
    unitsPerSegment: size("units_per_segment", unitsPerSegment),
    units: size("units", units),
    body,
    folds,
  };
  const iterations = loopIterations(Math.ceil(unitsPerSegment / walkers)) +
    Math.ceil(sumsOfThread / together) *
      (loopIterations(Math.ceil(walkers / parts)) + loopIterations(parts));
  const bytes = together * threads * channelsEach * 4;
  return templateKernel(module, name, template, values, { workgroups, threads, bytes, iterations });
}

/** Which gradient of a run meets which place of the input, by which of the piece's taps; both count from the first. */
function runProducts({ axes, run, places, taps }: DepthwiseFilterShape) {
  const { stride, dilation } = axes[run]!;
  return range(places)
    .flatMap((result) =>
      range(taps.run).map((tap) => ({ place: result * stride + tap * dilation, result, tap }))
    )
    .sort((a, b) => a.place - b.place);
}
