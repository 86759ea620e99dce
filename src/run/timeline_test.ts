import assert from "#assert";
import { timeline } from "./timeline.ts";

/** A clock that the test moves. */
function handClock(start: number) {
  let now = start;
  return { now: () => now, pass: (ms: number) => void (now += ms) };
}

Deno.test("timeline() tells how long parts took, and how long alone", async () => {
  const clock = handClock(100);
  const { during, timings } = timeline(clock.now);
  clock.pass(5);
  assert.equal(during("plan", () => (clock.pass(20), "planned")), "planned");
  const reading = Promise.withResolvers<string>();
  const read = during("read", () => reading.promise);
  clock.pass(10);
  during("pipelines", () => clock.pass(30));
  clock.pass(40);
  reading.resolve("data");
  assert.equal(await read, "data");
  during("plan", () => clock.pass(1.23456));
  clock.pass(3);
  assert.deepEqual(timings(), {
    parts: [
      { part: "modules", start_ms: 0, ms: 100, alone_ms: 100 },
      { part: "plan", start_ms: 105, ms: 21.23, alone_ms: 21.23 },
      { part: "read", start_ms: 125, ms: 80, alone_ms: 50 },
      { part: "pipelines", start_ms: 135, ms: 30, alone_ms: 0 },
    ],
    overlap_ms: 30,
    other_ms: 8,
    total_ms: 209.2,
  });
});

Deno.test("timeline(): a part that fails ends, one that goes on is told as far as it is, and counts once beside itself", async () => {
  const clock = handClock(10);
  const { during, timings } = timeline(clock.now);
  assert.throws(() =>
    during("files", () => {
      clock.pass(2);
      throw new TypeError("no file");
    }), /no file/);
  await assert.rejects(during("device", async () => {
    clock.pass(3);
    await Promise.reject(new Error("no device"));
  }));
  during("reference", () => new Promise(() => {}));
  clock.pass(4);
  during("reference", () => clock.pass(6));
  const { parts, overlap_ms, other_ms, total_ms } = timings();
  assert.deepEqual(parts.map(({ part, ms, alone_ms }) => [part, ms, alone_ms]), [
    ["modules", 10, 10],
    ["files", 2, 2],
    ["device", 3, 3],
    ["reference", 10, 10],
  ]);
  assert.deepEqual([overlap_ms, other_ms, total_ms], [0, 0, 25]);
});
