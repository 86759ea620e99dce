import assert from "#assert";
import {
  BRIEF_WARM_UP,
  isSteady,
  protocolRepeats,
  protocolSamples,
  type Timed,
  timeRecord,
  timeRivals,
  type TimingProtocol,
} from "./timing.ts";

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

Deno.test("protocolSamples() keeps nine where a spread is to be reached, within a minute", () => {
  const adaptive = { samples: 30, fillMs: 5, spread: 0.01 };
  assert.deepEqual(
    [0.25, 2000, 10_000, 90_000].map((ms) => protocolSamples(adaptive, ms)),
    [30, 9, 6, 1],
  );
  assert.equal(protocolSamples({ ...adaptive, samples: 3 }, 0.25), 3);
});

Deno.test("isSteady() asks for nine samples and a small spread", () => {
  const protocol = { ...BENCH, spread: 0.01 };
  const calm = [1, 1.01, 0.99, 1, 1, 1, 1.005, 1, 3];
  assert.equal(isSteady(calm, protocol), true);
  assert.equal(isSteady(calm.slice(1), protocol), false);
  assert.equal(isSteady(calm, BENCH), false);
  assert.equal(isSteady(calm.map((ms, i) => i % 2 ? ms : 1.1 * ms), protocol), false);
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
  // Within a tick of a browser's clock: readers of records refuse times of nothing.
  assert.equal(timeRecord([0], 1, "timestamp").median, 1e-6);
});

/** Something that takes `ns(calls)` nanoseconds a call, and how long its batches were in ms. */
function fakeTimed(ns: (batch: number) => number) {
  const batches: number[] = [];
  const timed: Timed = {
    copies: 1,
    run({ samples = 1, repeats = 1 }) {
      const each = ns(batches.length);
      batches.push(each * repeats / 1e6);
      return Promise.resolve({ samplesNs: Array(samples).fill(each), clock: "timestamp" });
    },
  };
  return { timed, batches };
}

Deno.test("timeRivals() warms up for as long as it is told, and a few batches more until times are steady", async () => {
  const warmUps = async (ns: (batch: number) => number, protocol: Partial<TimingProtocol>) => {
    const { timed, batches } = fakeTimed(ns);
    await timeRivals(false, [timed], { samples: 5, fillMs: 0, ...protocol });
    // The first call gives an estimate, the last ones are samples.
    return batches.slice(1, -1);
  };
  const brief = { warmUpMs: BRIEF_WARM_UP };
  assert.deepEqual(await warmUps(() => 1e6, {}), [150, 150, 150, 150]);
  assert.deepEqual(await warmUps(() => 1e6, brief), [20, 20, 20]);
  const rising = (batch: number) => batch < 5 ? 4e6 / (batch + 1) : 8e5;
  assert.equal((await warmUps(rising, brief)).length, 5);
  const unsteady = await warmUps((batch) => batch % 2 === 0 ? 1e6 : 2e6, brief);
  const spent = unsteady.reduce((sum, ms) => sum + ms, 0);
  assert.ok(spent >= 300 && spent < 350, String(spent));
});

Deno.test("timeRivals() says where a GPU was warmed up briefly, and nowhere else", async () => {
  const warmUp = async (software: boolean, protocol: Partial<TimingProtocol>) => {
    const { timed } = fakeTimed(() => 1e6);
    const [time] = await timeRivals(software, [timed], { samples: 5, fillMs: 0, ...protocol });
    return time!.warm_up;
  };
  const brief = { warmUpMs: BRIEF_WARM_UP };
  assert.equal(await warmUp(false, brief), "brief");
  assert.equal(await warmUp(true, brief), undefined);
  assert.equal(await warmUp(false, {}), undefined);
});
