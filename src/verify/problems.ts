/** Random problems, and smaller ones of those that fail. */
import { InputSyntaxError } from "../errors.ts";
import {
  type ConvProblem,
  convProblem,
  dilatedSize,
  directFlops,
  type Operation,
} from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import type { Activation } from "../problem/activations.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import {
  gemmFlops,
  type GemmProblem,
  gemmProblem,
  type Transpose,
} from "../problem/gemm_problem.ts";
import { type ConvAsked, convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { Subject } from "../run/subject.ts";
import { filterLayoutFor, type Layout } from "../tensor/layout.ts";

/** Whole numbers from one to another, both included. */
type Interval = readonly [least: number, most: number];

/** What each word of a problem may be: numbers from a list of intervals. */
export interface Ranges {
  readonly batch: readonly Interval[];
  readonly channels: readonly Interval[];
  readonly groups: readonly Interval[];
  readonly axes: readonly Interval[];
  /** By the number of axes where nothing is said. */
  readonly size?: readonly Interval[];
  readonly filter: readonly Interval[];
  readonly stride: readonly Interval[];
  readonly dilation: readonly Interval[];
  /** At most what the filter reaches over where nothing is said. */
  readonly padding?: readonly Interval[];
  /** Whether a bias is added: 0 or 1. */
  readonly bias: readonly Interval[];
  readonly m: readonly Interval[];
  readonly n: readonly Interval[];
  readonly k: readonly Interval[];
}

/** What is drawn where nothing is said: small problems, all kinds of them. */
const USUAL_RANGES: Ranges = {
  batch: [[1, 4]],
  channels: [[1, 40]],
  groups: [[1, 1], [1, 8]],
  axes: [[1, 3], [2, 2]],
  filter: [[1, 5], [3, 3]],
  stride: [[1, 1], [1, 3]],
  dilation: [[1, 1], [1, 3]],
  bias: [[0, 0]],
  m: [[1, 96]],
  n: [[1, 96]],
  k: [[1, 300]],
};

const LEAST: Readonly<Record<keyof Ranges, number>> = {
  ...{ batch: 1, channels: 1, groups: 1, axes: 1, size: 1, filter: 1, stride: 1, dilation: 1 },
  ...{ padding: 0, bias: 0, m: 1, n: 1, k: 1 },
};
const MOST: { readonly [name in keyof Ranges]?: number } = { axes: 3, bias: 1 };
/** Larger numbers are a slip of the pen. */
const LARGEST = 65536;

/**
 * Reads `channels=1:64 filter=1,3,5`: words with lists of numbers and of intervals; `#` starts a comment.
 *
 * @throws {SyntaxError} for words that are none.
 */
export function parseRanges(text: string): Ranges {
  const words = text.replaceAll(/#.*$/gm, "").split(/\s+/).filter((word) => word !== "");
  const said = words.map((word) => {
    const [, name = "", values = ""] = /^([a-z]+)=(.+)$/.exec(word) ?? [];
    if (!Object.hasOwn(LEAST, name)) {
      throw new InputSyntaxError(
        `Cannot read ranges: "${word}" is none, expected ${
          Object.keys(LEAST).join(", ")
        }, as in channels=1:64 filter=1,3,5`,
      );
    }
    return [name, intervals(word, name as keyof Ranges, values)] as const;
  });
  return { ...USUAL_RANGES, ...Object.fromEntries(said) };
}

function intervals(word: string, name: keyof Ranges, values: string): Interval[] {
  return values.split(",").map((part): Interval => {
    const [, from, to = from] = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(part) ?? [];
    const [least, most] = [Number(from), Number(to)];
    const [lowest, highest] = [LEAST[name], MOST[name] ?? LARGEST];
    if (least >= lowest && least <= most && most <= highest) return [least, most];
    throw new InputSyntaxError(
      `Cannot read ranges: "${word}", expected whole numbers from ${lowest} to ${highest}, as in ${name}=${lowest} or ${name}=${lowest}:${
        MOST[name] ?? 8
      }`,
    );
  });
}

/** Numbers at which kernels change their ways. */
const EDGES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129];

/** One number of a list of intervals: half of them odd, or beside powers of two. */
export function drawNumber(of: readonly Interval[], random: () => number): number {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
  const [least, most] = pick(of);
  const edges = EDGES.filter((edge) => edge >= least && edge <= most);
  const drawn = least + Math.floor(random() * (most - least + 1));
  return random() < 0.5 && edges.length > 0 ? pick(edges) : drawn;
}

/** A convolution or a product, as subjects are made of. */
export type Asked = Subject["asked"];

/** Types that operands are made in; bf16 is one of files alone. */
export type FuzzDType = "f32" | "f16" | "bf16" | "i8";
/** All four, in the order of help texts. */
export const FUZZ_DTYPES: readonly FuzzDType[] = ["f32", "f16", "bf16", "i8"];

/** Flops of a random problem at most, so that many take little time. */
const MOST_FLOPS = 4e6;
const DRAWS = 100;
/** Sizes of problems with one, two and three axes. */
const SIZES: readonly Interval[] = [[1, 130], [1, 28], [1, 10]];

/** Draws problems until one is small; where ranges allow none, one as they have it. */
function drawSmall<T>(draw: () => T, flops: (one: T) => number): T {
  let drawn = draw();
  for (let i = 0; i < DRAWS && flops(drawn) > MOST_FLOPS; i++) drawn = draw();
  return drawn;
}

/** A convolution of these ranges. */
export function randomConv(
  random: () => number,
  ranges: Ranges,
  { op, layout, activation }: {
    readonly op: Operation;
    readonly layout: Layout;
    readonly activation: Activation;
  },
): Asked {
  const problem = drawSmall(() => drawConv(random, ranges, op), directFlops);
  const bias = op === "fwd" && drawNumber(ranges.bias, random) > 0;
  const epilogue = op === "fwd" ? { bias, activation } : NO_EPILOGUE;
  return convAsked(problem, { layout, epilogue });
}

/** A convolution as it is asked for, whose filter lies as its images do. */
export function convAsked(
  problem: ConvProblem,
  { layout, epilogue }: Pick<ConvAsked, "layout"> & Required<Pick<ConvAsked, "epilogue">>,
): Asked {
  return { conv: { problem, layout, filterLayout: filterLayoutFor(layout), epilogue } };
}

function drawConv(random: () => number, ranges: Ranges, op: Operation): ConvProblem {
  const count = drawNumber(ranges.axes, random);
  const draw = (of: readonly Interval[]) => drawNumber(of, random);
  const alike = random() < 0.5;
  const one = () => {
    const filter = draw(ranges.filter), stride = draw(ranges.stride);
    const dilation = draw(ranges.dilation);
    const reach = dilatedSize(filter, dilation);
    const begin = draw(ranges.padding ?? [[0, reach - 1]]);
    // One in four as frameworks have it that pad to the same size, or whose last steps reach no further.
    const end = random() < 0.25 ? draw(ranges.padding ?? [[0, reach - 1]]) : begin;
    const size = Math.max(draw(ranges.size ?? [SIZES[count - 1]!]), reach - begin - end, 1);
    return { filter, stride, dilation, begin, end, size };
  };
  const first = one();
  const axes = Array.from({ length: count }, (_, axis) => axis === 0 || alike ? first : one());
  const groups = draw(ranges.groups);
  // Channels that divide into groups; one in three grouped convolutions is depthwise.
  const depthwise = groups > 1 && random() < 0.33;
  const channels = () => groups * (depthwise ? 1 : Math.ceil(draw(ranges.channels) / groups));
  return convProblem({
    op,
    batch: draw(ranges.batch),
    groups,
    inChannels: channels(),
    outChannels: channels(),
    inputSize: axes.map(({ size }) => size),
    filterSize: axes.map(({ filter }) => filter),
    stride: axes.map(({ stride }) => stride),
    dilation: axes.map(({ dilation }) => dilation),
    paddingBegin: axes.map(({ begin }) => begin),
    paddingEnd: axes.map(({ end }) => end),
  });
}

/** A product of these ranges. */
export function randomGemm(random: () => number, ranges: Ranges): GemmProblem {
  const draw = (of: readonly Interval[]) => drawNumber(of, random);
  const transposes: readonly Transpose[] = ["nn", "nt", "tn", "tt"];
  return drawSmall(() =>
    gemmProblem({
      m: draw(ranges.m),
      n: draw(ranges.n),
      k: draw(ranges.k),
      batch: random() < 0.7 ? 1 : draw(ranges.batch),
      transpose: transposes[Math.floor(random() * 4)]!,
    }), gemmFlops);
}

/** What is computed. */
export function subjectOf(asked: Asked, dtype: FuzzDType): Subject {
  const own = dtype === "i8" ? "i8" : "f32";
  return "conv" in asked
    ? convSubject({ ...asked.conv, dtype: own })
    : gemmSubject(asked.gemm, { dtype: own });
}

/** Problems that are smaller in one thing, those that are smallest first. */
export function smallerProblems(asked: Asked): Asked[] {
  const made = "conv" in asked ? smallerConvs(asked.conv) : smallerGemms(asked.gemm);
  const own = JSON.stringify(asked);
  return made.filter((one) => JSON.stringify(one) !== own);
}

function halved(value: number): number {
  return Math.ceil(value / 2);
}

function smallerConvs(asked: ConvAsked): Asked[] {
  const { problem, epilogue = NO_EPILOGUE } = asked;
  const { outputSize: _, ...init } = problem;
  const { groups, batch, filterSize, inputSize } = problem;
  const [ins, outs] = [problem.inChannels / groups, problem.outChannels / groups];
  const every = (value: number) => filterSize.map(() => value);
  const halvedAt = (sizes: readonly number[], at: number) =>
    sizes.map((size, axis) => axis === at ? halved(size) : size);
  const axes = filterSize.map((_, axis) => axis);
  const dropped = (at: number) => {
    const lists = ["inputSize", "filterSize", "stride", "dilation", "paddingBegin", "paddingEnd"];
    return Object.fromEntries(
      lists.map((name) => [name, init[name as "stride"].toSpliced(at, 1)]),
    );
  };
  const changes = [
    { batch: 1 },
    ...(axes.length > 1 ? axes.map(dropped) : []),
    { groups: 1, inChannels: ins, outChannels: outs },
    { stride: every(1) },
    { dilation: every(1) },
    { paddingBegin: every(0), paddingEnd: every(0) },
    { inChannels: groups * halved(ins) },
    { outChannels: groups * halved(outs) },
    ...axes.map((axis) => ({ inputSize: halvedAt(inputSize, axis) })),
    ...axes.map((axis) => ({ filterSize: halvedAt(filterSize, axis) })),
    { batch: halved(batch) },
  ];
  const problems = changes.flatMap((change) => {
    try {
      return [convProblem({ ...init, ...change })];
    } catch {
      // The filter does not fit any more.
      return [];
    }
  });
  const others = problems.filter((one) => printDescriptor(one) !== printDescriptor(problem));
  return [
    { conv: { ...asked, epilogue: { ...epilogue, activation: "none" } } },
    { conv: { ...asked, epilogue: { ...epilogue, bias: false } } },
    ...others.map((one) => ({ conv: { ...asked, problem: one } })),
  ];
}

function smallerGemms(problem: GemmProblem): Asked[] {
  const { m, n, k } = problem;
  const changes: Partial<GemmProblem>[] = [
    { batch: 1 },
    { activation: "none" },
    { residual: false },
    { bias: "none" },
    { beta: 0 },
    { alpha: 1 },
    { k: halved(k) },
    { m: halved(m) },
    { n: halved(n) },
    { transpose: "nn" },
  ];
  return changes.map((change) => ({ gemm: gemmProblem({ ...problem, ...change }) }));
}
