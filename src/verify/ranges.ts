/** Ranges that random problems are drawn from. */
import { InputSyntaxError } from "../errors.ts";

/** Whole numbers from one to another, both included. */
export type Interval = readonly [least: number, most: number];

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
export const USUAL_RANGES: Ranges = {
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
