import type { CaseRecord } from "../report/record.ts";
import { resultStrides } from "../run/check.ts";
import type { RanCase } from "./run_group.ts";
import type { HostData } from "../run/subject.ts";
import { type Tensor, tensor, unravelIndex, zeros } from "../tensor/tensor.ts";

/** A command that runs a case again, for a POSIX shell. */
export function reproLine(record: CaseRecord, backend = "wgpu"): string {
  const { problem, op, requested, algorithm, layout, policy, tile, pair, fill, seed } = record;
  const { segments, dtype, loss_scale } = record;
  const options = Object.entries({
    op,
    ...(algorithm === "reference" ? { device: "cpu" } : { algorithm: requested ?? algorithm }),
    ...(dtype === "f32" ? {} : { dtype }),
    layout,
    policy,
    tile,
    pair,
    segments,
    fill,
    seed,
    "loss-scale": loss_scale,
    check: "full",
    ...(backend === "wgpu" ? {} : { backend }),
  }).flatMap(([name, value]) => value === undefined ? [] : [`--${name} ${quoted(`${value}`)}`]);
  return `wgconv conv --problem ${quoted(problem)} ${options.join(" ")}`;
}

/** A word as a POSIX shell takes it. */
export function quoted(word: string): string {
  return /^[\w.,=:/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * The tensors of a case, for an `.npz`: the operands as they lie in memory; `got` and `ref` of every output that was
 * checked, and `index`, the canonical index of each (N K P Q, N C H W or K C R S).
 */
export function failureTensors({ group, operands, checked }: RanCase): Record<string, Tensor> {
  const { subject } = group;
  const tensors: Record<string, Tensor> = {};
  for (const { role, dtype, shape } of subject.operands) {
    const data = operands[role];
    if (data) tensors[role] = tensor(dtype, shape, data);
  }
  if (checked === undefined) return tensors;
  const { result, reference: { values, indices, shape } } = checked;
  const strides = resultStrides(subject);
  const rank = shape.length;
  const got = zeros(subject.result.dtype, [values.length]);
  const into = got.data as HostData;
  const index = new BigInt64Array(values.length * rank);
  for (let i = 0; i < values.length; i++) {
    const place = unravelIndex(indices?.[i] ?? i, shape);
    into[i] = result[place.reduce((sum, at, axis) => sum + at * strides[axis]!, 0)]!;
    place.forEach((at, axis) => index[i * rank + axis] = BigInt(at));
  }
  return {
    ...tensors,
    got,
    ref: tensor("f64", [values.length], Float64Array.from(values)),
    index: tensor("i64", [values.length, rank], index),
  };
}

/** A file name that says which case it is of. */
export function failureFile(key: string): string {
  return `${key.replace(/[^\w.-]+/g, "_").slice(0, 150)}.npz`;
}
