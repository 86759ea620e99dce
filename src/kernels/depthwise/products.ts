/** The text of {@linkcode depthwiseKernel}: where threads' results lie, their products and their stores. */
import { masked, zeroOf } from "../../elements/scalar.ts";
import { lines, range } from "../lists.ts";
import { type Digit, digitsText } from "../axes.ts";
import {
  channelVectors,
  channelWidth,
  depthwiseRounds,
  type DepthwiseShape,
  type DepthwiseText,
  groupThreads,
  imageWidth,
  INNERMOST,
  overlaps,
  plus,
  resultsOf,
  roundIndices,
  runCount,
  sourcesOf,
  sourceWidth,
  tapHits,
  tapSteps,
  vectorWidth,
} from "./shape.ts";

/** Declares `place`, and `lane` and `channel` where neighbouring threads take neighbouring channels. */
export function threadText({ shape, module }: DepthwiseText): string {
  const { lanes, threads, filter, vector, sharing } = shape;
  if (lanes === 0) return `  let place = id * ${threads}u + t;`;
  const blocks = module.size("channel_blocks", Math.ceil(channelVectors(shape) / lanes));
  const first = `  let first_channel = id % ${blocks} * ${lanes * channelWidth(shape)}u;`;
  const each = threads / lanes / sharing;
  // Where a load brings source channels, neighbouring threads take neighbouring places and share their taps.
  const [lane, place] = vector === "sources"
    ? [`t / ${each * sharing}u`, sharing === 1 ? `t % ${each}u` : `t / ${sharing}u % ${each}u`]
    : [`t % ${lanes}u`, `t / ${lanes}u`];
  return lines(
    `  let lane = ${lane};`,
    sharing > 1 && `  let share = t % ${sharing}u;`,
    `  let channel = id % ${blocks} * ${lanes}u + lane;`,
    `  let place = id / ${blocks} * ${each}u + ${place};`,
    filter.staged && first,
  );
}

/** A place of a run as it stands in names: those before the run's first have a word. */
function placeName(place: number): string {
  return place < 0 ? `before${-place}` : `${place}`;
}

/** Declares where a thread's results lie, and where the source that they meet begins. */
export function coordinateText(text: DepthwiseText): string {
  const { shape, module, others, sized, strides: { source: from }, products } = text;
  const { op, axes, run, results, lanes, segments, columns } = shape;
  const { size } = module;
  const along = axes[run]!;
  const places: Digit[] = shape.order.map((d) =>
    d === run
      ? { name: "block", radix: size("runs", runCount(shape)) }
      : d === INNERMOST && columns > 1
      ? { name: "pair", radix: size("pairs", Math.ceil(axes[d]!.places / columns)) }
      : { name: `at${d}`, radix: sized.places[d]! }
  );
  const image = { name: "image", radix: size("images", shape.images / imageWidth(shape)) };
  const channel = lanes === 0
    ? [{ name: "channel", radix: size("channels", channelVectors(shape)) }]
    : [];
  const segment = segments > 1 ? [{ name: "segment", radix: "" }] : [];
  const digits = shape.imagesFirst
    ? [image, ...places, ...channel, ...segment]
    : [...places, ...channel, image, ...segment];
  const base = op === "fwd"
    ? `block * ${size("run_step", results * along.stride)} - ${sized.padding[run]}`
    : `block * ${size("run_step", results / along.stride)} + ${
      size("run_base", Math.floor(along.padding / along.stride))
    }`;
  const met = [...new Set(products.map(({ place }) => place))];
  return lines(
    digitsText("place", "place_", digits),
    overlapText(text),
    columns > 1 && `  let at${INNERMOST} = pair * ${columns}u;`,
    others.map((d) =>
      op === "fwd"
        ? `  let from${d} = at${d} * ${sized.stride[d]} - ${sized.padding[d]};`
        : gradientOrigin(text, d)
    ),
    `  let base = ${base};`,
    met.map((place) =>
      `  let in_${placeName(place)} = ${plus("base", place)} < ${sized.size[run]};`
    ),
    `  let begin = image * ${from.image} + base * ${sized.sourceStride[run]};`,
  );
}

/** Where a place of the input meets the gradient first, and by which tap. */
function gradientOrigin({ shape, module, sized }: DepthwiseText, d: number): string[] {
  const { step, shared, back, inverse } = tapSteps(shape.axes[d]!, "bwd-data");
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
export function roundsText(text: DepthwiseText): string {
  const { shape: { op, axes, loop, sharing }, module, others } = text;
  const hits = axes.map((axis) => tapHits(axis, op));
  const own = (which: string) => sharing === 1 ? which : `(${which}) * ${sharing}u + share`;
  if (loop.over !== "rounds") {
    const inTurn = loop.over === "nothing" ? depthwiseRounds(text.shape).sources : loop.together;
    const first = loop.over === "nothing" ? "" : `round * ${inTurn}u + `;
    // Of several columns taps of theirs stand in one round.
    const alone = text.shape.columns > 1 ? hits.with(INNERMOST, 1) : hits;
    const rounds = roundIndices(others, alone, inTurn);
    return lines(rounds.map(({ hit, which }) => roundText(text, hit, own(first + which))));
  }
  const radices = hits.map((hit, d) => module.size(`hits${d}`, hit));
  const digits = [
    ...others.toReversed().map((d) => ({ name: `hit${d}`, radix: radices[d]! })),
    { name: "turn", radix: "" },
  ];
  return lines(
    digitsText("round", "round_", digits, "    "),
    roundText(text, axes.map((_, d) => `hit${d}`), own("turn")),
  );
}

/** The sum of a run's result, of one of a thread's channels and columns. */
export function sumName(
  { own }: DepthwiseShape,
  result: number,
  channel: number,
  column = 0,
): string {
  return `sum${result}${own === 1 ? "" : `_${channel}`}${column === 0 ? "" : `_beside${column}`}`;
}

/** WGSL of the result's channel that is the `which`-th of a thread's. */
export function resultChannel(shape: DepthwiseShape, which: number): string {
  return shape.own === 1 ? "channel" : `(${plus(firstResult(shape), which)})`;
}

/** WGSL of the first of a thread's result channels. */
export function firstResult(shape: DepthwiseShape): string {
  return overlaps(shape) ? "first_result" : `channel * ${shape.own}u`;
}

/** Declares `first_result`, and how many of a thread's channels are `repeated`, where the last thread of a group has its neighbour's. */
function overlapText({ shape, module }: DepthwiseText): string[] {
  if (!overlaps(shape)) return [];
  const threads = module.size("group_threads", groupThreads(shape));
  const results = module.size("group_results", resultsOf(shape));
  return [
    `  let wanted = channel % ${threads} * ${shape.own}u;`,
    `  let repeated = wanted - min(wanted, ${results} - ${shape.own}u);`,
    `  let first_result = channel / ${threads} * ${results} + wanted - repeated;`,
  ];
}

/**
 * WGSL of the source's channel (or vector of them), the one that is named `which` of those that a result sums, of where its
 * filters begin, and of how far apart those of a vector's channels are.
 */
function groupedChannels({ shape, module, sources }: DepthwiseText) {
  const { op, group, filter, own } = shape;
  const results = resultsOf(shape);
  const { size } = module;
  const first = results === own
    ? "channel"
    : `channel / ${size("group_threads", groupThreads(shape))}`;
  const source = sources === 1 ? first : `(${first} * ${size("group_sources", sources)} + which)`;
  const scale = sourceWidth(shape) === 4 && !filter.vector ? " * 4u" : "";
  return {
    source,
    step: op === "fwd"
      ? size("filter_input", filter.input)
      : size("filter_channel", filter.channel),
    filter(channel: number) {
      const result = resultChannel(shape, channel);
      const [filters, input] = op === "fwd"
        ? [result, `which${scale}`]
        : [`${source}${scale}`, `${result} % ${size("group_results", results)}`];
      const within = group.inputs === 1 || op === "fwd" && sources === 1
        ? ""
        : `${input} * ${size("filter_input", filter.input)} + `;
      return `${filters} * ${size("filter_channel", filter.channel)} + ${within}`;
    },
  };
}

/** One tap of each of the other axes, and one source channel (or vector) where a result sums several, with all taps of the run. */
function roundText(text: DepthwiseText, hit: readonly string[], which: string): string {
  const {
    shape,
    module,
    others,
    sized,
    strides: { source: from, filter: filterStrides },
    sources,
  } = text;
  const { op, axes, filter, loop } = shape;
  const count = () => module.size("group_sources", sources);
  const { source: sourceChannel, filter: filterChannel } = groupedChannels(text);
  const place = others.map((d) => `tap${d} * ${filterStrides[d]}`).join(" + ");
  const inside = others.filter((d) => shape.columns === 1 || d !== INNERMOST).flatMap((d) => [
    `y${d} < ${sized.size[d]}`,
    ...(op === "bwd-data" ? [`met${d} < ${sized.taps[d]}`] : []),
  ]);
  if (isUneven(shape)) inside.push("there");
  return lines(
    "  {",
    ...(isUneven(shape)
      ? [
        `  let there = ${which} < ${count()};`,
        `  let which = min(${which}, ${count()} - 1u);`,
      ]
      : [sources > 1 && `  let which = ${which};`]),
    others.map((d) => {
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
    `  let ${shape.columns === 1 ? "inside" : "inside_others"} = ${inside.join(" && ")};`,
    // In a loop nothing else is to be loaded meanwhile: a branch saves the mask of each value.
    loop.over === "rounds" && "  if (inside) {",
    `  let row = begin + ${sourceChannel} * ${from.channel} + ${
      others.map((d) => `y${d} * ${sized.sourceStride[d]}`).join(" + ")
    };`,
    range(shape.own).map((m) =>
      `  let ${ownName(shape, "taps", m)} = ${filter.staged ? "" : filterChannel(m)}${place};`
    ),
    shape.columns > 1 ? columnsText(text) : productText(text),
    loop.over === "rounds" ? "  }}" : "  }",
  );
}

/** Whether the last round of threads that share a run has no source for some of them. */
export function isUneven(shape: DepthwiseShape): boolean {
  return sourcesOf(shape) % shape.sharing > 0;
}

/** A name of what belongs to one of a thread's channels. */
export function ownName({ own }: DepthwiseShape, name: string, channel: number): string {
  return own === 1 ? name : `${name}_${channel}`;
}

/** Loads each place and each tap of a run when it is met first, and multiplies. */
function productText(text: DepthwiseText): string {
  const { shape, sized, strides: { filter: filterStrides }, products, source, taps } = text;
  const { run, filter, loop } = shape;
  const width = vectorWidth(shape);
  const summed = sourceWidth(shape) === 4;
  const loaded = new Set<string>();
  const widened = (tap: string) => width === 4 && !filter.vector ? `vec4f(${tap})` : tap;
  const once = (name: string, load: () => string) => {
    if (loaded.has(name)) return "";
    loaded.add(name);
    return `  let ${name} = ${load()};`;
  };
  return lines(products.map(({ place, result, tap }) => {
    const value = `value_${placeName(place)}`;
    return [
      once(value, () => {
        const far = `${Math.abs(place)}u * ${sized.sourceStride[run]}`;
        const at = place === 0 ? "row" : `row ${place < 0 ? "-" : "+"} ${far}`;
        const inside = loop.over === "rounds" ? [] : ["inside"];
        return source.load(at, [...inside, `in_${placeName(place)}`]);
      }),
      range(shape.own).map((m) => {
        const weight = ownName(shape, `w${tap}`, m);
        const sum = sumName(shape, result, m);
        return [
          once(weight, () => {
            const at = `${ownName(shape, "taps", m)} + ${tap}u * ${filterStrides[run]}`;
            if (filter.staged) return widened(`tile[${at}][lane]`);
            if (!summed || filter.vector) {
              const loaded = widened(taps.load(at));
              // Outside of a branch: no value times another source's weight is nothing, but of infinities.
              return isUneven(shape) && loop.over !== "rounds"
                ? masked(loaded, zeroOf("f32", 4), ["there"])
                : loaded;
            }
            const { step } = groupedChannels(text);
            const four = range(4).map((i) => taps.load(`${at} + ${i}u * ${step}`));
            return `vec4f(${four.join(", ")})`;
          }),
          summed
            ? [..."xyzw"].map((i) => `  ${sum} = fma(${value}.${i}, ${weight}.${i}, ${sum});`)
            : `  ${sum} = fma(${value}, ${weight}, ${sum});`,
        ];
      }),
    ];
  }));
}

/** The products of all taps of the innermost axis with a thread's columns: each of their places is loaded once. */
function columnsText(text: DepthwiseText): string {
  const { shape, sized, strides: { filter: filterStrides }, products, source, taps } = text;
  const { op, axes, run, columns, own } = shape;
  // How far a column lies beside the first, of which a tap meets one.
  const met = (column: number, tap: number) => op === "fwd" ? column + tap : column - tap;
  const across = range(axes[INNERMOST]!.taps);
  const far = [...new Set(across.flatMap((tap) => range(columns).map((c) => met(c, tap))))];
  const beside = (far: number) => far < 0 ? `left${-far}` : `right${far}`;
  const loaded = new Set<string>();
  const once = (name: string, load: () => string) => {
    if (loaded.has(name)) return "";
    loaded.add(name);
    return `  let ${name} = ${load()};`;
  };
  return lines(
    far.map((far) =>
      `  let in_${beside(far)} = inside_others && ${plus(`y${INNERMOST}`, far)} < ${
        sized.size[INNERMOST]
      };`
    ),
    products.map(({ place, result, tap }) =>
      across.map((side) => [
        range(columns).map((column) => {
          const one = met(column, side);
          const down = `${Math.abs(place)}u * ${sized.sourceStride[run]}`;
          const row = place === 0 ? "row" : `row ${place < 0 ? "-" : "+"} ${down}`;
          const at = one === 0
            ? row
            : `${row} ${one < 0 ? "-" : "+"} ${Math.abs(one)}u * ${sized.sourceStride[INNERMOST]}`;
          return once(
            `value_${placeName(place)}_${beside(one)}`,
            () => source.load(at, [`in_${beside(one)}`, `in_${placeName(place)}`]),
          );
        }),
        range(own).map((m) => {
          const weight = ownName(shape, `w${tap}_${side}`, m);
          return [
            once(weight, () =>
              taps.load(
                `${ownName(shape, "taps", m)} + ${tap}u * ${filterStrides[run]} + ${side}u * ${
                  filterStrides[INNERMOST]
                }`,
              )),
            range(columns).map((column) => {
              const sum = sumName(shape, result, m, column);
              const value = `value_${placeName(place)}_${beside(met(column, side))}`;
              return `  ${sum} = fma(${value}, ${weight}, ${sum});`;
            }),
          ];
        }),
      ])
    ),
  );
}
