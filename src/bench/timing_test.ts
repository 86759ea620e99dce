import assert from "#assert";
import { protocolRepeats, protocolSamples, timeRecord } from "./timing.ts";

const BENCH = { samples: 15, fillMs: 5 };

Deno.test("protocolRepeats() fills the sample's time", () => {
  assert.equal(protocolRepeats(BENCH, 0.25), 20);
  assert.equal(protocolRepeats(BENCH, 7), 1);
  assert.equal(protocolRepeats({ samples: 5, fillMs: 0 }, 0.001), 1);
});

Deno.test("protocolSamples() takes fewer samples of what is slow, never none", () => {
  assert.equal(protocolSamples(BENCH, 0.25), 15);
  assert.equal(protocolSamples(BENCH, 2000), 5);
  assert.equal(protocolSamples(BENCH, 60_000), 1);
});

Deno.test("timeRecord() turns nanoseconds to milliseconds", () => {
  const record = timeRecord([3e6, 1e6, 2e6], 4, "timestamp");
  assert.deepEqual(record, {
    median: 2,
    min: 1,
    mad: 1,
    samples: [3, 1, 2],
    repeats: 4,
    clock: "timestamp",
  });
});
