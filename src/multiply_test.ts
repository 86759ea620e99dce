import assert from "#assert";
import { prepareProduct } from "./layers/product.ts";
import { checkProduct, multiply } from "./multiply.ts";
import { gemmProblem } from "./problem/gemm_problem.ts";
import { fillTensor } from "./tensor/fill.ts";
import { test } from "../tests/drivers/driver.ts";

test("multiply() and checkProduct() do a product of f32 and of i8, with all that is added", async (gpu) => {
  const fill = (dtype: "f32" | "i8" | "i32", shape: number[], seed: number) =>
    fillTensor(dtype, shape, dtype === "f32" ? "normal" : "integer", seed).data;
  const problem = gemmProblem({
    m: 9,
    n: 14,
    k: 21,
    batch: 2,
    bias: "row",
    beta: 2,
    transpose: "tn",
  });
  for (const dtype of ["f32", "i8"] as const) {
    const other = dtype === "i8" ? "i32" : "f32";
    const operands = {
      a: fill(dtype, [2, 21, 9], 1),
      b: fill(dtype, [2, 21, 14], 2),
      c: fill(other, [2, 9, 14], 3),
      bias: fill(other, [9], 4),
    };
    const product = await multiply(gpu, problem, operands, { dtype, samples: 2 });
    assert.deepEqual(product.shape, [2, 9, 14]);
    assert.equal(product.samplesNs.length, 2);
    const checked = await checkProduct(product, operands);
    assert.equal(checked.verdict, "pass", checked.message ?? "");
    product.result[100] = Number(product.result[100]) + 3;
    assert.equal((await checkProduct(product, operands)).verdict, "fail");
  }
});

test("multiply() refuses operands that the product does not have, and i8 that may overflow", async (gpu) => {
  const a = new Float32Array(6), b = new Float32Array(6);
  const problem = gemmProblem({ m: 2, n: 2, k: 3 });
  await assert.rejects(multiply(gpu, problem, { a }), /^TypeError: Cannot multiply: b is missing/);
  await assert.rejects(
    multiply(gpu, problem, { a, b: new Float32Array(5) }),
    /b has 5 elements, its shape \[3,2\] has 6/,
  );
  await assert.rejects(multiply(gpu, problem, { a, b }, { dtype: "i8" }), /a is no i8 data/);
  const k = 140_000;
  const full = { a: new Int8Array(k).fill(127), b: new Int8Array(k).fill(127) };
  await assert.rejects(
    multiply(gpu, gemmProblem({ m: 1, n: 1, k }), full, { dtype: "i8" }),
    /more than the 32 bits/,
  );
});

test("multiply() and prepareProduct() with a budget take what was timed on the device", async (gpu) => {
  const problem = gemmProblem({ m: 64, n: 64, k: 256, activation: "relu" });
  const operands = {
    a: fillTensor("f32", [64, 256], "normal", 1).data,
    b: fillTensor("f32", [256, 64], "normal", 2).data,
  };
  const product = await multiply(gpu, problem, operands, { tuneBudget: 60 });
  assert.equal(product.plan.measured, true);
  assert.equal((await checkProduct(product, operands)).verdict, "pass");
  using layer = await prepareProduct(gpu, problem, { tuneBudget: 60 });
  assert.equal(layer.plan, product.plan);
});
