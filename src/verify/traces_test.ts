import assert from "#assert";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { fillOperands } from "../run/operands.ts";
import type { HostOperands } from "../run/subject.ts";
import { bf16round, tf32round } from "../tensor/convert.ts";
import { verifySubject } from "./verify.ts";

const problem = gemmProblem({ m: 24, n: 20, k: 1500 });
const subject = gemmSubject(problem, { dtype: "f32" });

type Round = (value: number) => number;

/** A product by one sum each, of operands, sums and results that are rounded. */
function multiplied(
  { a, b }: HostOperands,
  [operand, sums, result]: readonly [Round, Round, Round],
): Float32Array<ArrayBuffer> {
  const { m, n, k } = problem;
  const made = new Float32Array(m * n);
  for (let i = 0; i < made.length; i++) {
    const row = Math.floor(i / n), column = i % n;
    let sum = 0;
    for (let x = 0; x < k; x++) {
      sum = sums(sum + operand(a![row * k + x]!) * operand(b![x * n + column]!));
    }
    made[i] = result(sum);
  }
  return made;
}

const WAYS = {
  "f32": [Number, Math.fround, Math.fround],
  "tf32": [tf32round, Math.fround, Math.fround],
  "f16": [Math.f16round, Math.f16round, Math.f16round],
  "bf16-f32-f16": [bf16round, Math.fround, Math.f16round],
  "bf16": [bf16round, Math.fround, bf16round],
} as const;

for (const fill of ["normal", "uniform01"] as const) {
  Deno.test(`coarser operands and results are found beside larger errors of long sums: ${fill}`, async () => {
    const operands = fillOperands(subject, fill, 1);
    const verdict = async (way: keyof typeof WAYS, arithmetic: string) => {
      const result = multiplied(operands, WAYS[way]);
      const { verdict, message } = await verifySubject(subject, operands, result, { arithmetic });
      return `${verdict} ${message ?? ""}`;
    };
    for (const way of Object.keys(WAYS) as (keyof typeof WAYS)[]) {
      assert.match(await verdict(way, way), /^pass/, way);
    }
    // Of positive numbers the roundings of operands are lost in those of results.
    if (fill === "normal") {
      assert.match(
        await verdict("bf16-f32-f16", "f16"),
        /^fail errors are those of operands in bf16$/,
      );
    }
    assert.match(await verdict("bf16", "f16"), /^fail all results are numbers of bf16$/);
    assert.match(await verdict("tf32", "f32"), /^fail/);
  });
}
