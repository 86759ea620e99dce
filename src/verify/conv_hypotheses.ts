/** Faults that kernels of convolutions typically have. */
import { defined } from "../defined.ts";
import { type ConvProblem, operandTensors, tensorShape } from "../problem/conv_problem.ts";
import { type Activation, activationOperand, operandOf } from "../problem/activations.ts";
import { activate } from "../problem/activations.ts";
import {
  canonicalStrides,
  type Geometry,
  geometryOf,
  type HostArray,
  type Triple,
} from "../reference/geometry.ts";
import { scaledWhole } from "../reference/integers.ts";
import type { ReferenceInputs } from "../reference/reference.ts";
import type { HostOperands, Subject } from "../run/subject.ts";
import { type ConvOperands, convOperands, convSource } from "../simulate/conv_source.ts";
import { blockOf, gridOf } from "../simulate/conv_yardstick.ts";
import { simulateSums } from "../simulate/sums.ts";
import { FILTER_LAYOUTS, LAYOUTS, stridesInLayout } from "../tensor/layout.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";
import {
  type Hypothesis,
  type MovedCase,
  movedHypotheses,
  movedHypothesis,
  otherActivations,
  type SampledOutputs,
} from "./hypothesis.ts";

/** A convolution whose outputs are looked into. */
interface ConvCase extends ConvOperands {
  readonly bias: ArrayLike<number> | undefined;
  /** What the activation reads of a channel. */
  readonly operandAt: (channel: number) => number;
  readonly activation: Activation;
  /** Canonical, of the result. */
  readonly shape: readonly number[];
}

/** What a kernel does otherwise than it should; as it should where absent. */
interface ConvVariant {
  readonly geometry?: Geometry;
  readonly first?: HostArray;
  readonly second?: HostArray;
  readonly beyond?: ConvOperands["beyond"];
  /** The group whose operands on the left, and the channel of all groups together whose ones on the right, an output takes. */
  readonly groupOf?: (channel: number) => number;
  /** How many times the bias is added. */
  readonly biases?: number;
  readonly activation?: Activation;
  /** Whether the bias is added behind the activation. */
  readonly late?: boolean;
  /** The channel whose bias is added, or whose slope is taken. */
  readonly biasOf?: (channel: number) => number;
  readonly slopeOf?: (channel: number) => number;
}

/** A convolution as a case. */
export function convCase(
  problem: ConvProblem,
  inputs: ReferenceInputs,
  shape: readonly number[],
  activation: Activation,
): ConvCase {
  const operandAt = operandOf(activation, inputs);
  return { ...convOperands(problem, inputs), bias: inputs.bias, operandAt, activation, shape };
}

/** The outputs at canonical indices. */
function convVariant(
  of: ConvCase,
  indices: readonly number[],
  variant: ConvVariant,
): Float64Array {
  const { geometry: own, bias, shape } = of;
  const { biases = 1, activation = of.activation, late = false, groupOf } = variant;
  const { biasOf = Number, slopeOf = Number } = variant;
  const operands: ConvOperands = {
    problem: of.problem,
    geometry: variant.geometry ?? own,
    first: variant.first ?? of.first,
    second: variant.second ?? of.second,
    ...defined({ beyond: variant.beyond }),
  };
  const grid = gridOf(of, {});
  const area = shape.slice(2).reduce((all, one) => all * one, 1);
  return Float64Array.from(indices, (index) => {
    const { group, place, channel } = blockOf(of, grid, index);
    const whole = group * grid.channels + channel;
    const from = groupOf?.(whole) ?? group;
    // Channels are counted from the group's first one on.
    const rights = [whole - from * grid.channels];
    const source = convSource(operands, { group: from, lefts: [place], rights }, undefined, {});
    const sum = simulateSums(source, {}).exact[0]!;
    const at = Math.floor(index / area) % shape[1]!;
    const shift = bias === undefined ? 0 : biases * bias[biasOf(at)]!;
    const activated = (x: number) => activate(activation, x, of.operandAt(slopeOf(at)));
    return late ? activated(sum) + shift : activated(sum + shift);
  });
}

/** Blocks of channels that kernels sum at a time. */
const BLOCKS = [4, 8, 16, 32, 64, 128];

/** What may have become of a convolution, the simplest first. */
export function convHypotheses(of: ConvCase, layout: string): readonly Hypothesis[] {
  const variants = [
    ...epilogueVariants(of),
    ...filterVariants(of),
    ...layoutVariants(of),
    ...stepVariants(of),
    ...paddingVariants(of),
    ...groupVariants(of),
    ...shortVariants(of),
  ];
  const moved = {
    shape: of.shape,
    right: (indices: readonly number[]) => convVariant(of, indices, {}),
    names: axisNames(of),
    layouts: of.problem.op === "bwd-filter" ? FILTER_LAYOUTS : LAYOUTS,
    layout,
  };
  return [
    ...variants.map(([name, variant]): Hypothesis => ({
      name,
      values: (indices) => convVariant(of, indices, variant),
    })),
    ...movedHypotheses(moved),
    ...(of.problem.op === "bwd-filter" ? turnedGradients(moved) : []),
  ];
}

/** A filter's gradient with its taps reversed, or its channels exchanged. */
function turnedGradients(of: MovedCase): Hypothesis[] {
  const { shape: [k, c, ...taps] } = of;
  return [
    movedHypothesis(
      of,
      "the filter flipped (convolution in place of correlation)",
      ([k, c, ...at]) => [k!, c!, ...at.map((tap, axis) => taps[axis]! - 1 - tap)],
    ),
    ...(k === c && k! > 1
      ? [movedHypothesis(
        of,
        "the filter's input and output channels swapped",
        ([k, c, ...at]) => [c!, k!, ...at],
      )]
      : []),
  ];
}

/** What entries of a result's canonical axes are called. */
export function axisNames({ problem: { op, filterSize } }: Pick<ConvCase, "problem">): string[] {
  const spatial = ["depth", "row", "column"].slice(-filterSize.length);
  return op === "bwd-filter"
    ? ["output channel", "input channel", ...spatial.map((name) => `tap ${name}`)]
    : ["image", "channel", ...spatial];
}

type Named = readonly (readonly [name: string, variant: ConvVariant])[];

function epilogueVariants(of: ConvCase): Named {
  const { problem: { op }, geometry, bias, activation } = of;
  const acts = activation !== "none";
  return [
    ...(bias === undefined ? [] : [
      ["the bias alone", { geometry: { ...geometry, inChannels: 0 } }],
      ["the bias missing", { biases: 0 }],
      ["the bias added twice", { biases: 2 }],
      ["the bias subtracted", { biases: -1 }],
      ...otherChannels(of, "bias", "biasOf"),
    ] as const),
    ...(op !== "fwd" ? [] : otherActivations(activation)).map(([name, activation]) =>
      [name, { activation }] as const
    ),
    ...(activationOperand(activation) === undefined ? [] : otherChannels(of, "slope", "slopeOf")),
    ...(acts && bias !== undefined
      ? [
        [`the bias added behind ${activation}`, { late: true }],
        [`neither bias nor ${activation}`, { biases: 0, activation: "none" }],
      ] as const
      : []),
  ];
}

/** What a kernel reads for each channel, taken of another one. */
function otherChannels(
  { shape: [, channels], problem: { groups } }: ConvCase,
  what: string,
  key: "biasOf" | "slopeOf",
): Named {
  const all = channels!, own = all / groups;
  const moves: readonly (readonly [string, (channel: number) => number])[] = [
    [`channel 0's ${what} for all channels`, () => 0],
    [`the next channel's ${what} for each`, (channel) => (channel + 1) % all],
    [`the previous channel's ${what} for each`, (channel) => (channel + all - 1) % all],
    [`the ${what} of the channel counted from the end`, (channel) => all - 1 - channel],
    [`the first group's ${what} for all groups`, (channel) => channel % own],
  ];
  return moves.map(([name, of]) => [name, { [key]: of }]);
}

/** The filter with axes turned, channels exchanged or taps left out. */
function filterVariants(of: ConvCase): Named {
  const { problem: { op, groups }, geometry: g, second } = of;
  if (op === "bwd-filter") return [];
  const strides = g.filterStrides;
  const [, r, s] = g.filterSize;
  const sizes = [g.groups * g.outChannels, g.inChannels, ...g.filterSize];
  const read = (from: (at: readonly number[]) => readonly number[] | undefined): ConvVariant => ({
    second: readFrom(second, sizes, strides, from),
  });
  const flips = (axes: readonly number[]) =>
    read((at) => at.map((place, axis) => axes.includes(axis) ? sizes[axis]! - 1 - place : place));
  const without = (gone: (at: readonly number[]) => boolean) =>
    read((at) => gone(at) ? undefined : at);
  const ends = (axis: number, name: string): Named =>
    sizes[axis]! < 2 ? [] : [
      [`the filter's first ${name} left out`, without((at) => at[axis] === 0)],
      [`the filter's last ${name} left out`, without((at) => at[axis] === sizes[axis]! - 1)],
    ];
  const swapped = (a: number, b: number): ConvVariant => ({
    geometry: { ...g, filterStrides: strides.with(a, strides[b]!).with(b, strides[a]!) },
  });
  return [
    ["the filter flipped (convolution in place of correlation)", flips([2, 3, 4])],
    ...(r > 1 && s > 1
      ? [
        ["the filter flipped along its columns", flips([4])],
        ["the filter flipped along its rows", flips([3])],
      ] as const
      : []),
    ...(groups === 1 && g.inChannels === g.outChannels && g.inChannels > 1
      ? [["the filter's input and output channels swapped", swapped(0, 1)]] as const
      : []),
    ...(g.inChannels > 1 ? [["the filter's input channels in reverse", flips([1])]] as const : []),
    ...ends(3, "row"),
    ...ends(4, "column"),
    ["the filter's first tap left out", without((at) => at.slice(2).every((tap) => tap === 0))],
    [
      "the filter's last tap left out",
      without((at) => at.every((tap, axis) => axis < 2 || tap === sizes[axis]! - 1)),
    ],
    ...(op === "fwd" ? ends(1, "input channel") : groups === 1 ? ends(0, "output channel") : []),
  ];
}

/** The tensor whose element at each place is another one, or 0, in the same order of memory. */
function readFrom(
  data: HostArray,
  sizes: readonly number[],
  strides: readonly number[],
  from: (at: readonly number[]) => readonly number[] | undefined,
): HostArray {
  const made = data.slice() as HostArray;
  for (let i = 0; i < elementCount(sizes); i++) {
    const at = unravelIndex(i, sizes);
    const other = from(at);
    made[offset(at, strides)] = other === undefined ? 0 : data[offset(other, strides)]!;
  }
  return made;
}

function offset(at: readonly number[], strides: readonly number[]): number {
  return at.reduce((sum, place, axis) => sum + place * strides[axis]!, 0);
}

/** Operands that are read in another layout, or with rows and columns swapped. */
function layoutVariants({ problem, geometry: g }: ConvCase): Named {
  return operandTensors(problem.op).flatMap((which): Named => {
    const shape = tensorShape(problem, which);
    const sizes = [...shape.slice(0, 2), ...Array(5 - shape.length).fill(1), ...shape.slice(2)];
    const own = g[`${which}Strides`];
    const title = which === "output" ? "the output's gradient" : `the ${which}`;
    const read = (name: string, strides: readonly number[]): Named =>
      strides.every((one, axis) => one === own[axis] || sizes[axis] === 1)
        ? []
        : [[`${title} ${name}`, { geometry: { ...g, [`${which}Strides`]: strides } }]];
    const layouts = which === "filter" ? FILTER_LAYOUTS : LAYOUTS;
    return [
      ...layouts.flatMap((layout) => {
        const lying = { ...canonicalStrides(problem), [which]: stridesInLayout(shape, layout) };
        return read(`read as ${layout}`, geometryOf(problem, lying)[`${which}Strides`]);
      }),
      ...(sizes[3] === sizes[4]
        ? read("with rows and columns swapped", [...own.slice(0, 3), own[4]!, own[3]!])
        : []),
    ];
  });
}

function stepVariants({ geometry: g }: ConvCase): Named {
  const ones: Triple = [1, 1, 1];
  const differ = (a: Triple, b: Triple) => a.some((one, axis) => one !== b[axis]);
  const swapped = (a: Triple): Triple => [a[0], a[2], a[1]];
  const all: (readonly [string, Partial<Geometry>, boolean])[] = [
    [
      "stride and dilation swapped",
      { stride: g.dilation, dilation: g.stride },
      differ(g.stride, g.dilation),
    ],
    ["the dilation left out", { dilation: ones }, differ(g.dilation, ones)],
    ["the stride left out", { stride: ones }, differ(g.stride, ones)],
    [
      "strides of rows and columns swapped",
      { stride: swapped(g.stride) },
      differ(g.stride, swapped(g.stride)),
    ],
    [
      "dilations of rows and columns swapped",
      { dilation: swapped(g.dilation) },
      differ(g.dilation, swapped(g.dilation)),
    ],
    [
      "paddings of rows and columns swapped",
      { padding: swapped(g.padding) },
      differ(g.padding, swapped(g.padding)),
    ],
  ];
  return all.filter(([, , applies]) => applies).map(([name, changed]) => [
    name,
    { geometry: { ...g, ...changed } },
  ]);
}

function paddingVariants({ problem, geometry: g }: ConvCase): Named {
  const axes = problem.filterSize.map((_, axis) => axis + 3 - problem.filterSize.length);
  const names = ["depth", "rows", "columns"];
  const moved = (by: number, which: readonly number[]) => ({
    geometry: {
      ...g,
      padding: g.padding.map((pad, axis) => which.includes(axis) ? pad + by : pad) as Triple,
    },
  });
  const ends = [0, 0, 0].map((_, axis) => problem.paddingEnd[axis - axes[0]!] ?? 0) as Triple;
  const none: Triple = [0, 0, 0];
  return [
    ...[1, -1].flatMap((by): Named => {
      const how = `padding ${
        by > 0 ? "one more in front and one less behind" : "one less in front and one more behind"
      }`;
      return [
        ...(axes.length > 1 ? [[how, moved(by, axes)]] as const : []),
        ...axes.map((axis) => [`${how}, along ${names[axis]}`, moved(by, [axis])] as const),
      ];
    }),
    ...(ends.some((end, axis) => end !== g.padding[axis])
      ? [["padding on the other side", { geometry: { ...g, padding: ends } }]] as const
      : []),
    ...(g.padding.some((pad) => pad > 0)
      ? [["no padding in front", { geometry: { ...g, padding: none } }]] as const
      : []),
    ...(problem.op !== "bwd-data" && [...g.padding, ...ends].some((pad) => pad > 0)
      ? BEYOND.map(([name, beyond]) => [`padding that ${name}, not of zeros`, { beyond }] as const)
      : []),
  ];
}

/** What frameworks pad with beside zeros. */
const BEYOND: readonly (readonly [name: string, beyond: (at: number, size: number) => number])[] = [
  ["repeats the edge", (at, size) => Math.max(0, Math.min(size - 1, at))],
  ["mirrors the input", (at, size) => at < 0 ? -at : 2 * (size - 1) - at],
  ["wraps around", (at, size) => ((at % size) + size) % size],
];

function groupVariants({ problem: { groups, op }, geometry: g }: ConvCase): Named {
  if (groups === 1 || op !== "fwd") return [];
  return [
    ["the first group's input for all groups", { groupOf: () => 0 }],
    ["channels dealt to groups in turn", { groupOf: (channel) => channel % groups }],
    [
      "groups in reverse order",
      { groupOf: (channel) => groups - 1 - Math.floor(channel / g.outChannels) },
    ],
  ];
}

/** Groups that are tried in place of each other, at most. */
const MOST_GROUPS = 16;

/** The hypothesis that groups have results of other ones, of which each has what fits best. */
export function exchangedGroups(of: ConvCase, { indices, got }: SampledOutputs): Hypothesis[] {
  const { problem: { op, groups }, shape } = of;
  if (groups === 1 || groups > MOST_GROUPS) return [];
  const axis = op === "bwd-filter" ? 0 : 1;
  const size = elementCount(shape.slice(axis)) / groups;
  const own = indices.map((index) => Math.floor(index / size) % groups);
  const values = Array.from(
    { length: groups },
    (_, other) => convVariant(of, indices.map((at, i) => at + (other - own[i]!) * size), {}),
  );
  const rest = (group: number, other: number) =>
    indices.reduce(
      (sum, _, i) => own[i] === group ? sum + (got[i]! - values[other]![i]!) ** 2 : sum,
      0,
    );
  const best = values.map((_, group) =>
    values.reduce(
      (least, __, other) => rest(group, other) < rest(group, least) ? other : least,
      group,
    )
  );
  const moved = best.flatMap((other, group) =>
    other === group ? [] : [`group ${other}'s in group ${group}`]
  );
  return moved.length === 0 ? [] : [{
    name: `results of other groups: ${moved.slice(0, 4).join(", ")}${
      moved.length > 4 ? ", ..." : ""
    }`,
    values: () => Float64Array.from(own, (group, i) => values[best[group]!]![i]!),
  }];
}

/** Sums that leave out their end. */
function shortVariants({ problem: { op }, geometry: g }: ConvCase): Named {
  const short = (name: string, key: "inChannels" | "outChannels" | "batch", size: number): Named =>
    BLOCKS.filter((block) => size > block && size % block > 0).map((block) => [
      `the last ${
        size % block
      } of ${size} ${name} left out (the tail behind a multiple of ${block})`,
      // Groups are counted by the channels of a whole one.
      { geometry: { ...g, [key]: size - size % block } },
    ]);
  const channels = g.groups > 1
    ? []
    : op === "fwd"
    ? short("input channels", "inChannels", g.inChannels)
    : op === "bwd-data"
    ? short("output channels", "outChannels", g.outChannels)
    : short("images", "batch", g.batch);
  const images = op === "bwd-filter" && g.batch > 1
    ? [["the last image left out", { geometry: { ...g, batch: g.batch - 1 } }]] as const
    : [];
  return [...channels, ...images];
}

/** What may have become of the bytes at some canonical indices; nothing of results that are none. */
export async function byteHypotheses(
  { asked, linear, activation, shape, result: { dtype } }: Subject,
  operands: HostOperands,
  indices: readonly number[],
): Promise<readonly Hypothesis[]> {
  if ("gemm" in asked || linear === undefined || (dtype !== "i8" && dtype !== "u8")) return [];
  const { scale = 1, zeroPoint = 0 } = asked.conv.epilogue ?? {};
  const order = [...indices].sort((a, b) => a - b);
  const { values } = await linear.reference.of(operands, { indices: Float64Array.from(order) });
  const sums = new Map(order.map((index, i) => [index, activate(activation, values[i]!)]));
  const area = elementCount(shape.slice(2));
  const scaleAt = (index: number) =>
    typeof scale === "number"
      ? Math.fround(scale)
      : operands.scale![Math.floor(index / area) % shape[1]!]!;
  const [least, most] = dtype === "i8" ? [-128, 127] : [0, 255];
  const clipped = (value: number) => Math.max(least, Math.min(most, value));
  const wrapped = (value: number) => (((value - least) % 256) + 256) % 256 + least;
  const one = (name: string, of: (sum: number, scale: number) => number): Hypothesis => ({
    name,
    values: (places) => Float64Array.from(places, (index) => of(sums.get(index)!, scaleAt(index))),
  });
  return [
    one(
      "results wrapped around in place of saturated",
      (sum, by) => wrapped(scaledWhole(sum, by) + zeroPoint),
    ),
    one(
      "results cut off in place of rounded",
      (sum, by) => clipped(Math.trunc(sum * by) + zeroPoint),
    ),
    one("results rounded down", (sum, by) => clipped(Math.floor(sum * by) + zeroPoint)),
    ...(zeroPoint === 0
      ? []
      : [one("the output's zero point left out", (sum, by) => clipped(scaledWhole(sum, by)))]),
    one("the scale left out", (sum) => clipped(sum + zeroPoint)),
  ];
}
