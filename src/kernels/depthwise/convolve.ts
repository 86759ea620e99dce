import template from "../../../shaders/depthwise.wgsl" with { type: "text" };
import { elementsTrait } from "../../elements/elements.ts";
import { typeName, zeroOf } from "../../elements/scalar.ts";
import { type Axis, axisSizes, type Digit, digitsText } from "../axes.ts";
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  type EpilogueStep,
  epilogueTrait,
} from "../epilogue.ts";
import {
  loopIterations,
  type ModuleBuilder,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  splitTrait,
  type TensorAccess,
  type TensorSplit,
} from "../module.ts";
import {
  channelWidth,
  type DepthwiseShape,
  groupTraits,
  imageWidth,
  otherAxes,
  plus,
  strideSizes,
  vectorWidth,
} from "./shape.ts";
import {
  depthwiseRounds,
  roundIndices,
  type RunProduct,
  runProducts,
  tapHits,
  tapSteps,
} from "./taps.ts";

/** Runs along the shape's run axis. */
function runCount({ axes, run, results }: DepthwiseShape): number {
  return Math.ceil(axes[run]!.places / results);
}

/** Threads of places (and of channels, where there are no lanes). */
function placeThreads(shape: DepthwiseShape): number {
  const { axes, run, vector, images, lanes } = shape;
  const places = axes.reduce((all, { places }, d) => d === run ? all : all * places, 1);
  return places * runCount(shape) * Math.ceil(images / imageWidth({ vector })) *
    (lanes === 0 ? channelVectors(shape) : 1);
}

/** Vectors of channels, or channels that a thread takes together. */
function channelVectors(shape: DepthwiseShape): number {
  return shape.channels / channelWidth(shape) / shape.own;
}

/** Workgroups of {@linkcode depthwiseKernel}. */
export function depthwiseWorkgroups(shape: DepthwiseShape): number {
  const { lanes, threads } = shape;
  if (lanes === 0) return Math.ceil(placeThreads(shape) / threads);
  return Math.ceil(channelVectors(shape) / lanes) *
    Math.ceil(placeThreads(shape) / (threads / lanes));
}

/** Bytes of workgroup memory that staged filters take. */
export function stagedBytes(taps: number, lanes: number, vector: 1 | 4): number {
  return taps * (lanes + 1) * vector * 4;
}

/** What the text of a kernel is made of: its module, its sizes and strides as WGSL, and what follows from its shape. */
interface Text {
  readonly shape: DepthwiseShape;
  readonly module: ModuleBuilder;
  /** Axes but that of runs. */
  readonly others: readonly number[];
  readonly sized: ReturnType<typeof axisSizes>;
  readonly from: ReturnType<typeof strideSizes>;
  readonly to: ReturnType<typeof strideSizes>;
  readonly filterStrides: readonly string[];
  readonly products: readonly RunProduct[];
  /** Source channels that a result sums. */
  readonly copies: number;
}

/**
 * Convolves each channel by itself, or each small group. A thread loads the places that its run of results meets along one axis once for each
 * tap of the other axes, so that a load is worth up to as many products as the run has taps; the taps are in registers.
 * Binds the source (`input`, or `output` in backward-data), `filter`, the result and what the epilogue reads.
 */
export function depthwiseKernel(
  shape: DepthwiseShape,
  epilogue: EpilogueFactory,
  splits: { source: TensorSplit; filter: TensorSplit; result: TensorSplit },
): SizedKernel {
  const { op, axes, results, lanes, threads, filter, elements, mode } = shape;
  const width = vectorWidth(shape);
  const module = moduleBuilder(mode);
  const [sourceName, resultName] = op === "fwd"
    ? ["input", "output"] as const
    : ["output", "input"] as const;
  const source = module.tensor(sourceName, "read", width, splits.source, elements.storage);
  const filterWidth = filter.vector && !filter.staged ? 4 : 1;
  const taps = module.tensor("filter", "read", filterWidth, splits.filter, elements.storage);
  const result = module.tensor(resultName, "write", width, splits.result, elements.result);
  const steps = epilogue(module, width, (row) => row);
  const text: Text = {
    shape,
    module,
    others: otherAxes(shape),
    sized: axisSizes(module, "axis", axes),
    from: strideSizes(module, shape.source, "source"),
    to: strideSizes(module, shape.result, "result"),
    filterStrides: filter.axes.map((stride, d) => module.size(`filter_axis${d}`, stride)),
    products: runProducts(shape),
    copies: op === "bwd-data" ? shape.group.outputs : shape.group.inputs,
  };
  const allTaps = axes.reduce((all, axis) => all * axis.taps, 1);
  const { rounds } = depthwiseRounds(shape);
  const staged = lanes * channelWidth(shape) * allTaps;
  const tileVector = filter.vector ? ` / 4u][i / ${allTaps}u % 4u` : "";
  const name = kernelName(text) + epilogueTrait(steps) +
    splitTrait(splits.source, splits.filter, splits.result);
  const values = {
    name,
    results,
    threads,
    tile: filter.staged
      ? `array<array<${filter.vector ? "vec4f" : "f32"}, ${lanes + 1}>, ${allTaps}>`
      : "",
    threadPlace: threadText(text),
    staged: `${staged}u`,
    taps: `${allTaps}u`,
    filterElements: module.size("filter_elements", shape.channels * text.copies * allTaps),
    stage: `tile[i % ${allTaps}u][i / ${allTaps}u${tileVector}] = ${taps.load("element")};`,
    outside: `place >= ${module.size("count", placeThreads(shape))}${
      lanes === 0 ? "" : ` || channel >= ${module.size("channels", channelVectors(shape))}`
    }`,
    coordinates: coordinateText(text),
    sums: Array.from(
      { length: results * shape.own },
      (_, i) =>
        `  var ${sumName(shape, i % results, Math.floor(i / results))} = ${
          typeName("f32", width)
        }();`,
    ).join("\n"),
    rounds: shape.unrolled ? "" : module.size("rounds", rounds),
    body: roundsText(text, source, taps),
    stores: storeText(text, result, steps),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const iterations = (shape.unrolled ? 0 : loopIterations(rounds)) +
    (filter.staged ? loopIterations(Math.ceil(staged / threads)) : 0) +
    results * shape.own * width * epilogueIterations(steps);
  const bytes = filter.staged ? stagedBytes(allTaps, lanes, filter.vector ? 4 : 1) : 0;
  return sizedKernel(name, mode, wgsl, module, [threads, 1, 1], bytes, iterations);
}

/** Every trait of the kernel but those of its epilogue and bindings. */
function kernelName({ shape, others, copies }: Text): string {
  const { op, axes, run, results, lanes, threads, filter, elements } = shape;
  const along = axes[run]!;
  const allTaps = axes.reduce((all, axis) => all * axis.taps, 1);
  const hits = others.map((d) => tapHits(axes[d]!, op));
  return [
    "depthwise",
    op.replace("-", "_"),
    elementsTrait(elements),
    shape.imagesFirst ? "images" : lanes > 0 ? "channels" : "places",
    `${shape.order.join("")}x${vectorWidth(shape)}`,
    ...(lanes > 0 ? [`l${lanes}of${threads}`] : []),
    `run${run}r${results}k${along.taps}s${along.stride}d${along.dilation}` +
    (op === "bwd-data" ? `p${along.padding % along.stride}` : ""),
    ...groupTraits(shape.group),
    ...(shape.own > 1 ? [`own${shape.own}${resultsOf(shape) > shape.own ? "of" : ""}`] : []),
    ...(filter.staged ? [`staged${allTaps}`] : filter.vector ? ["taps4"] : []),
    ...(shape.unrolled ? [`taps${hits.join("x")}${copies > 1 ? `x${copies}` : ""}`] : []),
  ].join("_");
}

/** Declares `place`, and `lane` and `channel` where neighbouring threads take neighbouring channels. */
function threadText({ shape, module }: Text): string {
  const { lanes, threads, filter } = shape;
  if (lanes === 0) return `  let place = id * ${threads}u + t;`;
  const blocks = module.size("channel_blocks", Math.ceil(channelVectors(shape) / lanes));
  const first = `  let first_channel = id % ${blocks} * ${lanes * channelWidth(shape)}u;`;
  return [
    `  let lane = t % ${lanes}u;`,
    `  let channel = id % ${blocks} * ${lanes}u + lane;`,
    `  let place = id / ${blocks} * ${threads / lanes}u + t / ${lanes}u;`,
    ...(filter.staged ? [first] : []),
  ].join("\n");
}

/** A place of a run as it stands in names: those before the run's first have a word. */
function placeName(place: number): string {
  return place < 0 ? `before${-place}` : `${place}`;
}

/** Declares where a thread's results lie, and where the source that they meet begins. */
function coordinateText({ shape, module, others, sized, from, products }: Text): string {
  const { op, axes, run, results, lanes } = shape;
  const size = (name: string, value: number) => module.size(name, value);
  const along = axes[run]!;
  const places: Digit[] = shape.order.map((d) =>
    d === run
      ? { name: "block", radix: size("runs", runCount(shape)) }
      : { name: `at${d}`, radix: sized.places[d]! }
  );
  const image = { name: "image", radix: size("images", shape.images / imageWidth(shape)) };
  const channel = lanes === 0
    ? [{ name: "channel", radix: size("channels", channelVectors(shape)) }]
    : [];
  const digits = shape.imagesFirst
    ? [image, ...places, ...channel]
    : [...places, ...channel, image];
  const base = op === "fwd"
    ? `block * ${size("run_step", results * along.stride)} - ${sized.padding[run]}`
    : `block * ${size("run_step", results / along.stride)} + ${
      size("run_base", Math.floor(along.padding / along.stride))
    }`;
  return [
    digitsText("place", "place_", digits),
    ...others.flatMap((d) =>
      op === "fwd"
        ? [`  let from${d} = at${d} * ${sized.stride[d]} - ${sized.padding[d]};`]
        : gradientOrigin(axes[d]!, d, module, sized)
    ),
    `  let base = ${base};`,
    ...[...new Set(products.map(({ place }) => place))].map((place) =>
      `  let in_${placeName(place)} = ${plus("base", place)} < ${sized.size[run]};`
    ),
    `  let begin = image * ${from.image} + base * ${sized.sourceStride[run]};`,
  ].join("\n");
}

/** Where a place of the input meets the gradient first, and by which tap. */
function gradientOrigin(
  axis: Axis,
  d: number,
  module: ModuleBuilder,
  sized: Text["sized"],
): string[] {
  const { step, shared, back, inverse } = tapSteps(axis, "bwd-data");
  const size = (name: string, value: number) => module.size(`${name}${d}`, value);
  const [steps, common] = [size("step", step), size("shared", shared)];
  const stride = sized.stride[d];
  // A tap is met where far − tap·dilation is a multiple of the stride; both then have the same remainder.
  return [
    `  let far${d} = at${d} + ${sized.padding[d]};`,
    `  let first${d} = far${d} / ${common} % ${steps} * ${size("inverse", inverse)} % ${steps};`,
    `  let from${d} = select(0x80000000u, far${d} / ${stride} - first${d} * ${
      sized.dilation[d]
    } / ${stride}, far${d} % ${common} == 0u);`,
    `  let back${d} = ${size("back", back)};`,
  ];
}

/** The products of all taps: one round after the other, or the body of a loop over them. */
function roundsText(text: Text, source: TensorAccess, taps: TensorAccess): string {
  const { shape: { op, axes, unrolled }, module, others, copies } = text;
  const hits = axes.map((axis) => tapHits(axis, op));
  if (unrolled) {
    return roundIndices(others, hits, copies)
      .map(({ hit, copy }) => roundText(text, source, taps, hit, copy, "  ")).join("\n");
  }
  const radices = hits.map((hit, d) => module.size(`hits${d}`, hit));
  const digits = [
    ...others.toReversed().map((d) => ({ name: `hit${d}`, radix: radices[d]! })),
    { name: "which", radix: "" },
  ];
  return [
    digitsText("round", "round_", digits, "    "),
    roundText(text, source, taps, axes.map((_, d) => `hit${d}`), "which", "    "),
  ].join("\n");
}

/** The sum of a run's result, of one of a thread's channels. */
function sumName({ own }: DepthwiseShape, result: number, channel: number): string {
  return own === 1 ? `sum${result}` : `sum${result}_${channel}`;
}

/** Result channels of a group. */
function resultsOf({ op, group }: DepthwiseShape): number {
  return op === "fwd" ? group.outputs : group.inputs;
}

/** WGSL of the result's channel that is the `which`-th of a thread's. */
function resultChannel({ own }: DepthwiseShape, which: number): string {
  return own === 1 ? "channel" : `(${plus(`channel * ${own}u`, which)})`;
}

/** WGSL of the source's channel, the one that is named `copy` of those that a result sums, and of where filters begin. */
function groupedChannels({ shape, module, copies }: Text) {
  const { op, group, filter, own } = shape;
  const results = resultsOf(shape);
  const size = (name: string, value: number) => module.size(name, value);
  const first = results === own ? "channel" : `channel / ${size("group_threads", results / own)}`;
  const source = copies === 1 ? first : `(${first} * ${size("group_sources", copies)} + copy)`;
  return {
    source,
    filter(which: number) {
      const result = resultChannel(shape, which);
      const [filters, input] = op === "fwd"
        ? [result, "copy"]
        : [source, `${result} % ${size("group_results", results)}`];
      const within = group.inputs === 1
        ? ""
        : `${input} * ${size("filter_input", filter.input)} + `;
      return `${filters} * ${size("filter_channel", filter.channel)} + ${within}`;
    },
  };
}

/** One tap of each of the other axes, and one source channel where a result sums several, with all taps of the run. */
function roundText(
  text: Text,
  source: TensorAccess,
  taps: TensorAccess,
  hit: readonly string[],
  copy: string,
  indent: string,
): string {
  const { shape, module, others, sized, from, filterStrides, copies } = text;
  const { op, axes, filter, unrolled } = shape;
  const { source: sourceChannel, filter: filterChannel } = groupedChannels(text);
  const place = others.map((d) => `tap${d} * ${filterStrides[d]}`).join(" + ");
  const inside = others.flatMap((d) => [
    `y${d} < ${sized.size[d]}`,
    ...(op === "bwd-data" ? [`met${d} < ${sized.taps[d]}`] : []),
  ]);
  const lines = [
    "{",
    ...(copies > 1 ? [`  let copy = ${copy};`] : []),
    ...others.flatMap((d) => {
      if (op === "fwd") {
        return [
          `  let tap${d} = ${hit[d]};`,
          `  let y${d} = from${d} + ${hit[d]} * ${sized.dilation[d]};`,
        ];
      }
      const step = module.size(`step${d}`, tapSteps(axes[d]!, op).step);
      return [
        `  let met${d} = first${d} + ${hit[d]} * ${step};`,
        `  let tap${d} = min(met${d}, ${sized.taps[d]} - 1u);`,
        `  let y${d} = from${d} - ${hit[d]} * back${d};`,
      ];
    }),
    `  let inside = ${inside.join(" && ")};`,
    // In a loop nothing else is to be loaded meanwhile: a branch saves the mask of each value.
    ...(unrolled ? [] : ["  if (inside) {"]),
    `  let row = begin + ${sourceChannel} * ${from.channel} + ${
      others.map((d) => `y${d} * ${sized.sourceStride[d]}`).join(" + ")
    };`,
    ...owned(shape).map((m) =>
      `  let ${ownName(shape, "taps", m)} = ${filter.staged ? "" : filterChannel(m)}${place};`
    ),
    ...productText(text, source, taps),
    unrolled ? "}" : "}}",
  ];
  return lines.map((line) => indent + line).join("\n");
}

/** The channels of a thread, counted from its first. */
function owned({ own }: DepthwiseShape): number[] {
  return Array.from({ length: own }, (_, m) => m);
}

/** A name of what belongs to one of a thread's channels. */
function ownName({ own }: DepthwiseShape, name: string, channel: number): string {
  return own === 1 ? name : `${name}_${channel}`;
}

/** Loads each place and each tap of a run when it is met first, and multiplies. */
function productText(
  { shape, sized, filterStrides, products }: Text,
  source: TensorAccess,
  taps: TensorAccess,
): string[] {
  const { run, filter, unrolled } = shape;
  const width = vectorWidth(shape);
  const loaded = new Set<string>();
  const once = (name: string, load: () => string) => {
    if (loaded.has(name)) return [];
    loaded.add(name);
    return [`  let ${name} = ${load()};`];
  };
  return products.flatMap(({ place, result, tap }) => {
    const value = `value_${placeName(place)}`;
    return [
      ...once(value, () => {
        const far = `${Math.abs(place)}u * ${sized.sourceStride[run]}`;
        const at = place === 0 ? "row" : `row ${place < 0 ? "-" : "+"} ${far}`;
        return `select(${zeroOf("f32", width)}, ${source.load(at)}, ${
          unrolled ? "inside && " : ""
        }in_${placeName(place)})`;
      }),
      ...owned(shape).flatMap((m) => {
        const weight = ownName(shape, `w${tap}`, m);
        const sum = sumName(shape, result, m);
        return [
          ...once(weight, () => {
            const at = `${ownName(shape, "taps", m)} + ${tap}u * ${filterStrides[run]}`;
            const loaded = filter.staged ? `tile[${at}][lane]` : taps.load(at);
            return width === 4 && !filter.vector ? `vec4f(${loaded})` : loaded;
          }),
          `  ${sum} = fma(${value}, ${weight}, ${sum});`,
        ];
      }),
    ];
  });
}

/** Stores the run's results that exist, each after the epilogue's steps. */
function storeText(
  { shape, others, sized, to }: Text,
  result: TensorAccess,
  steps: readonly EpilogueStep[],
): string {
  const { run, results, vector } = shape;
  const places = others.map((d) => `at${d} * ${to.axes[d]}`).join(" + ");
  const store = (q: number, m: number) => {
    const channel = resultChannel(shape, m);
    const value = applyEpilogue(steps, sumName(shape, q, m), {
      width: vectorWidth(shape),
      side: vector === "images" ? "columns" : "rows",
      row: vector === "channels" ? "(channel * 4u)" : channel,
      column: "0u",
      offset: "offset",
    });
    const along = plus(`block * ${results}u`, q);
    return [
      `  if (${along} < ${sized.places[run]}) {`,
      `    let offset = ${ownName(shape, "target_place", m)} + (${along}) * ${to.axes[run]};`,
      `    ${result.store("offset", value)}`,
      "  }",
    ].join("\n");
  };
  return owned(shape).flatMap((m) => [
    `  let ${ownName(shape, "target_place", m)} = image * ${to.image} + ${
      resultChannel(shape, m)
    } * ${to.channel} + ${places};`,
    ...Array.from({ length: results }, (_, q) => store(q, m)),
  ]).join("\n");
}
