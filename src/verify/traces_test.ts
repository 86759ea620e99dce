import assert from "#assert";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { randomStream } from "../reference/sample.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { fillOperands } from "../run/operands.ts";
import type { HostOperands } from "../run/subject.ts";
import { bf16round, tf32round } from "../tensor/convert.ts";
import { elementCount } from "../tensor/tensor.ts";
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
  { m, n, k } = problem as Readonly<Record<"m" | "n" | "k", number>>,
): Float32Array<ArrayBuffer> {
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
  Deno.test(`one output that is three numbers of ${results} off fails, where the others are the nearest`, async () => {
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
    const two = besides(besides(right[at]!, true, results), true, results);
    for (const arithmetic of ["auto", `${results}-f32`, results]) {
      assert.equal(await verdict(right, arithmetic), "pass ");
      const off = right.with(at, besides(two, true, results));
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

Deno.test("sums in f16 of whole numbers err in few outputs, and pass as f16", async () => {
  // Sums of 32 products in f16 are exact below 2048.
  const made = gemmSubject(gemmProblem({ m: 32, n: 40, k: 200 }), { dtype: "f32" });
  const random = randomStream(1);
  const operands: HostOperands = Object.fromEntries(
    made.operands.map(({ role, shape }) => [
      role,
      Float32Array.from({ length: elementCount(shape) }, () => Math.floor(random() * 25) - 12),
    ]),
  );
  const right = new Float32Array(32 * 40), halves = right.slice();
  for (let i = 0; i < right.length; i++) {
    const [row, column] = [Math.floor(i / 40), i % 40];
    for (let first = 0; first < 200; first += 32) {
      let part = 0;
      for (let k = first; k < Math.min(200, first + 32); k++) {
        const product = operands.a![row * 200 + k]! * operands.b![k * 40 + column]!;
        right[i]! += product;
        part = Math.f16round(part + product);
      }
      halves[i] = Math.f16round(halves[i]! + part);
    }
    right[i] = Math.f16round(right[i]!);
  }
  const verdict = async (result: Float32Array<ArrayBuffer>) =>
    (await verifySubject(made, operands, result, { arithmetic: "f16", results: "f16" })).verdict;
  assert.equal(await verdict(right), "pass");
  assert.equal(await verdict(halves), "pass");
});

Deno.test("what GPUs flush of products in bf16 is no stray output", async () => {
  const [m, n, k] = [100, 20, 64];
  const made = gemmSubject(gemmProblem({ m, n, k }), { dtype: "f32" });
  const random = randomStream(2);
  const operand = (size: number, scale: (at: number) => number) =>
    Float32Array.from({ length: size }, (_, at) => bf16round((0.5 + random()) * scale(at)));
  // Products of one row are below the smallest normal number, their sums above it.
  const a = operand(m * k, (at) => Math.floor(at / k) === 5 ? 2 ** -28 : 1);
  const b = operand(k * n, () => 2 ** -100);
  const result = Float32Array.from({ length: m * n }, (_, at) => {
    let sum = 0;
    for (let i = 0; i < k; i++) {
      const product = Math.fround(a[Math.floor(at / n) * k + i]! * b[i * n + at % n]!);
      if (Math.abs(product) >= 2 ** -126) sum = Math.fround(sum + product);
    }
    return bf16round(sum);
  });
  for (const arithmetic of ["auto", "bf16-f32"]) {
    const { verdict, message } = await verifySubject(made, { a, b }, result, {
      ...{ arithmetic, results: "bf16" },
    });
    assert.equal(verdict, "pass", message);
  }
});

Deno.test("operands that bf16 rounds in part may have been rounded", async () => {
  const [m, n, k] = [64, 40, 50];
  const made = gemmSubject(gemmProblem({ m, n, k }), { dtype: "f32" });
  const random = randomStream(3);
  const operand = (size: number, fine: (at: number) => boolean) =>
    Float32Array.from(
      { length: size },
      (_, at) => (Math.floor(random() * 19) - 9) / 8 + (fine(at) ? (2 * random() - 1) / 128 : 0),
    ).map(Math.f16round);
  const a = operand(m * k, (at) => Math.floor(at / k) === 7 && at % 3 === 0);
  const b = operand(k * n, () => false);
  const result = multiplied({ a, b }, [bf16round, Number, Math.f16round], { m, n, k });
  const options = { arithmetic: "bf16-f32", results: "f16" } as const;
  const { verdict, message } = await verifySubject(made, { a, b }, result, options);
  assert.equal(verdict, "pass", message);
});
