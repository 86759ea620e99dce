import assert from "#assert";
import { accuracyChange } from "./comparison.ts";
import { parseRecords } from "./read_records.ts";
import { ACCURACY, caseLine } from "../../tests/support/test_records.ts";

type Changes = Record<string, unknown>;
const read = (changes: Changes) => parseRecords(caseLine(changes), "test").cases[0]!;
const change = (base: Changes, next: Changes) => accuracyChange(read(base), read(next));
const figures = (changes: Changes) => ({ accuracy: { ...ACCURACY, ...changes } });

Deno.test("accuracyChange() finds what was right and is wrong now", () => {
  assert.deepEqual(change({}, { verdict: "fail", message: "channel 3" }), {
    verdict: "regression",
    reason: "pass became fail: channel 3",
  });
  const blind = { verdict: "none", message: "every output is NaN" };
  assert.deepEqual(change({}, blind), {
    verdict: "regression",
    reason: "pass became not checked: every output is NaN",
  });
  assert.equal(change({}, { verdict: "none", accuracy: null }).verdict, "unknown");
  assert.equal(change(blind, blind).verdict, "unknown");
  const lost = { verdict: "error", accuracy: null };
  assert.equal(change({}, lost).reason, "pass became error");
  assert.equal(change({ verdict: "none" }, lost).verdict, "regression");
  assert.equal(change({ verdict: "fail" }, lost).verdict, "failing");
  assert.equal(change({ verdict: "fail" }, {}).verdict, "same");
});

Deno.test("accuracyChange() holds figures to 1.5 times the base's and the stricter limit", () => {
  assert.equal(change({}, {}).verdict, "same");
  assert.equal(change({}, figures({ rel_l2: 1.5e-7 })).verdict, "same");
  const worse = change({}, figures({ rel_l2: 1.6e-7 }));
  assert.deepEqual(worse, {
    verdict: "worse",
    reason: "relative L2 1.60e-7, was 1.00e-7, 1.00e-6 allowed",
  });
  const beyond = change({}, figures({ max_bound_ratio: 49, bound_limit: 1000 }));
  assert.deepEqual(beyond, {
    verdict: "regression",
    reason: "bound ratio 49.00, was 10.00, 48.00 allowed",
  });
  // Beyond the limit, but the base was as bad.
  const bad = figures({ rel_l2: 2e-6 });
  assert.equal(change({ ...bad, verdict: "fail" }, { ...bad, verdict: "fail" }).verdict, "failing");
});

Deno.test("accuracyChange() compares no figures of different data, and none of a peer", () => {
  const other = { ...figures({ rel_l2: 1 }), fill: "normal" };
  assert.equal(change({}, other).verdict, "same");
  const peer = { verdict: undefined, accuracy: { mare: 1e-7 }, fill: undefined, seed: undefined };
  assert.equal(change(peer, {}).verdict, "unknown");
});
