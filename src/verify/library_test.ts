import assert from "#assert";
import { convProblem } from "../problem/conv_problem.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { referenceConv } from "../reference/reference.ts";
import { referenceGemm } from "../reference/gemm.ts";
import { fillTensor } from "../tensor/fill.ts";
import { bf16round } from "../tensor/convert.ts";
import { verify } from "./library.ts";

const problem = convProblem({
  ...{ batch: 2, inChannels: 8, outChannels: 6, padding: 1 },
  ...{ inputSize: [6, 5], filterSize: [3, 3] },
});
const input = fillTensor("f32", [2, 6, 5, 8], "normal", 1).data;
const filter = fillTensor("f32", [6, 3, 3, 8], "normal", 2).data;
const bias = fillTensor("f32", [6], "normal", 3).data;
const { values } = await referenceConv(problem, {
  input: { data: input, layout: "nhwc" },
  filter: { data: filter, layout: "krsc" },
  bias,
}, { epilogue: { bias: true } });
/** In nhwc. */
const output = Float64Array.from(
  values,
  (_, i) => values[(Math.floor(i / 180) * 6 + i % 6) * 30 + Math.floor(i / 6) % 30]!,
);
const options = { layout: "nhwc" } as const;

Deno.test("verify() takes results of any number type, and says what explains them", async () => {
  const operands = { input, filter, bias };
  for (
    const [result, more, explained] of [
      [Float32Array.from(output), {}, /^f32, /],
      [output, {}, /^f32, /],
      [Float16Array.from(output), {}, /^f32, /],
      [Float32Array.from(output, bf16round), { results: "bf16" }, /^f32, /],
      [Float32Array.from(output, bf16round), {}, /^(bf16|f16|tf32)/],
    ] as const
  ) {
    const { verdict, message, arithmetic } = await verify(result, problem, operands, {
      ...options,
      ...more,
    });
    assert.equal(verdict, "pass", message);
    assert.match(arithmetic, explained);
  }
});

Deno.test("verify() says what is wrong with a result that fails", async () => {
  const { verdict, diagnosis } = await verify(
    Float32Array.from(output),
    problem,
    { input, filter, bias },
    { ...options, arithmetic: "f32", epilogue: { activation: "relu" } },
  );
  assert.equal(verdict, "fail");
  assert.match(diagnosis!, /outputs are wrong; the result matches with no relu: relative L2/);
});

Deno.test("verify() takes products, of f64 and of bytes by references of their own", async () => {
  const product = gemmProblem({ m: 5, n: 4, k: 30 });
  const a = fillTensor("f64", [5, 30], "normal", 1).data;
  const b = fillTensor("f64", [30, 4], "normal", 2).data;
  const { values } = await referenceGemm(product, { a, b });
  const right = await verify(Float64Array.from(values), product, { a, b });
  assert.deepEqual([right.verdict, right.arithmetic], ["pass", "f64, one sum"]);
  const bytes = { a: Int8Array.from(a, (x) => 20 * x), b: Int8Array.from(b, (x) => 20 * x) };
  const exact = Int32Array.from((await referenceGemm(product, bytes, { integers: true })).values);
  assert.equal((await verify(exact, product, bytes)).arithmetic, "i8, exact");
  exact[3]! += 1;
  assert.equal((await verify(exact, product, bytes)).verdict, "fail");
});

Deno.test("verify() refuses what does not fit", async () => {
  const result = Float32Array.from(output);
  const refused = (promise: Promise<unknown>, message: RegExp) => assert.rejects(promise, message);
  await refused(verify(result, problem, { input, bias }, options), /filter is missing/);
  await refused(
    verify(result.slice(1), problem, { input, filter, bias }, options),
    /the result has 359 elements, its shape \[2, 6, 5, 6\] has 360/,
  );
  await refused(
    verify(result, problem, { input, filter, bias }, { arithmetic: "fp8" }),
    /no arithmetic "fp8"/,
  );
  await refused(verify(result, null as never, {}), /the problem is null/);
  await refused(verify(result, problem, { input, filter: [] as never }), /filter is \[\]/);
});
