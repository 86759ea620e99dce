/** Options of oneDNN's benchdnn that say how problems run. */
import {
  CONV_DTYPES,
  type ConvDType,
  type ConvOutDType,
  type Operation,
  resultDtypes,
} from "../problem/conv_problem.ts";
import type { Layout } from "../tensor/layout.ts";

/** Element types of a run. */
interface SuiteTypes {
  readonly dtype: ConvDType;
  /** Of the result; the operands' where absent. */
  readonly outDtype?: ConvOutDType;
}

/** How a suite runs a problem; the command line's lists apply where a field is absent. */
export interface SuiteRun {
  readonly ops?: readonly Operation[] | undefined;
  /** Empty where none of the suite's types is supported. */
  readonly types?: readonly SuiteTypes[] | undefined;
  readonly layouts?: readonly Layout[] | undefined;
}

/** Values of an option, and the parts of its text that have no effect here. */
export interface OptionValues<T> {
  readonly values: readonly T[];
  readonly ignored: readonly string[];
}

const DIRECTIONS: Readonly<Record<string, Operation>> = {
  FWD_D: "fwd",
  FWD_I: "fwd",
  FWD_B: "fwd",
  BWD_D: "bwd-data",
  BWD_W: "bwd-filter",
  BWD_WB: "bwd-filter",
};

/** Values of `--dir`. */
export const DIRECTION_NAMES: readonly string[] = Object.keys(DIRECTIONS);

/** Reads `--dir=FWD_B,BWD_D`; undefined where a word is no direction. */
export function readDirections(text: string): OptionValues<Operation> | undefined {
  const words = text.toUpperCase().split(",");
  if (!words.every((word) => Object.hasOwn(DIRECTIONS, word))) return undefined;
  return {
    values: [...new Set(words.map((word) => DIRECTIONS[word]!))],
    ignored: words.filter((word) => word.endsWith("B")).map((word) => `the bias of ${word}`),
  };
}

const TYPE_NAMES: Readonly<Record<string, string>> = { s8: "i8", s32: "i32" };

/** Reads `--dt=f32,f16:f16:f32`: one type, or those of input, filter and output; undefined where a word is no type. */
export function readTypes(text: string): OptionValues<SuiteTypes> | undefined {
  const values: SuiteTypes[] = [];
  const ignored: string[] = [];
  for (const word of text.toLowerCase().split(",")) {
    if (!/^(f|bf|s|u|e|xf)\d\w*(:(f|bf|s|u|e|xf)\d\w*){0,2}$/.test(word)) return undefined;
    const [input, filter = input, output] = word.split(":").map((name) => TYPE_NAMES[name] ?? name);
    const dtype = CONV_DTYPES.find((one) => one === input && one === filter);
    const results: readonly string[] = dtype === undefined ? [] : resultDtypes(dtype);
    const outDtype = (output ?? results[0]) as ConvOutDType;
    // i8 and u8 results need a scale, for which suites have no option.
    const scaled = outDtype === "i8" || outDtype === "u8";
    if (dtype === undefined || scaled || !results.includes(outDtype)) {
      ignored.push(word);
    } else values.push({ dtype, ...(outDtype === results[0] ? {} : { outDtype }) });
  }
  return { values, ignored };
}

const TAGS: Readonly<Record<string, Layout>> = Object.fromEntries([
  ...["abx", "abc", "abcd", "abcde", "ncw", "nchw", "ncdhw"].map((tag) => [tag, "nchw"]),
  ...["axb", "acb", "acdb", "acdeb", "nwc", "nhwc", "ndhwc"].map((tag) => [tag, "nhwc"]),
  ...["bxa", "bcda", "chwn"].map((tag) => [tag, "chwn"]),
]);

/** Reads `--stag=abx,axb`; `any` and an empty list leave the layouts to the command line. */
export function readTags(text: string): OptionValues<Layout> {
  const words = text.toLowerCase().split(",").filter((word) => !["any", ""].includes(word));
  const known = words.filter((word) => Object.hasOwn(TAGS, word));
  return {
    values: [...new Set(known.map((word) => TAGS[word]!))],
    ignored: words.filter((word) => !known.includes(word)).map((word) => `the layout ${word}`),
  };
}

/** Options that choose no problem and have no effect here, or that the command line sets. */
export const WITHOUT_EFFECT: readonly string[] = (
  "--wtag --bia-dt --bia_dt --strides --alg --skip-impl --impl --global-impl --attr-post-ops " +
  "--attr-scales --attr-zero-points --attr-fpmath --attr-oscale --attr-acc-mode --attr-scratchpad " +
  "--attr-deterministic --attr-dropout --attr-rounding-mode --attr-same-pd-check --attr-gpr-hint " +
  "--mode --mode-modifier --engine --inplace --fast-ref --fast-ref-gpu --canonical --cold-cache " +
  "--perf-template --fix-times-per-prb --max-ms-per-prb --num-streams --repeats-per-prb " +
  "--min-times-per-prb --start --summary --allow-enum-tags-only --allow-unimpl --cpu-isa-hints " +
  "--memory-kind --verbose -v --ctx-init --ctx-exe --stream-kind --execution-mode --buffer-prefix " +
  "--check-ref-impl"
).split(" ");
