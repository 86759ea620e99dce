/**
 * Problem descriptors: oneDNN benchdnn's grammar, e.g. `mb64ic64ih56oc64oh56kh3ph1n"Conv2N64"`.
 *
 * Keys, in any order: `g` groups (1), `mb` batch (2), `ic` `oc` channels; per spatial axis (d, h, w)
 * `i` input, `k` filter, `o` output, `s` stride (1), `p` padding before, `d` dilation (0 is none), and
 * `n"name"` last. The outermost axis named gives the number of spatial axes; on an inner axis a missing value
 * copies its outer neighbour. A missing output size is derived; with an output size given, a missing padding is
 * derived and split evenly, and the padding after follows from both. `_` is ignored.
 */
import {
  type ConvProblem,
  convProblem,
  dilatedSize,
  type Operation,
  outputSizeOf,
} from "./conv_problem.ts";
import { type Entry, scanDescriptor, syntaxError } from "./descriptor_scan.ts";

const AXES = ["d", "h", "w"] as const;

/**
 * Parses a descriptor of exactly one problem.
 *
 * @throws {SyntaxError} with column and caret if the text is malformed or holds lists.
 * @throws {RangeError} if the values do not fit together.
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
 * @throws {SyntaxError} with column and caret if the text is malformed.
 * @throws {RangeError} if the values do not fit together.
 */
export function parseDescriptors(text: string, op: Operation = "fwd"): ConvProblem[] {
  const { entries, name } = scanDescriptor(text);
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
  const families = ["i", "k", "o", "s", "p", "d"];
  const outermost = AXES.findIndex((axis) => families.some((family) => values.has(family + axis)));
  const axes = outermost < 0 ? [] : AXES.slice(outermost);
  /** Values of one family on every axis, or nothing where the text has none of them. */
  const family = (letter: string): number[] | undefined => {
    const given = axes.map((axis) => values.get(letter + axis));
    const first = given.find((value) => value !== undefined);
    if (first === undefined) return undefined;
    let last = first;
    return given.map((value) => last = value ?? last);
  };
  const need = <T>(value: T | undefined, what: string, key: string): T => {
    if (value === undefined) throw syntaxError(text, text.length, `${what} is missing (${key})`);
    return value;
  };
  const inputSize = need(family("i"), "the input size", "iw, ih or id");
  const filterSize = need(family("k"), "the filter size", "kw, kh or kd");
  const inChannels = need(values.get("ic"), "the number of input channels", "ic");
  const outChannels = need(values.get("oc"), "the number of output channels", "oc");
  const stride = family("s") ?? axes.map(() => 1);
  const dilation = (family("d") ?? axes.map(() => 0)).map((skip) => skip + 1);
  const at = (key: string) => entries.find((entry) => entry.key.startsWith(key))?.column ?? 0;
  stride.forEach((value) => {
    if (value < 1) throw syntaxError(text, at("s"), "the stride is 0, expected 1 or more");
  });
  const padding = family("p");
  const outputSize = family("o");
  const pads = axes.map((_, axis) =>
    axisPadding({
      input: inputSize[axis]!,
      filter: dilatedSize(filterSize[axis]!, dilation[axis]!),
      stride: stride[axis]!,
      begin: padding?.[axis],
      output: outputSize?.[axis],
    })
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
    ...(outputSize ? { outputSize } : {}),
    ...(name === undefined ? {} : { name }),
  });
}

/** Zeros before and after one axis, from what its descriptor gives; `filter` is the dilated size. */
function axisPadding(axis: {
  input: number;
  filter: number;
  stride: number;
  begin: number | undefined;
  output: number | undefined;
}): [number, number] {
  const { input, filter, stride, output } = axis;
  if (output === undefined) return [axis.begin ?? 0, axis.begin ?? 0];
  const total = Math.max(0, (output - 1) * stride - input + filter);
  const begin = axis.begin ?? Math.floor(total / 2);
  // The same on both sides wherever that gives the output size, as every other program means it.
  if (outputSizeOf(input, filter, stride, begin, begin, 1) === output) return [begin, begin];
  return [begin, Math.max(0, total - begin)];
}

/** Prints the descriptor of a problem: {@linkcode parseDescriptor} reads the same computation back. */
export function printDescriptor(problem: ConvProblem): string {
  const axes = AXES.slice(AXES.length - problem.inputSize.length);
  const family = (letter: string, values: readonly number[]) =>
    axes.map((axis, i) =>
      i > 0 && values[i] === values[i - 1] ? "" : `${letter}${axis}${values[i]}`
    )
      .join("");
  const { stride, paddingBegin, paddingEnd, dilation } = problem;
  const only = (values: readonly number[], usual: number) =>
    values.every((value) => value === usual);
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
