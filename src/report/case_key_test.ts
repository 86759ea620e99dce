import assert from "#assert";
import { canonicalProblem, caseKey, latestCases, questionKey, settingKey } from "./case_key.ts";
import { parseRecords } from "./read_records.ts";
import { caseLine, stream } from "../../tests/support/test_records.ts";

const read = (changes: Record<string, unknown>) =>
  parseRecords(caseLine(changes), "test").cases[0]!;

Deno.test("canonicalProblem() is one spelling without a name", () => {
  const spellings = ['ic4ih8oc4kh3n"a"', "mb2ic4ih8iw8oc4oh6kh3kw3", "mb2_ic4ih8oc4kh3"];
  const made = spellings.map((problem) => canonicalProblem({ problem, op: "fwd" }));
  assert.deepEqual(new Set(made), new Set(["mb2ic4ih8oc4oh6kh3"]));
  assert.equal(canonicalProblem({ problem: "4  5 6 n n", op: "gemm" }), "4 5 6");
  assert.equal(canonicalProblem({ problem: " odd ", op: "fft" }), "odd");
  assert.equal(canonicalProblem({ problem: "odd", op: "fwd" }), "odd");
});

Deno.test("keys part what is not the same case", () => {
  const base = read({});
  assert.equal(caseKey(base), caseKey(read({ kernel: "kernel_b", time_ms: null })));
  for (const changes of [{ op: "bwd-data" }, { dtype: "f16" }, { epilogue: "relu" }]) {
    assert.notEqual(questionKey(base), questionKey(read(changes)));
  }
  for (const changes of [{ layout: "nhwc" }, { provider: "cudnn" }, { cache: "cold" }]) {
    assert.equal(questionKey(base), questionKey(read(changes)));
    assert.notEqual(settingKey(base), settingKey(read(changes)));
  }
  assert.equal(settingKey(base), settingKey(read({ algorithm: "direct" })));
  assert.equal(settingKey(base), settingKey(read({ cache: "hot" })));
  assert.notEqual(caseKey(base), caseKey(read({ algorithm: "direct" })));
  const gemm = { op: "gemm", problem: "4 5 6 t n", layout: "tn" };
  assert.equal(settingKey(read(gemm)), settingKey(read({ ...gemm, layout: undefined })));
});

Deno.test("latestCases() keeps the later of two records of one case, and every kernel", () => {
  const { cases } = parseRecords(
    stream(
      { message: "first" },
      { kernel: "kernel_b" },
      { op: "bwd-data", kernel: null, verdict: "error" },
      { message: "second" },
      { op: "bwd-data" },
      { device: "another" },
    ),
    "test",
  );
  const latest = latestCases(cases);
  assert.equal(latest.replaced, 2);
  assert.deepEqual(
    latest.cases.map(({ kernel, op, message, device }) => [kernel, op, message ?? device]),
    [
      ["kernel_b", "fwd", "TestGPU"],
      ["kernel_a", "fwd", "second"],
      ["kernel_a", "bwd-data", "TestGPU"],
      ["kernel_a", "fwd", "another"],
    ],
  );
});

Deno.test("caseKey() takes an algorithm as it was asked for", () => {
  const auto = read({ requested: "auto" });
  assert.equal(caseKey(auto), caseKey(read({ requested: "auto", algorithm: "winograd2d" })));
  assert.notEqual(caseKey(auto), caseKey(read({})));
  assert.notEqual(caseKey(auto), caseKey(read({ requested: "auto", tile: "4x4" })));
});
