import { type Axis, type Digit, digitsText } from "../axes.ts";
import type { ModuleBuilder } from "../module.ts";
import { channelWidth, imageWidth, plus } from "./shape.ts";
import { tapSteps } from "./taps.ts";
import { channelVectors, type DepthwiseText, runCount } from "./text.ts";

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
  return [
    `  let lane = ${lane};`,
    ...(sharing === 1 ? [] : [`  let share = t % ${sharing}u;`]),
    `  let channel = id % ${blocks} * ${lanes}u + lane;`,
    `  let place = id / ${blocks} * ${each}u + ${place};`,
    ...(filter.staged ? [first] : []),
  ].join("\n");
}

/** A place of a run as it stands in names: those before the run's first have a word. */
export function placeName(place: number): string {
  return place < 0 ? `before${-place}` : `${place}`;
}

/** Declares where a thread's results lie, and where the source that they meet begins. */
export function coordinateText(
  { shape, module, others, sized, from, products }: DepthwiseText,
): string {
  const { op, axes, run, results, lanes, segments } = shape;
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
  const segment = segments > 1 ? [{ name: "segment", radix: "" }] : [];
  const digits = shape.imagesFirst
    ? [image, ...places, ...channel, ...segment]
    : [...places, ...channel, image, ...segment];
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
  sized: DepthwiseText["sized"],
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
