import assert from "#assert";
import { convertLayout, filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { operandTensors, OPERATIONS, tensorShape } from "../src/problem/conv_problem.ts";
import { referenceConv } from "../src/reference/reference.ts";
import { loadGoldenCases } from "./golden.ts";

const CASES = loadGoldenCases();

Deno.test("loadGoldenCases() finds PyTorch's 22 cases", () => {
  assert.equal(CASES.length, 22);
  assert.equal(new Set(CASES.map((entry) => entry.name)).size, 22);
});

for (const op of OPERATIONS) {
  for (const layout of LAYOUTS) {
    Deno.test(`referenceConv() ${op} ${layout} equals PyTorch in float64`, async () => {
      for (const entry of CASES) {
        const problem = entry.problems[op];
        const data = { input: entry.input, filter: entry.filter, output: entry.gradOutput };
        const inputs = Object.fromEntries(
          operandTensors(op).map((which) => {
            const canonical = tensor("f32", tensorShape(problem, which), data[which]);
            const filterLayout = filterLayoutFor(layout);
            return which === "filter"
              ? [which, {
                data: convertLayout(canonical, "kcrs", filterLayout).data,
                layout: filterLayout,
              }]
              : [which, { data: convertLayout(canonical, "nchw", layout).data, layout }];
          }),
        );
        const got = await referenceConv(problem, inputs);
        const want = entry.results[op];
        assert.equal(got.values.length, want.length);
        got.values.forEach((value, i) => {
          const bound = 1e-13 * got.magnitudes[i]!;
          assert.ok(
            Math.abs(value - want[i]!) <= bound,
            `${entry.name}, element ${i}: ${value}, PyTorch ${want[i]}`,
          );
        });
      }
    });
  }
}
