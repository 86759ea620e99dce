/**
 * Errors of f32 in halves beside those of f32, both simulated: sums of so many products, 24 x 24 of them, and Winograd's tiles summed
 * over so many channels, on units that cut sums off: as planned, without what makes up for their drift, and with high halves rounded to
 * the nearest too. `deno run bench/f16x3_accuracy.ts`; the tables are in docs/accuracy.md.
 */
import { unitChain } from "../src/kernels/matrix_units.ts";
import { splitDrift } from "../src/problem/split_drift.ts";
import type { PlanArithmetic } from "../src/problem/plan_arithmetic.ts";
import type { SumSource } from "../src/simulate/sum_source.ts";
import { simulateSums } from "../src/simulate/sums.ts";
import { tileErrors } from "../src/simulate/tile_errors.ts";
import { type FillKind, fillTensor } from "../src/tensor/fill.ts";

const SIDE = 24;
const HALVES = { unit: 16, math: "f16x3" } as const;

/** Sums of so many products in chains of so many: as planned, and with less and less of what makes up for drift. */
function ways(products: number, chain: number): PlanArithmetic[] {
  const sums = { ...HALVES, chain };
  const { highs, ...drift } = splitDrift(sums, products, true);
  return [
    { ...sums, ...drift, ...(highs && { highs }) },
    { ...sums, ...(highs && { highs }) },
    sums,
  ];
}

/** Sums of data, rounded to f16 where `held` says so. */
function source(units: number, fill: FillKind, held: boolean): SumSource {
  const [a, b] = [1, 2].map((seed) =>
    Array.from(fillTensor("f32", [units, SIDE], fill, seed).data, Number)
      .map((one) => held ? Math.f16round(one) : one)
  );
  return {
    units,
    lefts: SIDE,
    rights: SIDE,
    load(unit, lefts, rights) {
      for (let i = 0; i < SIDE; i++) lefts[i] = a![SIDE * unit + i]!;
      for (let i = 0; i < SIDE; i++) rights[i] = b![SIDE * unit + i]!;
    },
  };
}

function errors(units: number, fill: FillKind, arithmetic: PlanArithmetic, held = false) {
  const { values, exact } = simulateSums(source(units, fill, held), arithmetic);
  const norm = (data: Float64Array) => Math.sqrt(data.reduce((sum, one) => sum + one * one, 0));
  const relative = values.map((value, i) => Math.abs(value / exact[i]! - 1));
  return {
    mare: relative.reduce((sum, one) => sum + one, 0) / relative.length,
    relL2: norm(values.map((value, i) => value - exact[i]!)) / norm(exact),
  };
}

console.log("| products | fill | MARE f32 | f16x3 | rel. L2 f32 | f16x3 | no drift | nearest |");
for (const fill of ["uniform01", "normal"] as const) {
  for (const units of [32, 128, 512, 1152, 4608, 8192]) {
    const chain = unitChain("f32", { split: { products: units, cutsOff: true } })!.length / 2;
    const whole = errors(units, fill, {});
    const halves = ways(units, chain).map((arithmetic) => errors(units, fill, arithmetic));
    const cells = [whole.mare, halves[0]!.mare, whole.relL2, ...halves.map(({ relL2 }) => relL2)]
      .map((figure) => figure.toExponential(1));
    console.log(`| ${units} | ${fill} | ${cells.join(" | ")} |`);
  }
}

console.log("\n| products held by f16, uniform01 | MARE f32 | f16x3 | --flush 112 |");
for (const units of [512, 2048, 8192]) {
  const chain = unitChain("f32", { split: { products: units, cutsOff: true } })!.length / 2;
  const cells = [{}, ways(units, chain)[0]!, ways(units, 112)[0]!]
    .map((arithmetic) => errors(units, "uniform01", arithmetic, true).mare.toExponential(1));
  console.log(`| ${units} | ${cells.join(" | ")} |`);
}

console.log("\n| tile | channels | fill | rel. L2 f32 | f16x3 | no drift | nearest |");
for (
  const [name, n, r] of [["F(2x2,3x3)", 2, 3], ["F(4x4,3x3)", 4, 3], ["F(6x6,3x3)", 6, 3]] as const
) {
  const tile = { n: [n, n], r: [r, r] };
  for (const fill of ["uniform01", "normal"] as const) {
    for (const channels of [32, 128, 512]) {
      const error = (arithmetic: PlanArithmetic) =>
        tileErrors(tile, channels, fill, 1, arithmetic).relL2.toExponential(1);
      const cells = ways(channels, 512).map((one) => error({ ...one, scaled: "tiles" }));
      console.log(`| ${name} | ${channels} | ${fill} | ${[error({}), ...cells].join(" | ")} |`);
    }
  }
}
