import assert from "#assert";
import fc from "fast-check";
import { gemmProblem, TRANSPOSES } from "./gemm_problem.ts";
import { parseGemm, parseGemmSuite, printGemm } from "./gemm_suite.ts";

Deno.test("parseGemm() reads sizes, transposes and a batch", () => {
  assert.deepEqual(parseGemm("3 4 5"), gemmProblem({ m: 3, n: 4, k: 5 }));
  assert.deepEqual(parseGemm(" 3  4 5 t n "), gemmProblem({ m: 3, n: 4, k: 5, transpose: "tn" }));
  assert.deepEqual(parseGemm("3 4 0 x2"), gemmProblem({ m: 3, n: 4, k: 0, batch: 2 }));
});

Deno.test("parseGemm() reads back what printGemm() prints", () => {
  const size = fc.nat();
  const problems = fc.record({
    m: size,
    n: size,
    k: size,
    transpose: fc.constantFrom(...TRANSPOSES),
    batch: size,
  });
  fc.assert(fc.property(problems, (init) => {
    const problem = gemmProblem(init);
    assert.deepEqual(parseGemm(printGemm(problem)), problem);
  }));
  assert.equal(printGemm(gemmProblem({ m: 1, n: 2, k: 3 })), "1 2 3");
  const named = gemmProblem({ m: 1, n: 2, k: 3, transpose: "nt", name: "my net_fc #1*4" });
  assert.equal(printGemm(named), '1 2 3 n t n"my net_fc #1*4"');
  assert.deepEqual(parseGemmSuite(`${printGemm(named)} # twice`, "s"), [named]);
});

Deno.test("parseGemmSuite() skips comments and blank lines", () => {
  const text = "# m n k\n\n8 9 10 # deep\r\n 1 2 3 t t\n";
  assert.deepEqual(parseGemmSuite(text, "s.txt").map(printGemm), ["8 9 10", "1 2 3 t t"]);
});

Deno.test("parseGemmSuite() names file, line and column", () => {
  const cases: [string, string][] = [
    ["8 9", "k is missing, expected m n k [ta tb], at column 4\n  8 9\n     ^"],
    ["8 -9 1", "n is no whole number >= 0, at column 3\n  8 -9 1\n    ^"],
    ["8 9 1 n", "the transpose of B is missing, at column 8\n  8 9 1 n\n         ^"],
    ["8 9 1 n c", '"c" is no transpose, expected n or t, at column 9\n  8 9 1 n c\n          ^'],
    ["8 9 1 n t 2", "expected the end of the line, at column 11\n  8 9 1 n t 2\n            ^"],
    ["8 9 1 x", "expected a batch such as x3, at column 7\n  8 9 1 x\n        ^"],
  ];
  for (const [line, what] of cases) {
    assert.throws(() => parseGemmSuite(`# x\n${line}`, "dir/s.txt"), {
      name: "SyntaxError",
      message: `dir/s.txt:2: Cannot parse product: ${what}`,
    });
  }
});

Deno.test("bench/suites/gemm.txt is well formed", async () => {
  const url = new URL("../../bench/suites/gemm.txt", import.meta.url);
  const problems = parseGemmSuite(await Deno.readTextFile(url), "gemm.txt");
  assert.equal(problems.length, 17);
  assert.equal(new Set(problems.map(printGemm)).size, 17);
});

Deno.test("parseGemmSuite() takes 100,000 products and no more", () => {
  assert.equal(parseGemmSuite("1 2 3\n".repeat(100_000), "s").length, 100_000);
  assert.throws(() => parseGemmSuite("1 2 3\n".repeat(100_001), "s"), {
    name: "SyntaxError",
    message: "s:100001: Cannot read the suite: there are more than 100000 products",
  });
});
