import assert from "#assert";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { gemmSubject } from "./gemm_subject.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import { coverageOf, strataOf } from "./coverage.ts";
import { plainSubject } from "../../tests/support/plain_subject.ts";

Deno.test("coverageOf(): whole where small, projected where large, else whole or an output a tile", () => {
  const of = (descriptor: string, op: "fwd" | "bwd-data" | "bwd-filter" = "fwd") =>
    coverageOf(
      plainSubject(descriptor, { op }),
      { mode: "auto", linear: true },
    );
  assert.equal(of("mb1ic16ih14oc16kh3ph1"), "whole");
  assert.equal(of("mb32ic64ih224oc64kh3ph1"), "projected");
  assert.equal(of("mb32ic64ih224oc64kh3ph1", "bwd-filter"), "projected");
  // Images of three colours; 7x7 filters.
  assert.equal(of("mb8ic3ih224oc64kh7sh2ph3", "bwd-data"), "whole");
  assert.equal(of("mb64ic3ih224oc64kh7sh2ph3", "bwd-data"), "strata");
  assert.equal(of("mb64ic3ih224oc64kh7sh2ph3"), "projected");
  assert.equal(of("g256mb64ic256ih56oc256kh3ph1"), "whole");
  assert.equal(of("g512mb256ic512ih112oc512kh3ph1"), "strata");
  const product = gemmSubject(gemmProblem({ m: 4096, n: 4096, k: 64 }), { dtype: "f32" });
  assert.equal(coverageOf(product, { mode: "auto", linear: true }), "projected");
  assert.equal(coverageOf(product, { mode: "auto", linear: false }), "whole");
  assert.equal(coverageOf(product, { mode: "sample", linear: true }), "sample");
  assert.equal(coverageOf(product, { mode: "full", linear: true }), "whole");
});

Deno.test("strataOf() meets every tile of 32 channels and 64 places", () => {
  const shape = [3, 80, 9, 11];
  for (const inner of [false, true]) {
    const met = new Set<string>();
    for (const index of strataOf(shape, { channelAxis: 1, run: 40, inner }, 9, 5)) {
      const [n, k, y, x] = unravelIndex(index, shape) as [number, number, number, number];
      const place = inner ? (y * 11 + x) * 3 + n : n * 99 + y * 11 + x;
      // Tiles begin anew in each group.
      met.add(`${Math.floor(k / 40)} ${Math.floor(k % 40 / 32)} ${Math.floor(place / 64)}`);
    }
    assert.equal(met.size, 2 * 2 * Math.ceil(3 * 99 / 64), `inner ${inner}`);
  }
  const axes = { channelAxis: 1, run: 1, inner: false } as const;
  const depthwise = strataOf([2, 6, 8, 8], axes, 9, 1);
  assert.equal(depthwise.length, 6 * 2 * 64 / 32);
  assert.ok(strataOf([2, 6, 8, 8], axes, 1000, 1, 12_000).length <= 12);
});
