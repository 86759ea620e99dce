import assert from "#assert";
import { fastestOf, timeCandidates } from "./time_plans.ts";
import type { Timed } from "./timing.ts";

/** A clock that only what runs moves on. */
function fakeClock() {
  let ms = 0;
  return { now: () => ms, pass: (more: number) => void (ms += more) };
}

/** A candidate of a fake device: how long its compilation and a run take, in ms. */
function candidate(
  clock: ReturnType<typeof fakeClock>,
  { compile = 0, run, failsAt = Infinity }: { compile?: number; run: number; failsAt?: number },
) {
  let runs = 0;
  const timed: Timed = {
    copies: 1,
    run({ repeats = 1, samples = 1, warmup = 0 }) {
      if (++runs > failsAt) return Promise.reject(new Error("the device was lost"));
      clock.pass((repeats * samples + warmup) * run);
      return Promise.resolve({ samplesNs: Array(samples).fill(run * 1e6), clock: "timestamp" });
    },
  };
  return {
    make: () => {
      clock.pass(compile);
      return Promise.resolve(timed);
    },
    runs: () => runs,
  };
}

/** The medians that are found of candidates within a budget. */
async function medians(
  budgetMs: number,
  ...candidates: readonly Parameters<typeof candidate>[1][]
): Promise<(number | undefined)[]> {
  const clock = fakeClock();
  const makes = candidates.map((one) => candidate(clock, one).make);
  const times = await timeCandidates(makes, budgetMs, clock.now);
  return times.map((time) => time?.median);
}

Deno.test("timeCandidates() times all that are ready within the budget", async () => {
  assert.deepEqual(await medians(1000, { run: 3 }, { run: 2 }, { run: 4 }), [3, 2, 4]);
});

Deno.test("timeCandidates() ends with what it has where a compilation outlasts the budget", async () => {
  const slow = { compile: 900, run: 2 };
  assert.deepEqual(await medians(1000, { run: 3 }, slow, slow), [3, 2, undefined]);
  assert.deepEqual(await medians(1000, { compile: 2000, run: 3 }, { run: 2 }), [
    undefined,
    undefined,
  ]);
  assert.deepEqual(await medians(0, { run: 3 }), [undefined]);
});

Deno.test("timeCandidates() gives up what never becomes ready, when the budget is over", async () => {
  const clock = fakeClock();
  const { make } = candidate(clock, { run: 1 });
  const never = () => new Promise<Timed>(() => {});
  const times = await timeCandidates([make, never, make], 30, clock.now);
  assert.deepEqual(times.map((time) => time?.median), [1, undefined, undefined]);
});

Deno.test("timeCandidates() leaves out what fails to compile, to fit or to run, at whichever run", async () => {
  const clock = fakeClock();
  const [good, early, late] = [
    candidate(clock, { run: 2 }),
    candidate(clock, { run: 1, failsAt: 0 }),
    candidate(clock, { run: 1, failsAt: 3 }),
  ];
  const makes = [
    () => Promise.reject(new Error("it does not compile")),
    () => Promise.resolve("it takes more memory than there is"),
    ...[early, late, good].map(({ make }) => make),
  ];
  const times = await timeCandidates(makes, 1000, clock.now);
  assert.deepEqual(times.map((time) => time?.median), [
    ...[undefined, undefined, undefined, undefined],
    2,
  ]);
});

Deno.test("timeCandidates() runs what is hopeless but once, and begins no round that it cannot end", async () => {
  const clock = fakeClock();
  const [fast, slow] = [candidate(clock, { run: 10 }), candidate(clock, { run: 200 })];
  await timeCandidates([fast.make, slow.make], 5000, clock.now);
  assert.equal(slow.runs(), 1);
  const [one, two] = [candidate(clock, { run: 100 }), candidate(clock, { run: 110 })];
  const start = clock.now();
  await timeCandidates([one.make, two.make], 1000, clock.now);
  assert.ok(one.runs() === two.runs() && clock.now() - start <= 1000, `${clock.now() - start}`);
});

Deno.test("fastestOf() is the place of the least time", () => {
  const time = (median: number) => ({
    ...{ median, min: median, mad: 0, samples: [median], repeats: 1, clock: "wall" },
  });
  assert.equal(fastestOf([undefined, time(3), time(2), time(2)]), 2);
  assert.equal(fastestOf([undefined]), undefined);
});
