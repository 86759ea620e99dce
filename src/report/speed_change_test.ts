import assert from "#assert";
import { parseRecords } from "./read_records.ts";
import { speedChange } from "./speed_change.ts";
import { caseLine, SAMPLES, timeOf } from "../../tests/support/test_records.ts";

const RULE = { threshold: 0.05, margin: 0.02 };
const read = (changes: Record<string, unknown>) =>
  parseRecords(caseLine(changes), "test").cases[0]!;
const change = (
  base: Record<string, unknown>,
  next: Record<string, unknown>,
  rule = RULE,
) => speedChange(read(base), read(next), rule);
const times = (base: unknown, next: unknown) => change({ time_ms: base }, { time_ms: next });
/** Nine samples that reach 20 % to both sides of 1 ms. */
const NOISY = [0.8, 0.86, 0.92, 0.97, 1, 1.02, 1.09, 1.15, 1.2];

Deno.test("speedChange() calls what lies within the margin the same, however sharp the samples", () => {
  const found = times(timeOf(1), timeOf(1.015));
  assert.equal(found.verdict, "SAME");
  assert.ok(found.p! < 0.01);
  assert.ok(Math.abs(found.speedup! - 1 / 1.015) < 1e-12);
  const tight = { threshold: 0.01, margin: 0.02 };
  const beyond = change({ time_ms: timeOf(1) }, { time_ms: timeOf(1.015) }, tight);
  assert.equal(beyond.verdict, "SLOWER");
});

Deno.test("speedChange() is sure where ranks and intervals agree", () => {
  assert.equal(times(timeOf(1), timeOf(1.03)).verdict, "SLOWER");
  assert.equal(times(timeOf(1.03), timeOf(1)).verdict, "FASTER");
  assert.equal(times(timeOf(1), timeOf(3)).reason, undefined);
});

Deno.test("speedChange() takes a small difference within the noise for none", () => {
  const found = times(timeOf(1, NOISY), timeOf(1.04, NOISY));
  assert.equal(found.verdict, "SAME");
  assert.ok(found.p! > 0.01);
});

Deno.test("speedChange() says why it cannot tell", () => {
  const reasons: [base: unknown, next: unknown, reason: RegExp][] = [
    [timeOf(1, NOISY), timeOf(1.1, NOISY), /^the noise intervals overlap: .* to .*, p = 0\.\d+$/],
    [timeOf(1, NOISY), timeOf(1.3, NOISY), /^the noise intervals overlap: [^,]*$/],
    [timeOf(1), { median: 1.2, min: 1.2 }, /^no samples in the new record$/],
    [{ median: 1.2 }, timeOf(1), /^no samples in the base$/],
    [timeOf(1), timeOf(1.2, SAMPLES.slice(0, 2)), /^too few samples to tell: 9 and 2$/],
    [timeOf(1), { ...timeOf(1.2), clock: "wall" }, /^different clocks: timestamp and wall$/],
    [timeOf(1), null, /^the new record has no time$/],
  ];
  for (const [base, next, reason] of reasons) {
    const found = times(base, next);
    assert.equal(found.verdict, "AMBIGUOUS");
    assert.match(found.reason!, reason);
  }
  // Most samples apart, a third of the new ones among the base's.
  const mixed = [0.9, 0.95, 0.99, 1.1, 1.1001, 1.1002, 1.1003, 1.1004, 1.1005];
  const ranks = times(timeOf(1), timeOf(1, mixed));
  assert.equal(ranks.verdict, "AMBIGUOUS");
  assert.match(ranks.reason!, /^the ranks overlap \(p = 0\.\d+\)$/);
  assert.match(change({ cache: "hot" }, { cache: "cold" }).reason!, /^different caches: hot and/);
  assert.equal(change({ cache: "hot" }, {}).verdict, "SAME");
});

Deno.test("speedChange() gives a wrong result no speed", () => {
  const found = change({}, { verdict: "fail", time_ms: timeOf(0.1) });
  assert.deepEqual(found, {
    verdict: "AMBIGUOUS",
    speedup: null,
    p: null,
    reason: "the new record is wrong",
  });
});

Deno.test("clocks of devices are one: timestamps and events around calls of a graph", () => {
  const events = { ...timeOf(1.2), clock: "CUDA events, calls of a graph" };
  assert.equal(times(timeOf(1), events).verdict, "SLOWER");
});
