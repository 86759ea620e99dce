import assert from "#assert";
import { checkGemmArithmetic, GEMM_DTYPES, gemmProblem } from "./gemm_problem.ts";

const size = { m: 2, n: 3, k: 4 };

Deno.test("checkGemmArithmetic() takes every dtype, and whole factors of int8", () => {
  for (const dtype of GEMM_DTYPES) checkGemmArithmetic(gemmProblem(size), { dtype });
  checkGemmArithmetic(gemmProblem(size), { dtype: "f16", accumulate: "f16" });
  const whole = gemmProblem({ ...size, alpha: -3, beta: 2 ** 31 - 1, activation: "relu" });
  checkGemmArithmetic(whole, { dtype: "i8" });
});

Deno.test("checkGemmArithmetic() says what a dtype gives no meaning to", () => {
  const cases = [
    [{ alpha: 0.5 }, "alpha is 0.5, i8 products take whole numbers of 32 bits"],
    [{ beta: 2 ** 31 }, "beta is 2147483648, i8 products take whole numbers of 32 bits"],
    [{ activation: "gelu" }, "gelu leads out of the integers, i8 products take relu"],
  ] as const;
  for (const [more, message] of cases) {
    const problem = gemmProblem({ ...size, ...more });
    checkGemmArithmetic(problem, { dtype: "f64" });
    assert.throws(() => checkGemmArithmetic(problem, { dtype: "i8" }), {
      name: "RangeError",
      message: `Cannot multiply: ${message}`,
    });
  }
  for (const dtype of ["f32", "f16"] as const) {
    const large = gemmProblem({ ...size, beta: -1e40 });
    assert.throws(() => checkGemmArithmetic(large, { dtype }), {
      name: "RangeError",
      message: `Cannot multiply: beta is -1e+40, beyond f32, in which ${dtype} products are scaled`,
    });
    checkGemmArithmetic(large, { dtype: "f64" });
  }
  for (const dtype of ["f32", "i8", "f64"] as const) {
    assert.throws(
      () => checkGemmArithmetic(gemmProblem(size), { dtype, accumulate: "f16" }),
      /only f16 products can be summed in f16, the dtype is/,
    );
  }
});
