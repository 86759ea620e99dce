import assert from "#assert";
import { parseTile } from "../../winograd/tile.ts";
import { tileRuns } from "./tiles.ts";

const one = (size: number, taps: number, tile?: string) =>
  tileRuns([size], [taps], tile === undefined ? undefined : parseTile(tile)).map(([run]) => run!);

Deno.test("tileRuns() cuts one axis without waste: 14 = 6 + 6 + 2", () => {
  assert.deepEqual(one(14, 3), [
    { n: 6, r: 3, first: 0, count: 2 },
    { n: 2, r: 3, first: 12, count: 1 },
  ]);
  assert.deepEqual(one(12, 3), [{ n: 6, r: 3, first: 0, count: 2 }]);
  assert.deepEqual(one(5, 3), [{ n: 5, r: 3, first: 0, count: 1 }]);
});

Deno.test("tileRuns() covers every place of one axis once, with α of at most 16", () => {
  for (let taps = 1; taps <= 30; taps++) {
    for (let size = 1; size <= 40; size++) {
      let next = 0;
      for (const { n, r, first, count } of one(size, taps)) {
        assert.equal(first, next);
        assert.ok(n + r - 1 <= 16 && r * Math.ceil(taps / r) >= taps);
        next += n * count;
      }
      assert.equal(next, size, `${size} places, ${taps} taps`);
    }
  }
});

Deno.test("tileRuns() cuts long filters into even pieces", () => {
  assert.equal(one(40, 9)[0]!.r, 9);
  assert.equal(one(40, 10)[0]!.r, 5);
  assert.equal(one(40, 25)[0]!.r, 9);
});

Deno.test("tileRuns() takes the tile that is asked for, no larger than the axis", () => {
  assert.deepEqual(one(14, 7, "F(6,3)").map(({ n, r }) => [n, r]), [[6, 3], [2, 3]]);
  assert.deepEqual(one(3, 3, "F(6,3)"), [{ n: 3, r: 3, first: 0, count: 1 }]);
});

Deno.test("tileRuns() covers two axes in one kernel, reaching beyond the edge", () => {
  assert.deepEqual(tileRuns([7, 8], [3, 3], undefined), [[
    { n: 2, r: 3, first: 0, count: 4 },
    { n: 2, r: 3, first: 0, count: 4 },
  ]]);
  assert.deepEqual(tileRuns([7, 8], [3, 5], parseTile("F(4x2,3x5)")), [[
    { n: 4, r: 3, first: 0, count: 2 },
    { n: 2, r: 5, first: 0, count: 4 },
  ]]);
  assert.deepEqual(tileRuns([7, 8], [9, 9], undefined)[0]!.map(({ r }) => r), [5, 5]);
});

Deno.test("tileRuns() of an empty axis has no tiles, and transforms that exist", () => {
  assert.deepEqual(one(0, 3), [{ n: 1, r: 3, first: 0, count: 0 }]);
});
