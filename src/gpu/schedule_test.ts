import assert from "#assert";
import { schedule } from "./schedule.ts";

Deno.test("schedule() without an estimate makes one pass and one submission a sample", () => {
  assert.deepEqual(schedule(2, 3, undefined, 256), [[
    [{ sample: 0, from: 0, runs: 3 }],
    [{ sample: 1, from: 3, runs: 3 }],
  ]]);
});

Deno.test("schedule() puts quick samples into one submission", () => {
  const batches = schedule(10, 100, 1000, 256);
  assert.equal(batches.length, 1);
  assert.deepEqual(batches[0]?.map((passes) => passes.length), [10]);
});

Deno.test("schedule() splits a long sample over submissions and loses no run", () => {
  const passes = schedule(2, 7, 100e6, 256).flat();
  assert.deepEqual(passes.map((submission) => submission.map(({ runs }) => runs)), [
    [2],
    [2],
    [2],
    [1],
    [2],
    [2],
    [2],
    [1],
  ]);
  assert.deepEqual(passes.flat().map(({ from }) => from), [0, 2, 4, 6, 7, 9, 11, 13]);
});

Deno.test("schedule() reads times before the query set is full", () => {
  const batches = schedule(600, 1, 1e9, 256);
  assert.deepEqual(batches.map((batch) => batch.flat().length), [256, 256, 88]);
});
