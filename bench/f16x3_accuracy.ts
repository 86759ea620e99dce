/**
 * Errors of f32 in halves beside those of f32, both simulated: sums of so many products, 24 x 24 of them. `deno run
 * bench/f16x3_accuracy.ts`; the table is in docs/accuracy.md.
 */
import type { PlanArithmetic } from "../src/problem/plan_arithmetic.ts";
import type { SumSource } from "../src/simulate/sum_source.ts";
import { simulateSums } from "../src/simulate/sums.ts";
import { type FillKind, fillTensor } from "../src/tensor/fill.ts";

const SIDE = 24;
const HALVES: PlanArithmetic = { unit: 16, math: "f16x3", chain: 112 };

function source(units: number, fill: FillKind): SumSource {
  const [a, b] = [1, 2].map((seed) => fillTensor("f32", [units, SIDE], fill, seed).data);
  return {
    units,
    lefts: SIDE,
    rights: SIDE,
    load(unit, lefts, rights) {
      for (let i = 0; i < SIDE; i++) lefts[i] = Number(a![SIDE * unit + i]);
      for (let i = 0; i < SIDE; i++) rights[i] = Number(b![SIDE * unit + i]);
    },
  };
}

function errors(units: number, fill: FillKind, arithmetic: PlanArithmetic) {
  const { values, exact } = simulateSums(source(units, fill), arithmetic);
  const norm = (data: Float64Array) => Math.sqrt(data.reduce((sum, one) => sum + one * one, 0));
  const relative = values.map((value, i) => Math.abs(value / exact[i]! - 1));
  return {
    mare: relative.reduce((sum, one) => sum + one, 0) / relative.length,
    relL2: norm(values.map((value, i) => value - exact[i]!)) / norm(exact),
  };
}

console.log("| products | fill | MARE f16x3 | f32 | rel. L2 f16x3 | f32 |");
for (const fill of ["uniform01", "normal"] as const) {
  for (const units of [32, 96, 128, 256, 1152, 4608]) {
    const [halves, whole] = [errors(units, fill, HALVES), errors(units, fill, {})];
    const cells = [halves.mare, whole.mare, halves.relL2, whole.relL2]
      .map((figure) => figure.toExponential(1));
    console.log(`| ${units} | ${fill} | ${cells.join(" | ")} |`);
  }
}
