import template from "../../shaders/depthwise.wgsl" with { type: "text" };
import { type Elements, elementsTrait } from "../elements/elements.ts";
import { typeName, zeroOf } from "../elements/scalar.ts";
import { type Axis, axisSizes, type Digit, digitsText } from "./axes.ts";
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "./epilogue.ts";
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

/** Strides of a tensor in memory, in vectors. */
export interface DepthwiseStrides {
  readonly image: number;
  readonly channel: number;
  /** One a spatial axis. */
  readonly axes: readonly number[];
}

/**
 * Forward and backward-data of one filter a channel. Axes are the problem's, padded at the front to three, and a fourth of
 * one place for kernels without runs; backward-data counts places of the input, and its source is the output's gradient.
 */
export interface DepthwiseShape {
  readonly op: "fwd" | "bwd-data";
  readonly axes: readonly Axis[];
  readonly images: number;
  /** Channels of the result. */
  readonly channels: number;
  /** Output channels an input channel has. */
  readonly multiplier: number;
  /** What four elements of a vector are: channels, images, or nothing where single elements are loaded. */
  readonly vector: "channels" | "images" | "none";
  /** Threads of a workgroup that take neighbouring channels of the same places; where 0, all take neighbouring places. */
  readonly lanes: number;
  readonly threads: number;
  /** The axis along which a thread makes `results` results. */
  readonly run: number;
  /** A multiple of the stride in backward-data. */
  readonly results: number;
  /** The order of axes in which places are given to threads, innermost first. */
  readonly order: readonly number[];
  /** Whether images count before places. */
  readonly imagesFirst: boolean;
  /** Whether the taps of other axes stand in the text one after the other; else a loop runs over them. */
  readonly unrolled: boolean;
  readonly source: DepthwiseStrides;
  readonly result: DepthwiseStrides;
  readonly filter: {
    /** Whether a workgroup's filters are in its memory, brought there in whole lines: lanes only. */
    readonly staged: boolean;
    /** Whether four channels are one load. */
    readonly vector: boolean;
    readonly channel: number;
    readonly axes: readonly number[];
  };
  readonly mode: SizeMode;
  readonly elements: Elements;
}

/** Elements of a vector. */
function vectorWidth({ vector }: Pick<DepthwiseShape, "vector">): 1 | 4 {
  return vector === "none" ? 1 : 4;
}

/** Runs along the shape's run axis. */
function runCount({ axes, run, results }: DepthwiseShape): number {
  return Math.ceil(axes[run]!.places / results);
}

/** Threads of places (and of channels, where there are no lanes). */
function placeThreads(shape: DepthwiseShape): number {
  const { axes, run, vector, images, channels, lanes } = shape;
  const places = axes.reduce((all, { places }, d) => d === run ? all : all * places, 1);
  return places * runCount(shape) * Math.ceil(images / (vector === "images" ? 4 : 1)) *
    (lanes === 0 ? channels : 1);
}

/** Vectors of channels. */
function channelVectors({ vector, channels }: DepthwiseShape): number {
  return vector === "channels" ? channels / 4 : channels;
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

/** Which taps of an axis a place meets: of backward-data every `step`-th, the first by the place's remainder. */
function tapSteps({ stride, dilation }: Axis, op: DepthwiseShape["op"]) {
  if (op === "fwd") return { step: 1, shared: 1, back: dilation, inverse: 0 };
  const shared = gcd(stride, dilation);
  const step = stride / shared;
  const back = dilation / shared;
  return { step, shared, back, inverse: step === 1 ? 0 : inverseOf(back % step, step) };
}

/** Taps of an axis that a place meets at most. */
function tapHits(axis: Axis, op: DepthwiseShape["op"]): number {
  return Math.ceil(axis.taps / tapSteps(axis, op).step);
}

/** How often a kernel's text, or its loop, runs over a run of results, and the multiply-adds of each time. */
export function depthwiseRounds(
  shape: Pick<DepthwiseShape, "op" | "axes" | "run" | "results" | "multiplier">,
): { readonly rounds: number; readonly products: number } {
  const { op, axes, run, multiplier } = shape;
  const sums = op === "bwd-data" ? multiplier : 1;
  const rounds = axes.reduce((all, axis, d) => d === run ? all : all * tapHits(axis, op), sums);
  return { rounds, products: runProducts(shape).length };
}

/** The number below `modulus` whose product with `value` leaves 1, by Euclid; the two share no factor. */
function inverseOf(value: number, modulus: number): number {
  let [low, high, a, b] = [value, modulus, 1, 0];
  while (low > 1) {
    const times = Math.floor(high / low);
    [low, high, a, b] = [high - times * low, low, b - times * a, a];
  }
  return (a % modulus + modulus) % modulus;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** Which result of a run a source's place gives to, by which tap: places count from the run's first. */
interface RunProduct {
  readonly place: number;
  readonly result: number;
  readonly tap: number;
}

/** The products of a run, by the source's places; of backward-data with a stride only those that are. */
function runProducts(
  { op, axes, run, results }: Pick<DepthwiseShape, "op" | "axes" | "run" | "results">,
): RunProduct[] {
  const { stride, dilation, padding, taps } = axes[run]!;
  const all: RunProduct[] = [];
  for (let result = 0; result < results; result++) {
    for (let tap = 0; tap < taps; tap++) {
      if (op === "fwd") {
        all.push({ place: result * stride + tap * dilation, result, tap });
        continue;
      }
      const far = result + padding % stride - tap * dilation;
      if (far % stride === 0) all.push({ place: far / stride, result, tap });
    }
  }
  return all.sort((a, b) => a.place - b.place || a.tap - b.tap);
}

/** `base + 2u`, `base - 1u`, `base`. */
function plus(base: string, offset: number): string {
  return offset === 0 ? base : offset < 0 ? `${base} - ${-offset}u` : `${base} + ${offset}u`;
}

/**
 * Convolves each channel by itself. A thread loads the places that its run of results meets along one axis once for each
 * tap of the other axes, so that a load is worth up to as many products as the run has taps; the taps are in registers.
 * Binds the source (`input`, or `output` in backward-data), `filter`, the result and what the epilogue reads.
 */
export function depthwiseKernel(
  shape: DepthwiseShape,
  epilogue: EpilogueFactory,
  splits: { source: TensorSplit; filter: TensorSplit; result: TensorSplit },
): SizedKernel {
  const { op, axes, run, results, lanes, threads, multiplier, filter, elements, mode } = shape;
  const width = vectorWidth(shape);
  const module = moduleBuilder(mode);
  const [sourceName, resultName] = op === "fwd" ? ["input", "output"] : ["output", "input"];
  const source = module.tensor(sourceName!, "read", width, splits.source, elements.storage);
  const taps = module.tensor(
    "filter",
    "read",
    filter.vector && !filter.staged ? 4 : 1,
    splits.filter,
    elements.storage,
  );
  const result = module.tensor(resultName!, "write", width, splits.result, elements.result);
  const steps = epilogue(module, width, (row) => row);
  const size = (name: string, value: number) => module.size(name, value);
  const sized = axisSizes(module, "axis", axes);
  const others = axes.map((_, d) => d).filter((d) => d !== run);
  const along = axes[run]!;
  const hits = axes.map((axis) => tapHits(axis, op));
  const sums = op === "bwd-data" ? multiplier : 1;
  const products = runProducts(shape);
  const sourcePlaces = [...new Set(products.map(({ place }) => place))];
  const type = typeName("f32", width);
  const zero = zeroOf("f32", width);
  const allTaps = axes.reduce((all, axis) => all * axis.taps, 1);
  const channels = size("channels", channelVectors(shape));
  const channelWidth = shape.vector === "channels" ? 4 : 1;
  const runs = size("runs", runCount(shape));
  const imageVectors = size("images", shape.images / (shape.vector === "images" ? 4 : 1));

  // Where a thread's results lie.
  const placeDigits: Digit[] = shape.order.map((d) =>
    d === run ? { name: "block", radix: runs } : { name: `at${d}`, radix: sized.places[d]! }
  );
  const imageDigit = { name: "image", radix: imageVectors };
  const channelDigit = { name: "channel", radix: channels };
  const digits = shape.imagesFirst
    ? [imageDigit, ...placeDigits, ...(lanes === 0 ? [channelDigit] : [])]
    : [...placeDigits, ...(lanes === 0 ? [channelDigit] : []), imageDigit];
  const count = size("count", placeThreads(shape));
  const blocks = size("channel_blocks", Math.ceil(channelVectors(shape) / Math.max(1, lanes)));
  const threadPlace = lanes === 0 ? `  let place = id * ${threads}u + t;` : [
    `  let lane = t % ${lanes}u;`,
    `  let channel = id % ${blocks} * ${lanes}u + lane;`,
    `  let place = id / ${blocks} * ${threads / lanes}u + t / ${lanes}u;`,
    ...(filter.staged ? [`  let first_channel = id % ${blocks} * ${lanes * channelWidth}u;`] : []),
  ].join("\n");

  const origins = others.flatMap((d) => {
    const { step, shared, back, inverse } = tapSteps(axes[d]!, op);
    if (op === "fwd") {
      return [`  let from${d} = at${d} * ${sized.stride[d]} - ${sized.padding[d]};`];
    }
    const name = (text: string) => `${text}${d}`;
    const stride = sized.stride[d]!;
    const near = `  let far${d} = at${d} + ${sized.padding[d]};`;
    const stepSize = size(name("step"), step);
    // A tap is met where far − tap·dilation is a multiple of the stride; both then have the same remainder.
    return [
      near,
      `  let first${d} = far${d} / ${size(name("shared"), shared)} % ${stepSize} * ${
        size(name("inverse"), inverse)
      } % ${stepSize};`,
      `  let from${d} = select(0x80000000u, far${d} / ${stride} - first${d} * ${
        sized.dilation[d]
      } / ${stride}, far${d} % ${size(name("shared"), shared)} == 0u);`,
      `  let back${d} = ${size(name("back"), back)};`,
    ];
  });
  const strides = (tensor: DepthwiseStrides, prefix: string) => ({
    image: size(`${prefix}_image`, tensor.image),
    channel: size(`${prefix}_channel`, tensor.channel),
    axes: tensor.axes.map((stride, d) => size(`${prefix}_axis${d}`, stride)),
  });
  const from = strides(shape.source, "source");
  const to = strides(shape.result, "result");
  const factor = size("multiplier", multiplier);
  const sourceChannel = multiplier === 1
    ? "channel"
    : op === "fwd"
    ? `channel / ${factor}`
    : `(channel * ${factor} + copy)`;
  const filterChannel = op === "fwd" || multiplier === 1
    ? "channel"
    : `(channel * ${factor} + copy)`;
  const base = op === "fwd"
    ? `block * ${size("run_step", results * along.stride)} - ${sized.padding[run]}`
    : `block * ${size("run_step", results / along.stride)} + ${
      size("run_base", Math.floor(along.padding / along.stride))
    }`;
  const name = (place: number) => place < 0 ? `before${-place}` : `${place}`;
  const coordinates = [
    digitsText("place", "place_", digits),
    ...origins,
    `  let base = ${base};`,
    ...sourcePlaces.map((place) =>
      `  let in_${name(place)} = ${plus("base", place)} < ${sized.size[run]};`
    ),
    `  let begin = image * ${from.image} + base * ${sized.sourceStride[run]};`,
  ].join("\n");

  const filterStride = filter.axes.map((stride, d) => size(`filter_axis${d}`, stride));
  const filterStart = size("filter_channel", filter.channel);
  /** One tap of each of the other axes, and one copy of a channel that has several, with all taps of the run. */
  const round = (hit: readonly string[], copy: string, indent: string) => {
    const lines: string[] = [`{`];
    if (sums > 1) lines.push(`  let copy = ${copy};`);
    for (const d of others) {
      const { step } = tapSteps(axes[d]!, op);
      if (op === "fwd") {
        lines.push(`  let tap${d} = ${hit[d]};`);
        lines.push(`  let y${d} = from${d} + ${hit[d]} * ${sized.dilation[d]};`);
      } else {
        const last = `${sized.taps[d]} - 1u`;
        const tap = `first${d} + ${hit[d]} * ${size(`step${d}`, step)}`;
        // In both modes: sizes decide nothing that the kernel's name does not say.
        lines.push(`  let met${d} = ${tap};`, `  let tap${d} = min(met${d}, ${last});`);
        lines.push(`  let y${d} = from${d} - ${hit[d]} * back${d};`);
      }
    }
    const inside = others.flatMap((d) => [
      `y${d} < ${sized.size[d]}`,
      ...(op === "bwd-data" ? [`met${d} < ${sized.taps[d]}`] : []),
    ]);
    // In a loop nothing else is to be loaded meanwhile: a branch saves the mask of each value.
    const branch = !shape.unrolled;
    lines.push(`  let inside = ${inside.join(" && ")};`);
    if (branch) lines.push(`  if (inside) {`);
    lines.push(
      `  let row = begin + ${sourceChannel} * ${from.channel} + ${
        others.map((d) => `y${d} * ${sized.sourceStride[d]}`).join(" + ")
      };`,
    );
    const tapPlace = others.map((d) => `tap${d} * ${filterStride[d]}`).join(" + ");
    lines.push(
      filter.staged
        ? `  let taps = ${tapPlace};`
        : `  let taps = ${filterChannel} * ${filterStart} + ${tapPlace};`,
    );
    const loaded = new Set<number>();
    let last: number | undefined;
    for (const { place, result, tap } of products) {
      if (place !== last) {
        const at = place === 0
          ? "row"
          : place < 0
          ? `row - ${-place}u * ${sized.sourceStride[run]}`
          : `row + ${place}u * ${sized.sourceStride[run]}`;
        lines.push(
          `  let value_${name(place)} = select(${zero}, ${source.load(at)}, ${
            branch ? "" : "inside && "
          }in_${name(place)});`,
        );
        last = place;
      }
      if (!loaded.has(tap)) {
        const at = `taps + ${tap}u * ${filterStride[run]}`;
        const value = filter.staged ? `tile[${at}][lane]` : taps.load(at);
        lines.push(
          `  let w${tap} = ${width === 4 && !filter.vector ? `vec4f(${value})` : value};`,
        );
        loaded.add(tap);
      }
      lines.push(`  sum${result} = fma(value_${name(place)}, w${tap}, sum${result});`);
    }
    lines.push(branch ? `}}` : `}`);
    return lines.map((line) => indent + line).join("\n");
  };
  const hitSizes = hits.map((hit, d) => size(`hits${d}`, hit));
  const { rounds } = depthwiseRounds(shape);
  const body = shape.unrolled
    ? roundIndices(others, hits, sums).map(({ hit, copy }) => round(hit, copy, "  ")).join("\n")
    : [
      digitsText(
        "round",
        "round_",
        [
          ...others.toReversed().map((d) => ({ name: `hit${d}`, radix: hitSizes[d]! })),
          { name: "which", radix: "" },
        ],
        "    ",
      ),
      round(axes.map((_, d) => `hit${d}`), "which", "    "),
    ].join("\n");

  const place = [
    `image * ${to.image} + channel * ${to.channel}`,
    ...others.map((d) => `at${d} * ${to.axes[d]}`),
  ].join(" + ");
  const stores = [
    `  let target_place = ${place};`,
    ...Array.from({ length: results }, (_, q) => {
      const along = plus(`block * ${results}u`, q);
      const value = applyEpilogue(steps, `sum${q}`, {
        width,
        side: shape.vector === "images" ? "columns" : "rows",
        row: shape.vector === "channels" ? "(channel * 4u)" : "channel",
        column: "0u",
        offset: `offset`,
      });
      return [
        `  if (${along} < ${sized.places[run]}) {`,
        `    let offset = target_place + (${along}) * ${to.axes[run]};`,
        `    ${result.store("offset", value)}`,
        `  }`,
      ].join("\n");
    }),
  ].join("\n");

  const stagedType = filter.vector ? "vec4f" : "f32";
  const values = {
    results,
    threads,
    tile: filter.staged ? `array<array<${stagedType}, ${lanes + 1}>, ${allTaps}>` : "",
    threadPlace,
    staged: `${lanes * channelWidth * allTaps}u`,
    taps: `${allTaps}u`,
    filterElements: size("filter_elements", shape.channels * sums * allTaps),
    stage: `tile[i % ${allTaps}u][i / ${allTaps}u${
      filter.vector ? ` / 4u][i / ${allTaps}u % 4u` : ""
    }] = ${taps.load("element")};`,
    outside: lanes === 0 ? `place >= ${count}` : `place >= ${count} || channel >= ${channels}`,
    coordinates,
    sums: Array.from({ length: results }, (_, q) => `  var sum${q} = ${type}();`).join("\n"),
    rounds: shape.unrolled ? "" : size("rounds", rounds),
    body,
    stores,
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const traits = [
    "depthwise",
    op.replace("-", "_"),
    elementsTrait(elements),
    shape.imagesFirst ? "images" : lanes > 0 ? "channels" : "places",
    `${shape.order.join("")}x${width}`,
    ...(lanes > 0 ? [`l${lanes}of${threads}`] : []),
    `run${run}r${results}k${along.taps}s${along.stride}d${along.dilation}` +
    (op === "bwd-data" ? `p${along.padding % along.stride}` : ""),
    ...(multiplier > 1 ? ["multiplied"] : []),
    ...(filter.staged ? [`staged${allTaps}`] : filter.vector ? ["taps4"] : []),
    ...(shape.unrolled
      ? [`taps${others.map((d) => hits[d]).join("x")}${sums > 1 ? `x${sums}` : ""}`]
      : []),
  ];
  const traitName = traits.join("_") + epilogueTrait(steps) +
    splitTrait(splits.source, splits.filter, splits.result);
  const wgsl = render(template, {
    ...values,
    name: traitName,
    declarations: module.declarations(),
  });
  const iterations = (shape.unrolled ? 0 : loopIterations(rounds)) +
    (filter.staged ? loopIterations(Math.ceil(lanes * channelWidth * allTaps / threads)) : 0) +
    results * width * epilogueIterations(steps);
  const bytes = filter.staged ? stagedBytes(allTaps, lanes, filter.vector ? 4 : 1) : 0;
  return sizedKernel(traitName, mode, wgsl, module, [threads, 1, 1], bytes, iterations);
}

/** Every tap of the other axes (of backward-data every hit), of every copy of a channel. */
function roundIndices(others: readonly number[], hits: readonly number[], sums: number) {
  let all: { hit: string[]; copy: string }[] = Array.from(
    { length: sums },
    (_, copy) => ({ hit: [], copy: `${copy}u` }),
  );
  for (const d of others) {
    all = all.flatMap(({ hit, copy }) =>
      Array.from({ length: hits[d]! }, (_, i) => {
        const next = [...hit];
        next[d] = `${i}u`;
        return { hit: next, copy };
      })
    );
  }
  return all;
}
