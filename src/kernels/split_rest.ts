/** Passes behind products of halves: which results halves do not hold, and these in f32. */
import { range } from "./lists.ts";
import template from "../../shaders/split_rest.wgsl" with { type: "text" };
import windowsTemplate from "../../shaders/split_windows.wgsl" with { type: "text" };
import {
  accumulationLength,
  type ConvProblem,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import { axisDigits, digitsText } from "./axes.ts";
import { type ConvTensors, convTerms, termText } from "./direct.ts";
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "./epilogue.ts";
import { type ModuleBuilder, WHOLE } from "./module.ts";
import { eachElement, loopIterations, type SizedKernel, templateKernel } from "./sized_kernel.ts";

/** Results that follow each other and have a flag in common: few, since one that is in doubt rarely has company. */
const GROUP = 4;
/** Threads that share the products of a result. */
const LANES = 64;
/** Products of a thread that are under way at once. */
const UNROLLED = 4;
/** Most words of flags of a workgroup: few, since all of them may be set. */
const MOST_WORDS = 16;
/** Iterations of a thread where all are set, which software devices allow. */
const MOST_ITERATIONS = 60_000;

/** Words of flags, one bit each, of so many results. */
export function flagWords(results: number): number {
  return Math.ceil(results / (32 * GROUP));
}

/** WGSL of the word and the bit of a result's flag, by its index `at`. */
export const FLAG_OF = {
  flag: `at / ${32 * GROUP}u`,
  bit: `1u << (at / ${GROUP}u % 32u)`,
} as const;

/** Iterations of a thread for a group, without its epilogue. */
function groupIterations(problem: ConvProblem): number {
  return loopIterations(Math.ceil(accumulationLength(problem) / (UNROLLED * LANES))) +
    loopIterations(Math.log2(LANES));
}

/** Words of flags of a workgroup: fewer of long sums. */
function wordsEach(problem: ConvProblem): number {
  const fitting = Math.floor(MOST_ITERATIONS / (32 * (2 + groupIterations(problem))));
  return 2 ** Math.floor(Math.log2(Math.min(MOST_WORDS, Math.max(1, fitting))));
}

/**
 * Computes the results of flagged groups in f32: each is the sum of 64 threads' shares of its products. Binds both operands, the result,
 * `flags` and what the epilogue reads.
 */
export function splitRestKernel(
  module: ModuleBuilder,
  shape: ConvTensors,
  epilogue: EpilogueFactory,
): SizedKernel {
  const { problem, layout, filterLayout } = shape;
  const { op } = problem;
  const result = resultTensor(op);
  const text = convTerms(module, shape);
  const out = module.bind(result, "write", 1);
  const flags = module.tensor("flags", "read", 1, WHOLE, "u32");
  const steps = epilogue(module, 1, (row) => row);
  const { size } = module;
  const terms = accumulationLength(problem);
  const results = elementCount(tensorShape(problem, result));
  const words = wordsEach(problem);
  const name = `split_rest_${
    op.replace("-", "_")
  }_${problem.filterSize.length}d_w${words}_${layout}_${filterLayout}${
    epilogueTrait(steps)
  }${module.splitTrait()}`;
  const threads = GROUP * LANES;
  const workgroups = Math.ceil(flagWords(results) / words);
  const values = {
    results: GROUP,
    lanes: LANES,
    unrolled: UNROLLED,
    threads,
    wordsEach: words,
    workgroups: size("workgroups", workgroups),
    words: size("words", flagWords(results)),
    elements: size("elements", results),
    flags: flags.load,
    ...text,
    terms: size("terms", terms),
    store: out.store(
      "i",
      applyEpilogue(steps, "sum", { width: 1, side: "rows", row: "r1", column: "s0", offset: "i" }),
    ),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const each = groupIterations(problem) + epilogueIterations(steps);
  return templateKernel(module, name, template, values, {
    workgroups,
    threads,
    bytes: 4 * (32 * words + threads + 2),
    iterations: loopIterations(32 * words, each) + loopIterations(32),
  });
}

/** Marks of images and their places, and where those of results' places go. */
export interface SplitWindows {
  /** Forward or backward-data. */
  readonly problem: ConvProblem;
  /** Before the largest values of images. */
  readonly firstLargest: number;
  /** Before the counts of small values of images' places, and from those to the counts of large ones. */
  readonly counts: { readonly first: number; readonly kind: number };
  /** Before the marks of results' places, and words of a kind, of which the last says by how much a result is enlarged. */
  readonly places: { readonly first: number; readonly kind: number };
  /** That of all products, and from how many on it is that (`driftOf()`); of a tap so many. */
  readonly drift: { readonly most: number; readonly length: number; readonly channels: number };
}

/** Places of all images of a tensor. */
export function imagePlaces(problem: ConvProblem, which: "source" | "result"): number {
  const tensor = which === "source" ? operandTensors(problem.op)[0] : resultTensor(problem.op);
  const [batch, , ...sizes] = tensorShape(problem, tensor) as [number, number, ...number[]];
  return batch * elementCount(sizes);
}

/** Adds up the marks of what the taps of each place of the result meet. Binds `marks`. */
export function splitWindowsKernel(module: ModuleBuilder, shape: SplitWindows): SizedKernel {
  const { problem, firstLargest, counts, places, drift } = shape;
  const { op, filterSize } = problem;
  const { size } = module;
  const marks = module.atomics("marks");
  const axes = range(filterSize.length);
  const [, , ...spots] = tensorShape(problem, resultTensor(op));
  const [, , ...source] = tensorShape(problem, operandTensors(op)[0]);
  const { term, leftSpatial } = termText(problem, size);
  const taps = elementCount(filterSize);
  const name = `split_windows_${op.replace("-", "_")}_${axes.length}d`;
  const count = imagePlaces(problem, "result");
  const values = {
    begin: eachElement(size("count", count)),
    coordinates: digitsText(
      "i",
      "rest",
      axisDigits(
        ["r0", ...axes.map((d) => `s${d}`)],
        ["", ...axes.map((d) => size(`result${d}`, spots[d]!))],
      ),
    ),
    taps: size("taps", taps),
    term,
    firstCount: size("first_count", counts.first),
    place: axes.reduce(
      (place, d) => `(${place} * ${size(`source${d}`, source[d]!)} + ${leftSpatial(d)})`,
      "r0",
    ),
    load: marks.load,
    kind: size("count_kind", counts.kind),
    first: size("first_place", places.first),
    words: size("place_kind", places.kind),
    largest: marks.load(`${size("first_largest", firstLargest)} + r0`),
    store: marks.store,
    drift: `min(${size("drift", drift.most)}, (${size("drift", drift.most)} * met * ${
      size("tap_channels", drift.channels)
    } + ${size("drift_length", drift.length)} / 2u) / ${size("drift_length", drift.length)})`,
  };
  return templateKernel(module, name, windowsTemplate, values, {
    workgroups: Math.ceil(count / 256),
    iterations: loopIterations(taps),
  });
}
