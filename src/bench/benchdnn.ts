/** What oneDNN's benchdnn says of how problems are run, as far as it means something here. */
import {
  CONV_DTYPES,
  type ConvDType,
  type ConvOutDType,
  type Operation,
  resultDtypes,
} from "../problem/conv_problem.ts";
import type { Layout } from "../tensor/layout.ts";

/** Element types of a run. */
export interface SuiteTypes {
  readonly dtype: ConvDType;
  /** Of the result; the operands' where absent. */
  readonly outDtype?: ConvOutDType;
}

/** What a suite says that a problem is run as; where it says nothing the lists of the run hold. */
export interface SuiteRun {
  readonly ops?: readonly Operation[] | undefined;
  /** None where the suite's are not known here. */
  readonly types?: readonly SuiteTypes[] | undefined;
  readonly layouts?: readonly Layout[] | undefined;
}

/** What the values of an option mean, and which of them have no meaning here. */
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

/** What `--dir` may say. */
export const DIRECTION_NAMES: readonly string[] = Object.keys(DIRECTIONS);

/** Reads `--dir=FWD_B,BWD_D`; undefined for what is no direction. */
export function readDirections(text: string): OptionValues<Operation> | undefined {
  const words = text.toUpperCase().split(",");
  if (!words.every((word) => Object.hasOwn(DIRECTIONS, word))) return undefined;
  return {
    values: [...new Set(words.map((word) => DIRECTIONS[word]!))],
    ignored: words.filter((word) => word.endsWith("B")).map((word) => `the bias of ${word}`),
  };
}

const TYPE_NAMES: Readonly<Record<string, string>> = { s8: "i8", s32: "i32" };

/** Reads `--dt=f32,f16:f16:f32`: a type, or those of input, filter and output; undefined for what is no type. */
export function readTypes(text: string): OptionValues<SuiteTypes> | undefined {
  const values: SuiteTypes[] = [];
  const ignored: string[] = [];
  for (const word of text.toLowerCase().split(",")) {
    if (!/^(f|bf|s|u|e|xf)\d\w*(:(f|bf|s|u|e|xf)\d\w*){0,2}$/.test(word)) return undefined;
    const [input, filter = input, output] = word.split(":").map((name) => TYPE_NAMES[name] ?? name);
    const dtype = CONV_DTYPES.find((one) => one === input && one === filter);
    const results: readonly string[] = dtype === undefined ? [] : resultDtypes(dtype);
    const outDtype = (output ?? results[0]) as ConvOutDType;
    // Results in bytes take a scale, which a suite does not say.
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

/** Reads `--stag=abx,axb`; `any` and none leave the layouts as they are. */
export function readTags(text: string): OptionValues<Layout> {
  const words = text.toLowerCase().split(",").filter((word) => !["any", ""].includes(word));
  const known = words.filter((word) => Object.hasOwn(TAGS, word));
  return {
    values: [...new Set(known.map((word) => TAGS[word]!))],
    ignored: words.filter((word) => !known.includes(word)).map((word) => `the layout ${word}`),
  };
}

/** Options without an effect here: they choose no problem, and what they say has no counterpart or is an option of the command line. */
export const UNHEEDED: readonly string[] = [
  ...[
    "--wtag",
    "--bia-dt",
    "--bia_dt",
    "--strides",
    "--alg",
    "--skip-impl",
    "--impl",
    "--global-impl",
  ],
  ...["--attr-post-ops", "--attr-scales", "--attr-zero-points", "--attr-fpmath", "--attr-oscale"],
  ...["--attr-acc-mode", "--attr-scratchpad", "--attr-deterministic", "--attr-dropout"],
  ...["--attr-rounding-mode", "--attr-same-pd-check", "--attr-gpr-hint"],
  ...["--mode", "--mode-modifier", "--engine", "--inplace", "--fast-ref", "--fast-ref-gpu"],
  ...["--canonical", "--cold-cache", "--perf-template", "--fix-times-per-prb", "--max-ms-per-prb"],
  ...["--num-streams", "--repeats-per-prb", "--min-times-per-prb", "--start", "--summary"],
  ...[
    "--allow-enum-tags-only",
    "--allow-unimpl",
    "--cpu-isa-hints",
    "--memory-kind",
    "--verbose",
    "-v",
  ],
  ...[
    "--ctx-init",
    "--ctx-exe",
    "--stream-kind",
    "--execution-mode",
    "--buffer-prefix",
    "--check-ref-impl",
  ],
];
