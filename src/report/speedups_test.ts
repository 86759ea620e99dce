import assert from "#assert";
import { caseFields, timeOf } from "../../tests/support/test_records.ts";
import { errorHistograms } from "./charts/errors.ts";
import { chartPoints } from "./charts/points.ts";
import { speedupChart } from "./charts/speedup.ts";
import { headlines, verdictLine } from "./page.ts";
import { CaseSchema, readRecord } from "./record_schema.ts";
import { compareRuns } from "./comparison.ts";
import { USUAL_MARGIN, USUAL_THRESHOLD } from "./speed_change.ts";
import { pairedText, type Speedups, speedupsOf, speedupText, usualBaselines } from "./speedups.ts";

const problem = (layer: number) => `mb2ic4ih8oc${4 * layer}kh3ph1n"Layer${layer}N2"`;
const read = (changes: Record<string, unknown>) =>
  readRecord(CaseSchema, caseFields(changes), "test");
const peer = { provider: "cudnn", algorithm: "", verdict: undefined };
const NOISY = [0.8, 0.9, 1, 1.1, 1.2];
/** Layer 1 twice as fast, 2 half as fast, 3 as fast within the margin, 4 without samples, 5 within its noise. */
const CASES = [
  ...[[1, 1, 2], [2, 2, 1], [3, 1, 1.01]].flatMap(([layer, ours, theirs]) => [
    read({ problem: problem(layer!), time_ms: timeOf(ours!) }),
    read({ ...peer, problem: problem(layer!), time_ms: timeOf(theirs!) }),
  ]),
  read({ problem: problem(4), time_ms: timeOf(1, []) }),
  read({ ...peer, problem: problem(4), time_ms: timeOf(4, []) }),
  read({ problem: problem(5), time_ms: timeOf(1, NOISY) }),
  read({ ...peer, problem: problem(5), time_ms: timeOf(0.9, NOISY) }),
];

Deno.test("speedupsOf() pairs the best of each and weighs their noise", () => {
  const points = chartPoints(CASES);
  const [found, ...others] = speedupsOf(points, usualBaselines(points));
  assert.equal(others.length, 0);
  assert.deepEqual([found!.provider, found!.baseline, found!.facet], [
    "wgconv",
    "cudnn",
    "fwd, f32",
  ]);
  const cases = found!.cases;
  assert.deepEqual(cases.map(({ change }) => change), [
    "faster",
    "slower",
    "same",
    "ambiguous",
    "ambiguous",
  ]);
  for (const { ratio, noise: [low, high] } of cases) assert.ok(low <= ratio && ratio <= high);
  assert.ok(cases[0]!.noise[1] > cases[0]!.noise[0]);
  assert.deepEqual(cases[3]!.noise, [cases[3]!.ratio, cases[3]!.ratio]);
  assert.equal(speedupText(cases), "1.29 x, 1 of 5 slower, 2 ambiguous");
  assert.equal(pairedText([found!]), "of the best of each");
  const runs = chartPoints([read({}), read({ provider: "wgconv-next" })]);
  assert.equal(pairedText(speedupsOf(runs, ["wgconv"])), "of like cases");
});

Deno.test("speedupsOf() keeps another way to multiply apart", () => {
  const product = { op: "gemm", problem: "64 64 64", algorithm: "gemm" };
  const points = chartPoints([
    read({ ...product, time_ms: timeOf(2) }),
    read({ ...product, math: "f16x3", time_ms: timeOf(0.5) }),
    read({ ...peer, ...product, provider: "cublas", time_ms: timeOf(1) }),
  ]);
  const found = speedupsOf(points, usualBaselines(points));
  assert.deepEqual(found.map(({ provider, cases }) => [provider, cases[0]!.ratio]), [
    ["wgconv", 0.5],
    ["wgconv f16x3", 2],
  ]);
});

Deno.test("one device by several spellings is one", () => {
  const found = speedupsOf(
    chartPoints([
      read({ device: "nvidia-h200" }),
      read({ ...peer, device: "NVIDIA H200" }),
      read({ ...peer, device: "NVIDIA H100 80GB HBM3" }),
    ]),
    ["cudnn"],
  );
  assert.deepEqual(found.map(({ facet }) => facet), ["fwd, f32, NVIDIA H200"]);
});

Deno.test("the headline is the speed-up, or the rate where there is nothing to compare with", () => {
  const points = chartPoints(CASES);
  const speedups = speedupsOf(points, ["cudnn"]);
  assert.equal(headlines(points, speedups)[0]!.large, "1.29 x, 1 of 5 slower, 2 ambiguous");
  const both = CASES.concat(
    read({ op: "bwd-data" }),
    read({ ...peer, op: "bwd-data", time_ms: timeOf(2) }),
  );
  const more = speedupsOf(chartPoints(both), ["cudnn"]);
  const [{ large, small }] = headlines(chartPoints(both), more) as [
    { large: string; small: string[] },
  ];
  assert.equal(large, "1.39 x, 1 of 6 slower, 2 ambiguous");
  assert.deepEqual(small.slice(1), [
    "fwd, f32: 1.29 x, 1 of 5 slower, 2 ambiguous",
    "bwd-data, f32: 2.00 x, 0 of 1 slower",
  ]);
  const alone = chartPoints(CASES.slice(0, 1));
  assert.match(headlines(alone, [])[0]!.large, /^\d\.\d+ GFLOP\/s$/);
  assert.deepEqual(headlines(chartPoints([read({ time_ms: null, gflops: null })]), []), []);
});

Deno.test("verdictLine() counts what passed, failed, did not run and was not checked", () => {
  assert.equal(verdictLine(CASES), "5 of 5 checked results pass, 5 without a verdict");
  const wrong = [read({ verdict: "fail" }), read({ verdict: "error", time_ms: null })];
  assert.equal(verdictLine(wrong), "0 of 1 checked results pass, 1 fail, 1 did not run");
});

/** Marks of a chart that show noise, and their data. */
function noiseOf(spec: unknown) {
  const { layer, data } = spec as {
    layer: { mark: { type: string; description?: string }; encoding: Record<string, unknown> }[];
    data: { values: { low: number; high: number }[] };
  };
  const marks = layer.filter(({ mark }) => mark.description === "noise");
  return { marks, values: data.values };
}

Deno.test("speed-ups have error bars", () => {
  const [chart] = speedupsOf(chartPoints(CASES), ["cudnn"]).map(speedupChart);
  const { marks, values } = noiseOf(chart!.spec);
  assert.equal(marks.length, 1);
  assert.equal(marks[0]!.mark.type, "rule");
  assert.deepEqual(Object.keys(marks[0]!.encoding).slice(0, 2), ["x", "x2"]);
  assert.ok(values.some(({ low, high }) => high > low));
});

Deno.test("histograms stack their series", () => {
  const points = chartPoints(CASES.map((record) => ({ ...record, verdict: "pass" as const })));
  const [mare] = errorHistograms(points, ["wgconv implicit-gemm", "cudnn"]);
  const { values } = (mare!.spec as { data: { values: unknown } }).data as {
    values: { series: string; from: number; to: number }[];
  };
  assert.deepEqual(values.map(({ series, from, to }) => [series, from, to]), [
    ["wgconv implicit-gemm", 0, 5],
    ["cudnn", 5, 10],
  ]);
});

Deno.test("a page counts as slower what compare does, case by case", () => {
  const jitter = [0.96, 0.97, 0.98, 0.99, 1, 1.01, 1.02, 1.03, 1.04];
  const ratios = [0.5, 0.97, 0.99, 1, 1.015, 1.03, 1.04, 1.2, 2];
  const cases = [undefined, [], [1, 1], jitter].flatMap((samples, set) =>
    ratios.flatMap((ratio, layer) => {
      const made = { problem: problem(1 + layer + 20 * set) };
      return [
        read({ ...made, time_ms: timeOf(ratio, samples) }),
        read({ ...made, ...peer, time_ms: { ...timeOf(1, samples), clock: "CUDA events" } }),
        read({ ...made, provider: "other", time_ms: timeOf(1, samples) }),
      ];
    })
  );
  for (const baseline of ["cudnn", "other"]) {
    const [{ cases: found }] = speedupsOf(chartPoints(cases), [baseline]).filter(({ provider }) =>
      provider === "wgconv"
    ) as [Speedups];
    const compared = compareRuns(
      cases.filter(({ provider }) => provider === baseline),
      cases.filter(({ provider }) => provider === "wgconv"),
      "best",
      { threshold: USUAL_THRESHOLD, margin: USUAL_MARGIN },
    ).cases;
    assert.deepEqual(
      found.map(({ change }) => change.toUpperCase()),
      compared.map(({ speed }) => speed.verdict),
    );
    assert.ok(new Set(found.map(({ change }) => change)).size > (baseline === "other" ? 3 : 0));
  }
});

Deno.test("speed-ups of a tagged run are over the same algorithm, as compare pairs them", () => {
  const times = { direct: [4, 6], gemm: [1, 1] } as const;
  const runs = ["before", "after"].map((provider, run) =>
    Object.entries(times).map(([algorithm, ms]) =>
      read({ provider, algorithm, requested: algorithm, time_ms: timeOf(ms[run]!) })
    )
  );
  const [found] = speedupsOf(chartPoints(runs.flat()), ["before"]);
  assert.deepEqual(found!.cases.map(({ change }) => change).sort(), ["same", "slower"]);
});
