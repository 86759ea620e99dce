/**
 * Problem descriptors: oneDNN benchdnn's grammar, e.g. `mb64ic64ih56oc64oh56kh3ph1n"Conv2N64"`.
 *
 * Keys, in any order: `g` groups (1), `mb` batch (2), `ic` `oc` channels; per spatial axis (d, h, w)
 * `i` input, `k` filter, `o` output, `s` stride (1), `p` padding before, `d` dilation (0 is none), and
 * `n"name"` last. The outermost axis named gives the number of spatial axes; an inner axis that nothing is said
 * of copies its outer neighbour. A missing output size is derived; with an output size given, a missing padding
 * is derived and split evenly, and the padding after follows from both. `_` is ignored.
 *
 * Beyond benchdnn: lists and ranges, and an axis of which only some is said copies the rest.
 */
import { InputSyntaxError } from "../errors.ts";
import { suggestion } from "./closest.ts";
import {
  type ConvProblem,
  convProblem,
  dilatedSize,
  type Operation,
  outputSizeOf,
} from "./conv_problem.ts";
import { endBefore } from "./padding.ts";

/** A key of a descriptor with its values: several where the text holds a list or a range. */
interface Entry {
  readonly key: string;
  readonly values: readonly number[];
  /** Where the key stands in the text, from 0. */
  readonly column: number;
}

const KEYS = [
  ...["g", "mb", "ic", "oc"],
  ...["id", "ih", "iw", "kd", "kh", "kw", "od", "oh", "ow"],
  ...["sd", "sh", "sw", "pd", "ph", "pw", "dd", "dh", "dw"],
];
/** More values than this in one list is a slip of the pen. */
const MAX_VALUES = 100_000;

/** A `SyntaxError` about `column` (from 0) of a line: the sentence, then the line and a caret. */
function syntaxError(text: string, column: number, what: string): InputSyntaxError {
  return new InputSyntaxError(
    `Cannot parse problem: ${what}, at column ${column + 1}\n  ${text}\n  ${" ".repeat(column)}^`,
  );
}

/**
 * Splits a descriptor into its keys and values, and its name.
 *
 * @param text What ends with the descriptor: the line it stands in, for messages.
 * @param start Where in `text` it begins.
 * @throws {SyntaxError} at the first thing that is no key, no value or twice there.
 */
function scanDescriptor(text: string, start = 0): { entries: Entry[]; name?: string } {
  const entries: Entry[] = [];
  let at = start;
  while (at < text.length) {
    if (text[at] === "_") {
      at++;
      continue;
    }
    const word = /^[a-z]*/.exec(text.slice(at))![0];
    if (word.startsWith("n") || word === "") {
      if (word === "") throw syntaxError(text, at, `unexpected ${JSON.stringify(text[at])}`);
      if (at === start && text[at + 1] === '"') {
        throw syntaxError(text, at, "a name stands right behind its descriptor, without a space");
      }
      return { entries, name: scanName(text, at + 1) };
    }
    if (!KEYS.includes(word)) {
      const behind = at === start && text.slice(0, start).trim() !== ""
        ? ", words that follow a descriptor are descriptors too, a comment begins with #"
        : "";
      const next = suggestion(word, KEYS) || behind;
      throw syntaxError(text, at, `unknown key "${word}"${next}`);
    }
    if (entries.some(({ key }) => key === word)) {
      throw syntaxError(text, at, `"${word}" is given twice`);
    }
    const list = /^[0-9:,]*/.exec(text.slice(at + word.length))![0];
    entries.push({ key: word, values: scanValues(text, word, at + word.length, list), column: at });
    at += word.length + list.length;
  }
  return { entries };
}

/** The name after `n`: quoted, or all the rest. */
function scanName(text: string, start: number): string {
  if (text[start] !== '"') {
    if (start === text.length) throw syntaxError(text, start, "the name after n is missing");
    const quote = text.indexOf('"', start);
    if (quote >= 0) throw syntaxError(text, quote, "a quote inside the name");
    return text.slice(start);
  }
  const end = text.indexOf('"', start + 1);
  if (end < 0) throw syntaxError(text, start, "the name's closing quote is missing");
  // Shape files say how often a network has the layer inside the quotes, or behind them.
  const often = /^\*\d+$/.exec(text.slice(end + 1))?.[0] ?? "";
  if (end + often.length !== text.length - 1) {
    throw syntaxError(text, end + 1, "the name ends a descriptor, expected nothing behind it");
  }
  return text.slice(start + 1, end) + often;
}

/** Values of a key's `list`, which starts at column `start`: numbers and `first:last[:step]` ranges. */
function scanValues(text: string, key: string, start: number, list: string): number[] {
  const values: number[] = [];
  let column = start;
  for (const item of list.split(",")) {
    const match = /^(\d+)(?::(\d+)(?::(\d+))?)?$/.exec(item);
    if (!match) throw syntaxError(text, column, "expected a number >= 0");
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    const step = match[3] === undefined ? 1 : Number(match[3]);
    // A descriptor counts dilation from 0.
    const most = key.startsWith("d") ? Number.MAX_SAFE_INTEGER - 1 : Number.MAX_SAFE_INTEGER;
    if (Math.max(first, last) > most) {
      throw syntaxError(text, column, `${key} is too large, expected ${most} or less`);
    }
    if (step === 0) throw syntaxError(text, column, "the range's step is 0, expected 1 or more");
    if (last < first) throw syntaxError(text, column, `the range ${item} is empty`);
    if ((last - first) / step > MAX_VALUES) {
      throw syntaxError(text, column, `the range ${item} holds more than ${MAX_VALUES} values`);
    }
    for (let value = first; value <= last; value += step) values.push(value);
    column += item.length + 1;
  }
  return values;
}

const AXES = ["d", "h", "w"] as const;
/** Input, filter, output, stride, padding, dilation. */
const LETTERS = ["i", "k", "o", "s", "p", "d"] as const;
/** More problems than this of one descriptor is a slip of the pen. */
const MAX_PROBLEMS = 100_000;

/**
 * Parses a descriptor of exactly one problem.
 *
 * @throws {SyntaxError} with column and caret if the text is malformed or holds lists.
 * @throws {RangeError} if the values do not fit together.
 * @example
 * ```ts
 * import { parseDescriptor, printDescriptor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const problem = parseDescriptor("mb32ic64ih56oc64kh3ph1", "bwd-data");
 * assert.deepEqual([problem.op, problem.outputSize], ["bwd-data", [56, 56]]);
 * assert.equal(printDescriptor(problem), "mb32ic64ih56oc64oh56kh3ph1");
 * ```
 */
export function parseDescriptor(text: string, op: Operation = "fwd"): ConvProblem {
  const problems = parseDescriptors(text, op);
  if (problems.length !== 1) {
    throw syntaxError(text, 0, `the lists make ${problems.length} problems, expected one`);
  }
  return problems[0]!;
}

/**
 * Parses a descriptor whose values may be lists and ranges with their end included: `ic16,32,64`,
 * `mb1:8:1`. They make a cross product; the last one written varies fastest.
 *
 * @param text What ends with the descriptor: the line it stands in, for messages.
 * @param start Where in `text` it begins.
 * @throws {SyntaxError} with column and caret if the text is malformed.
 * @throws {RangeError} if the values do not fit together.
 * @example
 * ```ts
 * import { parseDescriptors } from "@wgconv/wgconv/internals";
 * import assert from "node:assert/strict";
 *
 * const channels = parseDescriptors("mb1ic16,32ih28oc32kh3ph1").map(({ inChannels }) => inChannels);
 * assert.deepEqual(channels, [16, 32]);
 * ```
 */
export function parseDescriptors(text: string, op: Operation = "fwd", start = 0): ConvProblem[] {
  const { entries, name } = scanDescriptor(text, start);
  const count = entries.reduce((product, { values }) => product * values.length, 1);
  if (count > MAX_PROBLEMS) {
    throw syntaxError(text, start, `the lists make ${count} problems, ${MAX_PROBLEMS} at most`);
  }
  let choices: Map<string, number>[] = [new Map()];
  for (const { key, values } of entries) {
    choices = choices.flatMap((chosen) => values.map((value) => new Map(chosen).set(key, value)));
  }
  return choices.map((values) => build(text, entries, values, name, op));
}

/** Builds the problem of one choice of values. */
function build(
  text: string,
  entries: readonly Entry[],
  values: ReadonlyMap<string, number>,
  name: string | undefined,
  op: Operation,
): ConvProblem {
  const axes = axisTexts(values);
  const need = <T>(value: T | undefined, what: string, key: string): T => {
    if (value === undefined) throw syntaxError(text, text.length, `${what} is missing (${key})`);
    return value;
  };
  need(axes[0]?.i, "the input size", "iw, ih or id");
  need(axes[0]?.k, "the filter size", "kw, kh or kd");
  const inChannels = need(values.get("ic"), "the number of input channels", "ic");
  const outChannels = need(values.get("oc"), "the number of output channels", "oc");
  const at = (key: string) => entries.find((entry) => entry.key.startsWith(key))?.column ?? 0;
  if (axes.some(({ s }) => s === 0)) {
    throw syntaxError(text, at("s"), "the stride is 0, expected 1 or more");
  }
  const inputSize = axes.map(({ i }) => i!);
  const filterSize = axes.map(({ k }) => k!);
  const stride = axes.map(({ s }) => s ?? 1);
  const dilation = axes.map(({ d }) => (d ?? 0) + 1);
  const pads = axes.map(({ p, o }, axis) =>
    axisPadding({
      input: inputSize[axis]!,
      filter: dilatedSize(filterSize[axis]!, dilation[axis]!),
      stride: stride[axis]!,
      dilation: dilation[axis]!,
      begin: p,
      output: o,
    }, () => {
      throw syntaxError(text, at("o"), "the output size and stride are too large to be counted");
    })
  );
  const outputSize = axes.map(({ o }, axis) =>
    o ?? outputSizeOf(
      inputSize[axis]!,
      filterSize[axis]!,
      stride[axis]!,
      ...pads[axis]!,
      dilation[axis]!,
    )
  );
  return convProblem({
    op,
    batch: values.get("mb") ?? 2,
    groups: values.get("g") ?? 1,
    inChannels,
    outChannels,
    inputSize,
    filterSize,
    stride,
    dilation,
    paddingBegin: pads.map((pad) => pad[0]),
    paddingEnd: pads.map((pad) => pad[1]),
    ...(axes.some(({ o }) => o !== undefined) ? { outputSize } : {}),
    ...(name === undefined ? {} : { name }),
  });
}

/** What is said of one axis. */
type AxisText = { readonly [letter in (typeof LETTERS)[number]]?: number };

/** What is said, or copied, of each axis from the outermost that is named. */
function axisTexts(values: ReadonlyMap<string, number>): AxisText[] {
  const named = AXES.map((axis): AxisText =>
    Object.fromEntries(
      LETTERS.flatMap((letter) => {
        const value = values.get(letter + axis);
        return value === undefined ? [] : [[letter, value]];
      }),
    )
  );
  const outermost = named.findIndex((axis) => Object.keys(axis).length > 0);
  const axes = outermost < 0 ? [] : named.slice(outermost);
  // An outer axis takes what it lacks from the first inner one that has it.
  let outer: AxisText = Object.assign({}, ...axes.toReversed());
  return axes.map((axis) => {
    // benchdnn takes an axis with its input and its filter as it is, with usual values for what is missing.
    const complete = axis.i !== undefined && axis.k !== undefined;
    return outer = complete ? axis : { ...outer, ...axis };
  });
}

/** Zeros before and after one axis, from what its descriptor gives; `filter` is the dilated size. */
function axisPadding(axis: {
  input: number;
  filter: number;
  stride: number;
  dilation: number;
  begin: number | undefined;
  output: number | undefined;
}, fail: () => never): [number, number] {
  const { input, filter, stride, output } = axis;
  if (output === undefined) return [axis.begin ?? 0, axis.begin ?? 0];
  const total = (output - 1) * stride - input + filter;
  if (!Number.isSafeInteger(total)) return fail();
  const begin = axis.begin ?? Math.floor(Math.max(0, total) / 2);
  // The same on both sides wherever that gives the output size, as every other program means it.
  if (outputSizeOf(input, filter, stride, begin, begin, 1) === output) return [begin, begin];
  const end = total - begin;
  if (end >= 0) return [begin, end];
  // Elements that no filter reaches, fewer than the dilation; of more the sizes do not fit together.
  const cut = endBefore(-end, 0, stride);
  return [begin, cut > -axis.dilation ? cut : 0];
}

/**
 * Prints the descriptor of a problem: {@linkcode parseDescriptor} reads the same computation back.
 * @example
 * ```ts
 * import { convProblem, parseDescriptor, printDescriptor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const sizes = { batch: 2, inChannels: 3, outChannels: 8, inputSize: [9, 9], filterSize: [3, 3] };
 * const problem = convProblem({ ...sizes, stride: 2 });
 * assert.equal(printDescriptor(problem), "mb2ic3ih9oc8oh4kh3sh2");
 * assert.deepEqual(parseDescriptor("mb2ic3ih9oc8oh4kh3sh2"), problem);
 * ```
 */
export function printDescriptor(problem: ConvProblem): string {
  const { stride, paddingBegin, paddingEnd, dilation } = problem;
  const only = (values: readonly number[], usual: number) =>
    values.every((value) => value === usual);
  const families = [
    problem.inputSize,
    problem.outputSize,
    problem.filterSize,
    stride,
    paddingBegin,
    dilation,
  ];
  // Axes that are alike are said once, others in full, as benchdnn reads them.
  const alike = families.every((values) => only(values, values[0]!));
  const axes = AXES.slice(AXES.length - problem.inputSize.length).slice(0, alike ? 1 : undefined);
  const family = (letter: string, values: readonly number[]) =>
    axes.map((axis, i) => `${letter}${axis}${values[i]}`).join("");
  const parts = [
    problem.groups === 1 ? "" : `g${problem.groups}`,
    `mb${problem.batch}ic${problem.inChannels}`,
    family("i", problem.inputSize),
    `oc${problem.outChannels}`,
    family("o", problem.outputSize),
    family("k", problem.filterSize),
    only(stride, 1) ? "" : family("s", stride),
    only([...paddingBegin, ...paddingEnd], 0) ? "" : family("p", paddingBegin),
    only(dilation, 1) ? "" : family("d", dilation.map((step) => step - 1)),
    problem.name === undefined ? "" : `n"${problem.name}"`,
  ];
  return parts.join("");
}
