import assert from "#assert";
import { compareRuns } from "./comparison.ts";
import { haveCasesInCommon, pairCases } from "./pair_cases.ts";
import { parseRecords } from "./read_records.ts";
import { stream, timeOf } from "../../tests/support/test_records.ts";

type Changes = Record<string, unknown>;
const read = (...cases: Changes[]) => parseRecords(stream(...cases), "test").cases;
const shown = (cases: ReturnType<typeof pairCases>) =>
  cases.pairs.map(({ base, next }) => [base.message, next.message]);

Deno.test("pairCases() pairs a case with its like, whatever its name and order", () => {
  const base = read({ message: "a" }, { message: "b", layout: "nhwc" }, { op: "bwd-data" });
  const next = read(
    { message: "B", layout: "nhwc", problem: 'ic4ih8iw8oc4kh3ph1n"else"', kernel: "kernel_z" },
    { message: "A" },
    { dtype: "f16" },
  );
  const pairing = pairCases(base, next, "algorithm");
  assert.deepEqual(shown(pairing), [["a", "A"], ["b", "B"]]);
  assert.deepEqual(pairing.onlyBase.map(({ op }) => op), ["bwd-data"]);
  assert.deepEqual(pairing.onlyNext.map(({ dtype }) => dtype), ["f16"]);
});

Deno.test("pairCases() pairs by kernel where a side has several, and lets algorithms change", () => {
  const kernels = [{ message: "a" }, { message: "b", kernel: "kernel_b" }];
  const swapped = pairCases(read(...kernels), read(...kernels.toReversed()), "algorithm");
  assert.deepEqual(shown(swapped), [["a", "a"], ["b", "b"]]);
  const changed = pairCases(
    read({ message: "a" }, { message: "b", op: "bwd-data" }),
    read({ message: "A", algorithm: "winograd2d" }, { message: "B", op: "bwd-data" }),
    "algorithm",
  );
  assert.deepEqual(shown(changed), [["a", "A"], ["b", "B"]]);
  assert.equal(changed.onlyNext.length, 0);
});

Deno.test("pairCases() by best takes each side's fastest right record", () => {
  const base = read({ message: "slow", provider: "cudnn" }, {
    message: "fast",
    provider: "cudnn",
    layout: "nhwc",
    time_ms: timeOf(0.5),
  });
  const next = read(
    { message: "ours" },
    { message: "wrong", algorithm: "direct", time_ms: timeOf(0.1), verdict: "fail" },
  );
  assert.deepEqual(shown(pairCases(base, next, "best")), [["fast", "ours"]]);
});

Deno.test("compareRuns() by best still finds a rival that became wrong", () => {
  const base = read({}, { algorithm: "direct", time_ms: timeOf(2) });
  const next = read({}, { algorithm: "direct", time_ms: timeOf(2), verdict: "fail" });
  const found = compareRuns(base, next, "best", { threshold: 0.05, margin: 0.02 });
  assert.deepEqual(found.accuracyRegressions.map((one) => one.next.algorithm), ["direct"]);
  assert.equal(found.exitCode, 1);
});

Deno.test("compareRuns() exits 1 on a wrong result that was wrong before, or is new", () => {
  const rule = { threshold: 0.05, margin: 0.02 };
  const fail = { verdict: "fail" };
  const before = compareRuns(read(fail), read(fail), "algorithm", rule);
  assert.deepEqual([before.wrong.length, before.exitCode], [1, 1]);
  const added = compareRuns(read({}), read({}, { ...fail, op: "bwd-data" }), "algorithm", rule);
  assert.deepEqual([added.wrong.map(({ op }) => op), added.exitCode], [["bwd-data"], 1]);
  const righted = compareRuns(read(fail), read({}), "algorithm", rule);
  assert.deepEqual([righted.wrong.length, righted.exitCode], [0, 0]);
});

Deno.test("compareRuns() takes geometric means over each operation and all", () => {
  const base = read({}, { op: "bwd-data" }, { op: "bwd-filter" });
  const next = read({ time_ms: timeOf(0.25) }, { op: "bwd-data" }, {
    op: "bwd-filter",
    time_ms: timeOf(0.5),
  });
  const { summaries, exitCode } = compareRuns(base, next, "algorithm", {
    threshold: 0.05,
    margin: 0.02,
  });
  assert.deepEqual(summaries.map(({ op }) => op), ["fwd", "bwd-data", "bwd-filter", "all"]);
  assert.ok(Math.abs(summaries.at(-1)!.geomean! - 2) < 1e-12);
  assert.deepEqual(summaries.at(-1)!.verdicts, { SAME: 1, FASTER: 2, SLOWER: 0, AMBIGUOUS: 0 });
  assert.equal(exitCode, 0);
});

/** Six problems in two algorithms and two layouts, by a provider. */
const grid = (provider: string, ms = 1) =>
  [1, 2, 3, 4, 5, 6].flatMap((channels) =>
    ["direct", "implicit-gemm"].flatMap((algorithm) =>
      ["nchw", "nhwc"].map((layout) => ({
        ...{ provider, algorithm, layout, problem: `ic${channels}ih8oc4kh3` },
        time_ms: timeOf(algorithm === "direct" ? 2 * ms : ms),
      }))
    )
  );

Deno.test("tags of two runs are no two programs: each case is paired with its like", () => {
  const [before, after] = [read(...grid("before")), read(...grid("after"))];
  assert.ok(haveCasesInCommon(before, after));
  assert.ok(!haveCasesInCommon(before, read({ provider: "cudnn", algorithm: "" })));
  assert.ok(!haveCasesInCommon(read(...grid("a"), ...grid("b")), after));
  const { pairs, uncompared } = pairCases(before, after, "algorithm");
  assert.deepEqual([pairs.length, uncompared.length], [24, 0]);
  for (const { base, next } of pairs) assert.deepEqual({ ...next, provider: "before" }, base);
});

Deno.test("pairCases() gives the reason of every case that is in no pair, once", () => {
  const rule = { threshold: 0.05, margin: 0.02 };
  const [before, after] = [read(...grid("before")), read(...grid("after"))];
  const best = compareRuns(before, after, "best", rule);
  assert.deepEqual([best.cases.length, best.uncompared.length], [6, 36]);
  assert.match(
    best.uncomparedLines[0]!,
    /^18 of 24 cases of the base are not compared \(18: .*best/,
  );
  const base = read(
    {},
    { message: "replaced" },
    { op: "bwd-data" },
    { dtype: "f16", layout: "chwn", filter_layout: "crsk" },
    { problem: "ic1ih8oc4kh3" },
    { device: "another" },
  );
  const found = pairCases(base, read({}, { dtype: "f16" }), "algorithm");
  const met = new Set(found.pairs.map((pair) => pair.base));
  assert.equal(
    met.size + found.uncompared.filter(({ side }) => side === "base").length,
    base.length,
  );
  const reasons = found.uncompared.filter(({ side }) => side === "base").map((one) => one.reason);
  assert.deepEqual(reasons.toSorted(), [
    "a later record of the same case replaces it",
    "the other side does not have the problem",
    "the other side has the problem in another layout",
    "the other side has the problem in another operation",
    "the same side has another record of the case",
  ]);
  const failing = read({ verdict: "fail" }, { algorithm: "direct" }, {
    algorithm: "im2col",
    time_ms: null,
  });
  const one = pairCases(failing, read({}), "best").uncompared.map(({ reason }) => reason);
  assert.deepEqual(one, ["failed the check", "has no time"]);
});
