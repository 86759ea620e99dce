import assert from "#assert";
import { axisNumber, fittingUnit, logDomain, logTicks, RATE_UNITS, tickedAxis } from "./theme.ts";

Deno.test("fittingUnit() is the one that most values have at least one of", () => {
  assert.equal(fittingUnit([62_000, 88_000], RATE_UNITS).name, "TFLOP/s");
  assert.equal(fittingUnit([0.4, 1.5, 2.1], RATE_UNITS).name, "GFLOP/s");
  assert.equal(fittingUnit([0.04, 0.05, 3.1], RATE_UNITS).name, "GFLOP/s");
  assert.equal(fittingUnit([0], RATE_UNITS).name, "GFLOP/s");
});

Deno.test("logTicks() has three ticks or more in every range, as far apart as labels need", () => {
  for (const low of [1.37e-9, 0.0042, 0.97, 61, 8.3e4]) {
    for (const span of [1.01, 1.2, 1.5, 2, 3, 5, 10, 31, 100, 1e3, 1e5, 1e9]) {
      const high = low * span;
      const ticks = logTicks(low, high, axisNumber);
      assert.ok(ticks.length >= 3, `${low} to ${high}: ${ticks.length}`);
      ticks.forEach(({ value, label }, i) => {
        assert.ok(value >= low && value <= high, `${value} is not in ${low} to ${high}`);
        if (i === 0) return;
        const gap = Math.log(value / ticks[i - 1]!.value) / Math.log(span);
        assert.ok(gap > 0.08, `${low} to ${high}: ${label} is ${gap} behind the last`);
        assert.notEqual(label, ticks[i - 1]!.label);
      });
    }
  }
  const labels = (low: number, high: number) =>
    logTicks(low, high, axisNumber).map(({ label }) => label).join(" ");
  assert.equal(labels(1, 10), "1 2 3 5 7 10");
  assert.equal(labels(1, 1e4), "1 3 10 30 100 300 1000 3000 10k");
  assert.equal(labels(1e-9, 1), "1e-9 1e-8 1e-7 1e-6 1e-5 1e-4 1e-3 0.01 0.1 1");
});

Deno.test("logDomain() leaves air and is never narrower than asked", () => {
  const [low, high] = logDomain([5], 10);
  assert.ok(Math.abs(high / low - 10) < 1e-9);
  assert.ok(low < 5 && high > 5);
  assert.deepEqual(logDomain([1, 100], 10, 2), [0.5, 200]);
});

Deno.test("tickedAxis() looks its labels up by value", () => {
  const { param, axis } = tickedAxis("names", [{ value: 1e-7, label: "tiny" }, {
    value: 6.5,
    label: ["two", "lines"],
  }]);
  assert.deepEqual(axis.values, [1e-7, 6.5]);
  assert.equal(axis.labelExpr, "names[datum.value]");
  assert.deepEqual(param, { name: "names", value: { "1e-7": "tiny", "6.5": ["two", "lines"] } });
});

Deno.test("axisNumber() is short", () => {
  const values = [0, 1e-7, 0.015, 0.5, 20, 300, 5000, 20_000, 1e6];
  const texts = ["0", "1e-7", "0.015", "0.5", "20", "300", "5000", "20k", "1M"];
  assert.deepEqual(values.map(axisNumber), texts);
});
