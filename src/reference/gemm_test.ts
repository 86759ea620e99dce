import assert from "#assert";
import fc from "fast-check";
import {
  gemmOperands,
  type GemmProblem,
  gemmProblem,
  gemmShape,
  type GemmTensor,
  TRANSPOSES,
} from "../problem/gemm_problem.ts";
import { PLAIN_ACTIVATIONS } from "../problem/activations.ts";
import { elementCount } from "../tensor/tensor.ts";
import { activate } from "../problem/activations.ts";
import { type GemmInputs, referenceGemm } from "./gemm.ts";
import { projectGemm } from "./gemm_projection.ts";
import { plainGemm, type PlainResult } from "../../tests/support/plain_reference.ts";
import { randomStream } from "./sample.ts";

function operandsOf(problem: GemmProblem, seed: number): GemmInputs {
  const random = randomStream(seed);
  const make = (which: GemmTensor) =>
    Float64Array.from(
      { length: elementCount(gemmShape(problem, which)) },
      () => 2 * random() - 1,
    );
  return Object.fromEntries(gemmOperands(problem).map((which) => [which, make(which)]));
}

const problems = fc.record({
  m: fc.integer({ min: 0, max: 9 }),
  n: fc.integer({ min: 0, max: 9 }),
  k: fc.integer({ min: 0, max: 9 }),
  batch: fc.integer({ min: 0, max: 3 }),
  transpose: fc.constantFrom(...TRANSPOSES),
  alpha: fc.constantFrom(1, -0.5, 0),
  beta: fc.constantFrom(0, 1, -2),
  bias: fc.constantFrom("none" as const, "row" as const, "column" as const),
  activation: fc.constantFrom(...PLAIN_ACTIVATIONS),
  residual: fc.boolean(),
}).map(gemmProblem);

/** Asserts that results are the definition's, to `1e-14` of the largest term. */
function assertSame(
  got: { values: Float64Array; magnitudes: Float64Array; indices?: Float64Array },
  want: PlainResult,
  alsoMagnitudes: boolean,
) {
  got.values.forEach((value, i) => {
    const at = got.indices?.[i] ?? i;
    const room = 1e-13 * (1 + want.magnitudes[at]!);
    assert.ok(Math.abs(value - want.values[at]!) <= room, `${value}, not ${want.values[at]}`);
    const size = got.magnitudes[i]!;
    if (alsoMagnitudes) assert.ok(Math.abs(size - want.magnitudes[at]!) <= room);
    else assert.ok(size >= want.magnitudes[at]! - room);
  });
}

Deno.test("referenceGemm() equals the definition for any size, transpose and epilogue", async () => {
  await fc.assert(
    fc.asyncProperty(problems, fc.integer(), async (problem, seed) => {
      const operands = operandsOf(problem, seed);
      const got = await referenceGemm(problem, operands, { workers: 0 });
      assert.deepEqual(got.shape, [problem.batch, problem.m, problem.n]);
      assert.equal(got.values.length, elementCount(got.shape));
      const exact = !["sigmoid", "tanh"].includes(problem.activation);
      assertSame(got, plainGemm(problem, operands), exact);
    }),
    { numRuns: 300, seed: 20261121 },
  );
});

Deno.test("referenceGemm() covers one row, one column, no depth and nothing", async () => {
  for (const transpose of TRANSPOSES) {
    for (const [m, n, k] of [[1, 70, 33], [70, 1, 33], [1, 1, 5], [4, 5, 0], [0, 5, 3]] as const) {
      const problem = gemmProblem({ m, n, k, transpose, beta: 0.5, bias: "row" });
      const operands = operandsOf(problem, m + n);
      assertSame(await referenceGemm(problem, operands), plainGemm(problem, operands), true);
    }
  }
});

Deno.test("referenceGemm() samples every row of every product of the batch", async () => {
  const problem = gemmProblem({ m: 6, n: 50, k: 7, batch: 3, transpose: "tn", residual: true });
  const operands = operandsOf(problem, 5);
  const got = await referenceGemm(problem, operands, { sample: { count: 90, seed: 1 } });
  assert.equal(got.values.length, 90);
  const rows = new Set(Array.from(got.indices!, (index) => Math.floor(index / 50)));
  assert.equal(rows.size, 18);
  assertSame(got, plainGemm(problem, operands), true);
});

Deno.test("referenceGemm() reads f16 and i8, and computes the same on Workers", async () => {
  const problem = gemmProblem({ m: 3, n: 4, k: 2 });
  const a = [1, -2, 3, 4, -5, 6];
  const b = [1, 2, 3, 4, 5, 6, 7, -8];
  const want = [-9, -10, -11, 20, 23, 30, 37, -20, 25, 26, 27, -68];
  for (const kind of [Float16Array, Int8Array, Float32Array]) {
    const { values } = await referenceGemm(problem, { a: kind.from(a), b: kind.from(b) });
    assert.deepEqual([...values], want);
  }
  const large = gemmProblem({ m: 500, n: 600, k: 400, transpose: "nt" });
  const bytes = (which: "a" | "b") =>
    Int8Array.from({ length: elementCount(gemmShape(large, which)) }, (_, i) => i * 7 % 251);
  const operands = { a: bytes("a"), b: bytes("b") };
  const [one, many] = [
    await referenceGemm(large, operands, { workers: 0 }),
    await referenceGemm(large, operands, { workers: 2 }),
  ];
  assert.deepEqual(one.values, new Float64Array(many.values));
});

Deno.test("referenceGemm() names the operand that is missing or of another size", async () => {
  const problem = gemmProblem({ m: 2, n: 3, k: 4, beta: 1 });
  const a = new Float32Array(8);
  const b = new Float32Array(12);
  await assert.rejects(() => referenceGemm(problem, { a, b }), {
    name: "TypeError",
    message: "Cannot compute the gemm reference: c is missing",
  });
  await assert.rejects(() => referenceGemm(problem, { a, b: a, c: a }), {
    message: "Cannot compute the gemm reference: b has 8 elements, its shape [4,3] has 12",
  });
});

Deno.test("referenceGemm() of integers is exact where results are of 32 bits, whatever their parts", async () => {
  const most = 2 ** 31 - 1;
  const init = { m: 1, n: 1, k: 2, activation: "relu", bias: "column", residual: true } as const;
  const product = async (
    { alpha, beta, c, bias, residual }: Record<
      "alpha" | "beta" | "c" | "bias" | "residual",
      number
    >,
  ) => {
    const operands = {
      a: Int8Array.of(-128, 127),
      b: Int8Array.of(-128, 127),
      ...(beta === 0 ? {} : { c: Int32Array.of(c) }),
      bias: Int32Array.of(bias),
      residual: Int32Array.of(residual),
    };
    const problem = gemmProblem({ ...init, alpha, beta });
    const { values } = await referenceGemm(problem, operands, { workers: 0, integers: true });
    return values[0];
  };
  const sum = 128 * 128 + 127 * 127;
  const plain = { alpha: 1, beta: 0, c: 0, bias: 0, residual: 0 };
  assert.equal(await product({ ...plain, bias: most - sum }), most);
  // Parts beyond 32 bits that cancel.
  const apart = { ...plain, alpha: 2 ** 20, beta: -(2 ** 20), c: sum - 5, bias: 7 };
  assert.equal(await product(apart), 5 * 2 ** 20 + 7);
  assert.equal(await product({ ...plain, bias: -sum - 1, residual: 3 }), 3);
  const refusal = {
    name: "RangeError",
    message: "Cannot multiply: result [0, 0] is beyond the 32 bits that i8 products make",
  };
  for (
    const beyond of [
      { ...plain, bias: most - sum + 1 },
      { ...plain, alpha: most },
      // What ReLU would make 0 of is beyond already; on a device it comes out positive.
      { ...plain, alpha: -70_001 },
      { ...plain, residual: most },
      { ...plain, alpha: 2 ** 31 / 2 ** 3, beta: 2 ** 28, c: most },
    ]
  ) await assert.rejects(product(beyond), refusal);
});

Deno.test("referenceGemm() reads neither A nor B where alpha is 0", async () => {
  const [m, n, k] = [2, 3, 4];
  const [a, b] = [new Float64Array(m * k).fill(NaN), new Float64Array(k * n).fill(Infinity)];
  const c = Float64Array.of(1, 2, 3, 4, 5, 6);
  const none = gemmProblem({ m, n, k, alpha: 0, beta: 2 });
  for (const compensated of [false, true]) {
    const { values, magnitudes } = await referenceGemm(none, { a, b, c }, { compensated });
    assert.deepEqual([[...values], [...magnitudes]], [[2, 4, 6, 8, 10, 12], [2, 4, 6, 8, 10, 12]]);
  }
  const { expected, project } = await projectGemm(none, { a, b, c }, { seed: 1 });
  assert.deepEqual([...expected], [...project(c.map((value) => 2 * value)).sums]);
});

Deno.test("referenceGemm() of f64 has infinities where doubles do, and nothing left over beside them", async () => {
  const problem = gemmProblem({ m: 3, n: 1, k: 1, alpha: 2, beta: 2, bias: "row", residual: true });
  const [inf, none] = [Infinity, [0, 0, 0]];
  const made = async (own: Partial<Record<"a" | "c" | "bias" | "residual", number[]>>) => {
    const { a = [1e39, 1, 2], c = none, bias = none, residual = none } = own;
    const operands = {
      a: Float64Array.from(a),
      b: Float64Array.of(1),
      c: Float64Array.from(c),
      bias: Float64Array.from(bias),
      residual: Float64Array.from(residual),
    };
    const { values, rests } = await referenceGemm(problem, operands, {
      workers: 0,
      compensated: true,
    });
    assert.ok(rests!.every((rest) => Number.isFinite(rest)));
    return [...values];
  };
  assert.deepEqual(await made({}), [2e39, 2, 4]);
  assert.deepEqual(await made({ a: [inf, -inf, NaN] }), [inf, -inf, NaN]);
  for (const which of ["c", "bias", "residual"] as const) {
    assert.deepEqual(await made({ [which]: [inf, -inf, NaN] }), [inf, -inf, NaN]);
  }
  assert.deepEqual(await made({ a: [inf, 1, 1], bias: [-inf, inf, 0] }), [NaN, inf, 2]);
});

Deno.test("what an activation makes of infinities must be exact but for what it rounds by itself", async () => {
  const infinities = Float64Array.of(Infinity, -Infinity);
  for (const activation of PLAIN_ACTIVATIONS) {
    for (const compensated of [false, true]) {
      const problem = gemmProblem({ m: 2, n: 1, k: 1, bias: "row", activation });
      const operands = { a: Float64Array.of(1, 2), b: Float64Array.of(3), bias: infinities };
      const { values, magnitudes } = await referenceGemm(problem, operands, {
        workers: 0,
        compensated,
      });
      values.forEach((value, i) => {
        assert.ok(Object.is(value, activate(activation, infinities[i]!)));
        if (!Number.isFinite(value)) return;
        assert.equal(
          magnitudes[i],
          activation === "tanh" ? 1 : activation === "sigmoid" ? value : 0,
        );
      });
    }
  }
});
