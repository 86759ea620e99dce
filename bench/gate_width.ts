/**
 * How wide the gate is: what it allows over what simulated arithmetic typically shows, for every algorithm and tile.
 *
 *   deno run -A bench/gate_width.ts [pattern]
 *
 * Problems of 64 channels. Of five kinds of data the widest and the narrowest: the limit of a single output over the
 * 99.9th percentile of simulated errors, the limits of relative L2 and of a channel's RMS over the simulated ones; and the
 * typical relative L2 error itself, of uniform01 and of normal data. Then the same of all tiles with the same r.
 */
import { rmsLimit, typicalRms } from "../src/accuracy/mod.ts";
import { convProblem, type Operation } from "../src/problem/conv_problem.ts";
import type { PlanArithmetic } from "../src/problem/plan_arithmetic.ts";
import { markdownTable } from "../src/report/table.ts";
import { healthyResult, judgeCase, simulatedCase } from "../tests/support/simulated_cases.ts";
import type { FillKind } from "../src/tensor/fill.ts";
import { MAX_ALPHA } from "../src/winograd/points.ts";

const FILLS: readonly FillKind[] = ["uniform01", "normal", "constant", "outliers", "mixed"];

interface Row {
  readonly name: string;
  /** Rows that are summed up together. */
  readonly family: string;
  readonly op: Operation;
  readonly filter: readonly number[];
  readonly size: readonly number[];
  readonly arithmetic: PlanArithmetic;
}

function* rowsToShow(): Generator<Row> {
  const sums: readonly (readonly [string, PlanArithmetic])[] = [
    ["sums", {}],
    ["sums, split by 4", { chain: 144, segment: 144 }],
    ["sums, flushed every 128", { chain: 128 }],
  ];
  for (const op of ["fwd", "bwd-data", "bwd-filter"] as const) {
    for (const [name, arithmetic] of sums) {
      yield { name, family: name, op, filter: [3, 3], size: [12, 12], arithmetic };
    }
  }
  for (let r = 2; r <= 9; r++) {
    for (let n = 2; n + r - 1 <= MAX_ALPHA; n++) {
      const tile = { n, r };
      const size = Math.max(n, r) + 2;
      yield {
        name: `F(${n},${r})`,
        family: `F(n,${r})`,
        op: "fwd",
        filter: [1, r],
        size: [2, size],
        arithmetic: { tiles: [{ axes: [{ n: 1, r: 1 }, tile] }] },
      };
      yield {
        name: `WinRS (${n},${r})`,
        family: `WinRS (n,${r})`,
        op: "bwd-filter",
        filter: [1, n],
        size: [2, 2 * r + n],
        arithmetic: {
          fold: "results",
          chain: 64,
          segment: 64,
          tiles: [{ axes: [{ n: 1, r: 1 }, tile] }],
        },
      };
      if (n + r - 1 > 10) continue;
      yield {
        name: `F(${n}x${n},${r}x${r})`,
        family: `F(nxn,${r}x${r})`,
        op: "fwd",
        filter: [r, r],
        size: [size, size],
        arithmetic: { tiles: [{ axes: [tile, tile] }] },
      };
    }
  }
}

const pattern = new RegExp(Deno.args[0] ?? "");
const right = "right" as const;
const range = (values: readonly number[]) => {
  const shown = values.filter((value) => value > 0 && value < Infinity);
  return `${Math.min(...shown).toFixed(1)} – ${Math.max(...shown).toFixed(1)}`;
};
const rows: string[][] = [];
let [single, l2, group] = [0, 0, 0];
const families = new Map<
  string,
  { tiles: number; single: number[]; l2: number[]; group: number[] }
>();
for (const { name, family, op, filter, size, arithmetic } of rowsToShow()) {
  if (!pattern.test(`${name} ${op}`)) continue;
  const figures = FILLS.map((fill) => {
    const problem = convProblem({
      op,
      batch: 2,
      inChannels: op === "bwd-filter" ? 4 : 64,
      outChannels: op === "bwd-data" ? 64 : 4,
      inputSize: size,
      filterSize: filter,
      paddingBegin: filter.map((taps) => taps >> 1),
    });
    const given = simulatedCase(problem, arithmetic, fill);
    const { result, reference } = healthyResult(given, { separate: true });
    const judged = judgeCase(given, result, reference);
    const { sample } = given.yardstick();
    const typical = (count: number) => typicalRms(sample, count);
    return {
      verdict: judged.verdict,
      single: judged.bound_limit / judged.bound_typical,
      l2: judged.rel_l2_limit / judged.rel_l2_typical / typical(judged.measured.effective),
      group: rmsLimit(sample, 1024) / typical(1024),
      error: judged.rel_l2_typical,
    };
  });
  single = Math.max(single, ...figures.map((one) => one.single).filter(Number.isFinite));
  l2 = Math.max(l2, ...figures.map((one) => one.l2).filter(Number.isFinite));
  group = Math.max(group, ...figures.map((one) => one.group));
  const sum = families.get(family) ?? { tiles: 0, single: [], l2: [], group: [] };
  families.set(family, sum);
  sum.tiles++;
  for (const one of figures) {
    sum.single.push(one.single);
    sum.l2.push(one.l2);
    sum.group.push(one.group);
  }
  rows.push([
    name,
    op,
    range(figures.map((one) => one.single)),
    range(figures.map((one) => one.l2)),
    range(figures.map((one) => one.group)),
    figures[0]!.error.toExponential(1),
    figures[1]!.error.toExponential(1),
    figures.every(({ verdict }) => verdict === "pass")
      ? ""
      : figures.map(({ verdict }, i) => verdict === "pass" ? "" : FILLS[i]).filter(Boolean).join(),
  ]);
}
console.log(markdownTable([
  { title: "sums" },
  { title: "op" },
  { title: "single output", align: right },
  { title: "relative L2", align: right },
  { title: "channel", align: right },
  { title: "typical L2, uniform01", align: right },
  { title: "normal", align: right },
  { title: "fails the ceiling" },
], rows));
console.log(markdownTable(
  [
    { title: "sums" },
    { title: "ways", align: right },
    { title: "single output", align: right },
    { title: "relative L2", align: right },
    { title: "channel", align: right },
  ],
  [...families].map(([family, sum]) => [
    family,
    `${sum.tiles}`,
    range(sum.single),
    range(sum.l2),
    range(sum.group),
  ]),
));
console.log(
  `largest: single output ${single.toFixed(2)}, relative L2 ${l2.toFixed(2)}, ` +
    `channel ${group.toFixed(2)} times the typical`,
);
