import template from "../../shaders/split_rest.wgsl" with { type: "text" };
import {
  accumulationLength,
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type ConvTensors, convTerms } from "./conv_terms.ts";
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "./epilogue.ts";
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
  WHOLE,
} from "./module.ts";

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

/** Results of a convolution. */
function resultsOf(problem: ConvProblem): number {
  return elementCount(tensorShape(problem, resultTensor(problem.op)));
}

/** Workgroups of a {@linkcode splitRestKernel}. */
export function splitRestWorkgroups(problem: ConvProblem): number {
  return Math.ceil(flagWords(resultsOf(problem)) / wordsEach(problem));
}

/**
 * Computes the results of flagged groups in f32: each is the sum of 64 threads' shares of its products. Binds both operands, the result,
 * `flags` and what the epilogue reads.
 */
export function splitRestKernel(
  shape: ConvTensors,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  tensors: Readonly<Record<ConvTensor, TensorSplit>>,
): SizedKernel {
  const { problem, layout, filterLayout } = shape;
  const { op } = problem;
  const result = resultTensor(op);
  const [left, right] = operandTensors(op);
  const module = moduleBuilder(mode);
  const text = convTerms(module, shape, tensors);
  const out = module.tensor(result, "write", 1, tensors[result]);
  const flags = module.tensor("flags", "read", 1, WHOLE, "u32");
  const steps = epilogue(module, 1, (row) => row);
  const size = (name: string, value: number) => module.size(name, value);
  const terms = accumulationLength(problem);
  const results = resultsOf(problem);
  const words = wordsEach(problem);
  const name = `split_rest_${
    op.replace("-", "_")
  }_${problem.filterSize.length}d_w${words}_${layout}_${filterLayout}${epilogueTrait(steps)}${
    splitTrait(tensors[left], tensors[right], tensors[result])
  }`;
  const wgsl = render(template, {
    name,
    results: GROUP,
    lanes: LANES,
    unrolled: UNROLLED,
    threads: GROUP * LANES,
    wordsEach: words,
    workgroups: size("workgroups", splitRestWorkgroups(problem)),
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
    declarations: module.declarations(),
  });
  const each = groupIterations(problem) + epilogueIterations(steps);
  const iterations = loopIterations(32 * words, each) + loopIterations(32);
  const bytes = 4 * (32 * words + GROUP * LANES + 2);
  return sizedKernel(name, mode, wgsl, module, [GROUP * LANES, 1, 1], bytes, iterations);
}
