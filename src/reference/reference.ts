import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectFields, expectObject } from "../expect.ts";
import {
  activate,
  type Activation,
  activationGain,
  activationScale,
  operandOf,
} from "../problem/activations.ts";
import {
  channelOperands,
  type ChannelTensors,
  type Epilogue,
  fullEpilogue,
} from "../problem/epilogue.ts";
import {
  type ConvProblem,
  convProblem,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { gemmPlans } from "./gemm_plan.ts";
import {
  canonicalStrides,
  checkedOperand,
  geometryOf,
  type HostArray,
  type HostOperand,
} from "./geometry.ts";
import { listedWork, sampledWork, wholeWork } from "./jobs.ts";
import { paddedTerms } from "./padded_terms.ts";
import { mostWorkers, runAssignment, workerCount } from "./pool.ts";
import type { Assignment } from "./worker_source.ts";

export { activate } from "../problem/activations.ts";
export { erf } from "../problem/erf.ts";
export type { HostOperand } from "./geometry.ts";

/**
 * What `operandTensors(op)` names; `output` is its gradient for the backward operations. What the epilogue reads are one value an
 * output channel.
 */
export interface ReferenceInputs extends ChannelTensors<HostArray | Int32Array> {
  /** X */
  readonly input?: HostOperand;
  /** W */
  readonly filter?: HostOperand;
  /** ∇Y */
  readonly output?: HostOperand;
}

/** Which results are computed, and by how many. */
export interface ReferenceOptions {
  /** At least `count` results, equally many per output channel, chosen by `seed`; all where absent. */
  readonly sample?: { readonly count: number; readonly seed: number };
  /** Canonical flat indices of the results that are wanted, in place of a sample. */
  readonly indices?: Float64Array;
  /** Most Workers to start, 0 for none; as many as cores where absent. */
  readonly workers?: number;
  /** Forward only. */
  readonly epilogue?: Partial<Epilogue>;
  /** Ends the computation early. */
  readonly signal?: AbortSignal;
  /** Called with the done fraction, 0 to 1, now and then. */
  readonly onProgress?: (fraction: number) => void;
}

/** Values in double precision, and the scale of their errors. */
export interface ReferenceResult {
  /** Flat index of each value in canonical order ([N, K, P, Q] and so on); absent: all, in order. */
  readonly indices?: Float64Array;
  /** The results. */
  readonly values: Float64Array;
  /** Σ|a||b| (+ |bias|) of each value: what a bound on its error is a multiple of. */
  readonly magnitudes: Float64Array;
  /** What `values` leave of the true results, of f64; 0 where absent. */
  readonly rests?: Float64Array;
  /**
   * 1 where a sum has terms of padding times NaN or an infinity, which `values` leave out: kernels that multiply padding's zeros
   * have NaN there, which is right, too. 0 everywhere where absent.
   */
  readonly paddedNaN?: Uint8Array;
  /** Canonical shape of the result. */
  readonly shape: readonly number[];
}

/**
 * Computes a convolution or a gradient in double precision on the CPU.
 *
 * @throws {TypeError} if an operand is missing or of another size, or `epilogue` is given to a gradient.
 * @throws {RangeError} if an operand has 2³¹ elements or more, or the sample's count is not positive.
 * @throws the signal's reason if it is aborted.
 * @example
 * ```ts
 * import { parseDescriptor, referenceConv } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const { values, shape } = await referenceConv(parseDescriptor("mb1ic1iw3ow2oc1kw2"), {
 *   input: { data: new Float32Array([1, 2, 3]), layout: "nchw" },
 *   filter: { data: new Float32Array([10, 1]), layout: "kcrs" },
 * });
 * assert.deepEqual(shape, [1, 1, 2]);
 * assert.deepEqual([...values], [12, 23]);
 * ```
 */
export async function referenceConv(
  given: ConvProblem,
  inputs: ReferenceInputs,
  options: ReferenceOptions = {},
): Promise<ReferenceResult> {
  const doing = "Cannot compute the reference";
  expectObject(doing, "operands", inputs, "tensors");
  expectObject(doing, "options", options, "options");
  const problem = convProblem(given);
  const epilogue = fullEpilogue(doing, options.epilogue);
  const read = [...operandTensors(problem.op), ...channelOperands(epilogue)];
  expectFields(doing, "operand", inputs, read);
  const [first, second] = operandTensors(problem.op).map((which) =>
    checkedOperand(problem, which, inputs[which])
  );
  checkEpilogue(problem, epilogue, inputs);
  const memory = canonicalStrides(problem);
  const strides = { ...memory };
  for (const which of operandTensors(problem.op)) {
    strides[which] = stridesInLayout(tensorShape(problem, which), inputs[which]!.layout);
  }
  const geometry = geometryOf(problem, strides);
  const canonical = geometryOf(problem, memory);
  const result = resultTensor(problem.op);
  const shape = tensorShape(problem, result);
  const plans = gemmPlans(geometry, canonical[`${result}Strides`]);
  const count = elementCount(shape);
  const cores = options.workers ?? mostWorkers();
  const work = options.indices !== undefined
    ? listedWork(geometry, options.indices)
    : options.sample !== undefined && samplePays(problem, options.sample, count)
    ? sampledWork(problem, geometry, options.sample)
    : wholeWork(geometry, plans, count, cores);
  const compute = (
    part: Pick<Assignment, "geometry" | "plans" | "work" | "first" | "second">,
    onProgress?: ReferenceOptions["onProgress"],
  ) =>
    runAssignment({
      ...part,
      values: new Float64Array(part.work.count),
      magnitudes: new Float64Array(part.work.count),
    }, { workers: workerCount(part.work, cores), signal: options.signal, onProgress });
  const operands = { first: first!, second: second! };
  const { values, magnitudes } = await compute(
    { geometry, plans, work, ...operands },
    options.onProgress,
  );
  const { indices } = work;
  const paddedNaN = await paddedTerms(geometry, first!, second!, async (g, one, other) => {
    const own = gemmPlans(g, canonical[`${result}Strides`]);
    const all = indices === undefined ? wholeWork(g, own, count, cores) : listedWork(g, indices);
    const part = { geometry: g, plans: own, work: all, first: one, second: other };
    return (await compute(part)).values;
  });
  if (paddedNaN !== undefined && work.gemm.length > 0) {
    // Blocked products multiply padding's zeros.
    const marked = Array.from(paddedNaN.keys()).filter((i) => paddedNaN[i] === 1);
    const listed = listedWork(geometry, Float64Array.from(marked, (i) => indices?.[i] ?? i));
    const plain = await compute({ geometry, plans, work: listed, ...operands });
    marked.forEach((i, at) => {
      values[i] = plain.values[at]!;
      magnitudes[i] = plain.magnitudes[at]!;
    });
  }
  applyEpilogue(epilogue, inputs, shape, work.indices, values, magnitudes);
  return {
    ...(work.indices === undefined ? {} : { indices: work.indices }),
    values,
    magnitudes,
    ...(paddedNaN === undefined ? {} : { paddedNaN }),
    shape,
  };
}

/** Whether a sample of `count` values or more leaves any out. */
function samplePays(
  problem: ConvProblem,
  sample: { count: number },
  total: number,
): boolean {
  if (!(sample.count > 0)) {
    throw new InputRangeError(`Cannot sample a reference: count is ${sample.count}, expected > 0`);
  }
  const channels = problem.op === "bwd-data" ? problem.inChannels : problem.outChannels;
  return total > 0 && Math.ceil(sample.count / channels) * channels < total;
}

function checkEpilogue(
  problem: ConvProblem,
  epilogue: Epilogue,
  inputs: ReferenceInputs,
): void {
  if (problem.op !== "fwd" && (epilogue.bias || epilogue.activation !== "none")) {
    throw new InputTypeError(
      `Cannot compute the ${problem.op} reference: only fwd has an epilogue`,
    );
  }
  for (const role of channelOperands(epilogue)) {
    const count = inputs[role]?.length ?? 0;
    if (role === "scale" || count === problem.outChannels) continue;
    throw new InputTypeError(
      `Cannot compute the ${problem.op} reference: ${role} has ${count} values, ` +
        `the output has ${problem.outChannels} channels`,
    );
  }
}

/** Replaces each sum by activation(sum + bias), and adds to the magnitudes what that rounds. */
function applyEpilogue(
  epilogue: Epilogue,
  inputs: ReferenceInputs,
  shape: readonly number[],
  indices: Float64Array | undefined,
  values: Float64Array,
  magnitudes: Float64Array,
): void {
  if (!epilogue.bias && epilogue.activation === "none") return;
  const { bias } = inputs;
  const operandAt = operandOf(epilogue.activation, inputs);
  const area = elementCount(shape.slice(2));
  for (let i = 0; i < values.length; i++) {
    const channel = Math.floor((indices?.[i] ?? i) / area) % shape[1]!;
    const shift = epilogue.bias ? bias![channel]! : 0;
    const argument = values[i]! + shift;
    const operand = operandAt(channel);
    const value = activate(epilogue.activation, argument, operand);
    const magnitude = magnitudes[i]! + Math.abs(shift);
    const sum = { argument, operand, value, magnitude };
    values[i] = value;
    magnitudes[i] = activatedMagnitude(epilogue.activation, sum);
  }
}

/**
 * What the error of an activated sum is in proportion to. An infinite argument has no roundings: what it becomes is exact but for
 * the activation's own. Where doubles do not hold Σ|a||b|, their largest number stands for it, which allows less.
 */
export function activatedMagnitude(
  kind: Activation,
  { argument, operand = NaN, value, magnitude, skip = 0 }: ActivatedSum,
): number {
  const sums = Number.isFinite(argument) ? activationGain(kind, operand) * magnitude : 0;
  return Math.min(sums + activationScale(kind, value) + Math.abs(skip), Number.MAX_VALUE);
}

/** A sum and what its activation makes of it. */
export interface ActivatedSum {
  /** The sum with bias and skip. */
  readonly argument: number;
  /** What the activation reads of its channel. */
  readonly operand?: number;
  /** The activation of it. */
  readonly value: number;
  /** Σ|a||b| of the argument, and what was added to it. */
  readonly magnitude: number;
  /** What is added behind the activation. */
  readonly skip?: number;
}
