import assert from "#assert";
import {
  gemmElement,
  gemmOperands,
  type GemmProblem,
  gemmProblem,
  gemmShape,
  TRANSPOSES,
} from "../problem/gemm_problem.ts";
import { fillTensor } from "../tensor/fill.ts";
import { type GemmInputs, referenceGemm } from "./gemm.ts";
import { projectGemm, projectIntegers } from "./gemm_projection.ts";

function operandsOf(problem: GemmProblem, dtype: "f64" | "i8"): GemmInputs {
  return Object.fromEntries(
    gemmOperands(problem).map((which, i) => [
      which,
      fillTensor(
        gemmElement(dtype, which),
        gemmShape(problem, which),
        dtype === "i8" ? "int8" : "uniform11",
        7 + i,
      ).data,
    ]),
  );
}

const EPILOGUES: readonly Partial<GemmProblem>[] = [
  {},
  { alpha: -3, beta: 2, bias: "row" },
  { alpha: 5, bias: "column", residual: true, batch: 3 },
  { beta: -7, residual: true, batch: 2 },
];

Deno.test("projectGemm(): the projection of a right product, with any epilogue", async () => {
  for (const transpose of TRANSPOSES) {
    for (const epilogue of EPILOGUES) {
      const problem = gemmProblem({ m: 11, n: 13, k: 9, transpose, ...epilogue });
      const operands = operandsOf(problem, "f64");
      const { values } = await referenceGemm(problem, operands);
      const projection = await projectGemm(problem, operands, { seed: 2 });
      const { sums } = projection.project(values);
      sums.forEach((sum, i) => assert.ok(Math.abs(sum - projection.expected[i]!) < 1e-12));
      const [some] = [projection.indicesOf(projection.expected.length - 1)];
      assert.equal(some.at(-1), values.length - 1);
      assert.equal(some.length, 11);
    }
  }
});

Deno.test("projectIntegers(): equal for right products, and for no wrong one", async () => {
  for (const transpose of TRANSPOSES) {
    for (const epilogue of EPILOGUES) {
      const problem = gemmProblem({ m: 11, n: 13, k: 9, transpose, ...epilogue });
      const operands = operandsOf(problem, "i8");
      const { values } = await referenceGemm(problem, operands, { integers: true });
      const result = Int32Array.from(values);
      const projection = projectIntegers(problem, operands, 3);
      assert.deepEqual(projection.project(result), projection.expected);
      for (const bit of [0, 1, 15, 31]) {
        const wrong = result.slice();
        wrong[5 * 13 + 4]! ^= 1 << bit;
        const different = projection.project(wrong)
          .map((sum, j) => sum === projection.expected[j] ? 0 : 1);
        assert.deepEqual([...different.keys()].filter((j) => different[j]), [4]);
      }
    }
  }
});

Deno.test("referenceGemm() computes the results that are listed", async () => {
  const problem = gemmProblem({ m: 5, n: 4, k: 6, batch: 3, bias: "row", beta: 2 });
  const operands = operandsOf(problem, "f64");
  const whole = await referenceGemm(problem, operands);
  const indices = Float64Array.of(0, 7, 19, 41, 59);
  const some = await referenceGemm(problem, operands, { indices });
  assert.deepEqual(some.indices, indices);
  some.values.forEach((value, i) => {
    assert.ok(Math.abs(value - whole.values[indices[i]!]!) < 1e-13);
  });
});
