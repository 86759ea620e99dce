import { resultTensor } from "../problem/conv_problem.ts";
import type { CaseRecord } from "../report/record.ts";
import { type Tensor, tensor, unravelIndex } from "../tensor/tensor.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { layoutOf, memoryShape } from "../run/operands.ts";
import type { CheckedCase } from "./run_group.ts";

/** A command that runs a case again, for a POSIX shell. */
export function reproLine(record: CaseRecord, backend = "wgpu"): string {
  const { problem, op, requested, algorithm, layout, policy, tile, pair, fill, seed } = record;
  const options = Object.entries({
    op,
    algorithm: requested ?? algorithm,
    layout,
    policy,
    tile,
    pair,
    fill,
    seed,
    check: "full",
    ...(backend === "wgpu" ? {} : { backend }),
  }).flatMap(([name, value]) => value === undefined ? [] : [`--${name} ${quoted(`${value}`)}`]);
  return `wgconv conv --problem ${quoted(problem)} ${options.join(" ")}`;
}

function quoted(word: string): string {
  return /^[\w.,=:/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * The tensors of a case, for an `.npz`: the operands as they lie in memory; `got` and `ref` of every output that was
 * checked, and `index`, the canonical index of each (N K P Q, N C H W or K C R S).
 */
export function failureTensors(checked: CheckedCase): Record<string, Tensor> {
  const { operands, result, reference } = checked;
  const { problem, shape, values, indices } = reference;
  const tensors: Record<string, Tensor> = {};
  for (const which of ["input", "filter", "output"] as const) {
    const data = operands[which];
    if (data) tensors[which] = tensor("f32", memoryShape(problem, which, reference), data);
  }
  const strides = stridesInLayout(shape, layoutOf(resultTensor(problem.op), reference));
  const rank = shape.length;
  const got = new Float32Array(values.length);
  const index = new BigInt64Array(values.length * rank);
  for (let i = 0; i < values.length; i++) {
    const place = unravelIndex(indices?.[i] ?? i, shape);
    got[i] = result[place.reduce((sum, at, axis) => sum + at * strides[axis]!, 0)]!;
    place.forEach((at, axis) => index[i * rank + axis] = BigInt(at));
  }
  return {
    ...tensors,
    got: tensor("f32", [values.length], got),
    ref: tensor("f64", [values.length], Float64Array.from(values)),
    index: tensor("i64", [values.length, rank], index),
  };
}

/** A file name that says which case it is of. */
export function failureFile(key: string): string {
  return `${key.replace(/[^\w.-]+/g, "_").slice(0, 150)}.npz`;
}
