import assert from "#assert";
import { changedRuns, collectHistory, type History, relativeSpeeds } from "./history.ts";
import { historyText } from "./history_views.ts";
import { eachRecord } from "./read_records.ts";
import { ACCURACY, caseLine, ENVIRONMENT, timeOf } from "../../tests/support/test_records.ts";

type Changes = Record<string, unknown>;

/** A file of a run: its environment, then its cases. */
const run = (environment: Changes, ...cases: Changes[]) =>
  [JSON.stringify({ ...ENVIRONMENT, ...environment }), ...cases.map(caseLine)].join("\n") + "\n";

function historyOf(...files: string[]): History {
  const collector = collectHistory({ peak: 10 });
  files.forEach((text, i) => collector.add(eachRecord(text, `${i}.jsonl`), `${i}.jsonl`));
  return collector.end({ threshold: 0.05, margin: 0.02 });
}

const day = (i: number) => `2026-01-${String(i + 1).padStart(2, "0")}T00:00:00Z`;
/** A run a day of one case with these times. */
const times = (...all: number[]) =>
  historyOf(...all.map((ms, i) => run({ date: day(i) }, { time_ms: timeOf(ms) })));

const changes = ({ cases, runs }: History) =>
  cases.flatMap((one) =>
    one.changes.map(({ kind, after, stands }) => [kind, runs[after.run]!.date.slice(8, 10), stands])
  );

Deno.test("a level shift is found in the run that did it, and ends where it is undone", () => {
  assert.deepEqual(changes(times(1, 1.01, 1.2, 1.21, 1.2)), [["SLOWER", "03", true]]);
  assert.deepEqual(changes(times(1, 1.2, 1.2, 1, 1)), [
    ["SLOWER", "02", false],
    ["FASTER", "04", true],
  ]);
  assert.deepEqual(changes(times(1, 1, 1.3)), [["SLOWER", "03", true]]);
});

Deno.test("one run that differs is noise; small steps add up", () => {
  const spike = times(1, 1, 1.5, 1, 1);
  assert.deepEqual(changes(spike), []);
  assert.equal(spike.cases[0]!.passing, 1);
  assert.deepEqual(changes(times(1, 1.02, 1.04, 1.06, 1.08)), [["SLOWER", "04", true]]);
});

Deno.test("wrong results are found at once, also beyond a limit, and when they are right again", () => {
  const fail = { verdict: "fail", message: "channel 3" };
  const worse = { accuracy: { ...ACCURACY, rel_l2: 2e-6 } };
  const error = { verdict: "error", time_ms: null, accuracy: null };
  const all = [{}, fail, fail, {}, worse, worse, error];
  const history = historyOf(...all.map((changes, i) => run({ date: day(i) }, changes)));
  assert.deepEqual(changes(history), [
    ["WRONG", "02", false],
    ["RIGHT", "04", false],
    ["WRONG", "05", false],
    ["WRONG", "07", true],
  ]);
  assert.deepEqual(changedRuns(history).map(({ run }) => run), [1, 3, 4, 6]);
});

Deno.test("runs are named by tags, joined by them and ordered by date; devices stand apart", () => {
  const commit = (name: string, i: number, ...cases: Changes[]) =>
    run({ date: day(i), tags: { commit: name } }, ...cases);
  const history = historyOf(
    commit("b", 1, { time_ms: timeOf(2) }),
    commit("a", 0, {}),
    commit("b", 1, { op: "bwd-data" }, { device: "another", time_ms: timeOf(9) }),
    caseLine({ message: "of a peer, without a date" }),
    run({ date: "soon", tags: { branch: "x", by: "me" } }, { op: "bwd-filter" }),
  );
  assert.deepEqual(history.runs.map(({ label }) => label), [
    "3.jsonl",
    "branch=x, by=me",
    "a",
    "b",
  ]);
  assert.deepEqual(
    history.cases.map(({ record, points }) => [record.op, record.device, points.length]),
    [["fwd", "", 1], ["bwd-filter", "TestGPU", 1], ["fwd", "TestGPU", 2], [
      "bwd-data",
      "TestGPU",
      1,
    ], ["fwd", "another", 1]],
  );
  assert.deepEqual(changes(history), [["SLOWER", "02", true]]);
});

Deno.test("times of another clock begin anew; what else changed is named", () => {
  const wall = { ...timeOf(3), clock: "wall" };
  const history = historyOf(
    run({ date: day(0) }, {}),
    run({ date: day(1) }, { time_ms: wall }),
    run({ date: day(2), driver: "2" }, { time_ms: { ...timeOf(6), clock: "wall" } }),
  );
  assert.deepEqual(changes(history), [["SLOWER", "03", true]]);
  assert.deepEqual(changedRuns(history)[0]!.differences, ["driver 1 -> 2"]);
});

Deno.test("speeds are those over cases' first runs", () => {
  const second = { op: "bwd-data" };
  const { cases } = historyOf(
    run({ date: day(0) }, {}),
    run({ date: day(1) }, { time_ms: timeOf(2) }, second),
    run({ date: day(2) }, { time_ms: timeOf(2) }, { ...second, time_ms: timeOf(2) }),
  );
  assert.deepEqual(relativeSpeeds(cases).map(({ speed }) => Math.round(100 * speed)), [
    100,
    71,
    50,
  ]);
});

Deno.test("historyText() names runs, standing regressions and what it cannot tell", () => {
  const few = { op: "bwd-data", time_ms: timeOf(1, [1, 1.01]) };
  const text = historyText(
    historyOf(run({ date: day(0) }, {}, few), run({ date: day(1) }, { time_ms: timeOf(1.5) })),
    (cell) => cell,
  );
  assert.match(text, /^2 runs of 2 cases on TestGPU, 2026-01-01 to 2026-01-02$/m);
  assert.match(text, /^2026-01-02 00:00:00 +2026-01-02 +1 +0 +0 +0 +-$/m);
  assert.match(text, /^LayerN2 +fwd .* SLOWER by 50 % +2026-01-02 00:00:00 +1.000 ms +1.500 ms /m);
  assert.match(text, /^at the last run: 1 case slower than before, 0 wrong$/m);
  assert.match(text, /^1 case not in the last run$/m);
  assert.match(text, /^1 case with fewer than 5 samples a run/m);
});
