import assert from "#assert";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { fillOperands } from "../run/operands.ts";
import type { HostOperands } from "../run/subject.ts";
import { bf16round, tf32round } from "../tensor/convert.ts";
import type { Reference } from "../run/check.ts";
import { ROUNDINGS } from "../simulate/sum_source.ts";
import { beforeRounding, besides } from "./unrounded.ts";
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

for (const results of ["f16", "bf16"] as const) {
  Deno.test(`one output that is two numbers of ${results} off fails, where the others are the nearest`, async () => {
    const round = ROUNDINGS[results];
    const operands: HostOperands = Object.fromEntries(
      Object.entries(fillOperands(subject, "uniform01", 1)).map(([role, data]) => [
        role,
        (data as Float32Array).map(round),
      ]),
    );
    const right = multiplied(operands, [Number, Math.fround, round]);
    const verdict = async (result: Float32Array<ArrayBuffer>, arithmetic: string) => {
      const { verdict, message } = await verifySubject(subject, operands, result, {
        ...{ arithmetic, results },
      });
      return `${verdict} ${message ?? ""}`;
    };
    const at = right.findIndex((value) => Math.abs(value) > 32);
    const one = besides(right[at]!, true, results);
    for (const arithmetic of ["auto", `${results}-f32`]) {
      assert.equal(await verdict(right, arithmetic), "pass ");
      const off = right.with(at, besides(one, true, results));
      assert.match(
        await verdict(off, arithmetic),
        /^fail output \[0,\d+,\d+\] is two numbers of /,
      );
      // Where many are not the nearest, arithmetic may be what errs.
      const twice = right.map((value, i) => i % 8 === 0 ? besides(value, true, results) : value);
      assert.doesNotMatch(await verdict(twice.with(at, off[at]!), arithmetic), /two numbers/);
    }
  });
}

Deno.test("what stands before rounding to f16 is finite where that overflows", () => {
  const values = Float64Array.of(1e6, -1e6, 65_519, 70_000, 1);
  const results = Float32Array.of(Infinity, -Infinity, Infinity, 65_504, 1);
  const made = gemmSubject(gemmProblem({ m: 1, n: 5, k: 1 }), { dtype: "f32" });
  const reference = { subject: made, values } as unknown as Reference;
  assert.deepEqual([...beforeRounding(reference, results, "f16")], [1e6, -1e6, 65_520, 65_520, 1]);
});
