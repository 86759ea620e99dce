import assert from "#assert";
import { type GemmDType, gemmProblem } from "../problem/gemm_problem.ts";
import type { GemmInputs } from "../reference/gemm.ts";
import { referenceGemm } from "../reference/gemm.ts";
import { arrayConstructor, type TensorData } from "../tensor/dtype.ts";
import { checkAgainst, computeReference } from "./check.ts";
import { gemmSubject } from "./gemm_subject.ts";
import { defaultFill, fillOperands } from "./operands.ts";
import type { HostData } from "./subject.ts";

/** The reference's values as a device of the dtype would leave them, and the check of what `spoil` does. */
async function verdictOf(
  dtype: GemmDType,
  spoil: (result: Exclude<TensorData, BigInt64Array | BigUint64Array>) => void,
  mode: "sample" | "full" = "full",
) {
  const problem = gemmProblem({ m: 40, n: 30, k: 200, transpose: "nt", bias: "row" });
  const subject = gemmSubject(problem, { dtype });
  const operands = fillOperands(subject, defaultFill(dtype), 3);
  const { values } = await referenceGemm(problem, operands as GemmInputs, { workers: 0 });
  const result = new (arrayConstructor(subject.result.dtype))(values.length);
  if (result instanceof BigInt64Array || result instanceof BigUint64Array) throw new Error(dtype);
  result.set(values);
  spoil(result);
  const reference = await computeReference({ subject, operands, mode, seed: 1 });
  return checkAgainst(reference, result as HostData, {}).verdict;
}

Deno.test("checkAgainst() passes what is rounded once, in every dtype", async () => {
  for (const dtype of ["f32", "f16", "i8", "f64"] as const) {
    assert.equal(await verdictOf(dtype, () => {}), "pass", dtype);
    assert.equal(await verdictOf(dtype, () => {}, "sample"), "pass", dtype);
  }
});

Deno.test("checkAgainst() fails on one wrong element, a scaled row and a single NaN", async () => {
  for (const dtype of ["f32", "f16", "f64"] as const) {
    assert.equal(await verdictOf(dtype, (result) => result[77]! *= 1.01), "fail", dtype);
    assert.equal(await verdictOf(dtype, (result) => result[1199] = NaN), "fail", dtype);
  }
  const tiny = (result: { [at: number]: number }) => {
    for (let column = 0; column < 30; column++) result[60 + column]! *= 1 + 8e-6;
  };
  assert.equal(await verdictOf("f32", tiny), "fail");
});

Deno.test("checkAgainst() takes integers exactly or not at all", async () => {
  assert.equal(await verdictOf("i8", (result) => result[5]! += 1), "fail");
});

Deno.test("computeReference() samples large products, every row of them", async () => {
  const problem = gemmProblem({ m: 700, n: 900, k: 200 });
  const subject = gemmSubject(problem, { dtype: "f32" });
  const operands = fillOperands(subject, "uniform01", 1);
  const sample = await computeReference({ subject, operands, mode: "sample", seed: 1 });
  assert.equal(sample.values.length, 700 * 64);
  assert.equal(new Set(sample.indices!.map((index) => Math.floor(index / 900))).size, 700);
});
