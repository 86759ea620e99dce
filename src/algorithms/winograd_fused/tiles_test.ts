import assert from "#assert";
import { parseTile } from "../../winograd/tile.ts";
import { tileRuns } from "./geometry.ts";

const ways = (size: number, taps: number, tile?: string) =>
  tileRuns([size], [taps], tile === undefined ? undefined : parseTile(tile))
    .map((kernels) => kernels.map(([run]) => run!));

Deno.test("tileRuns() cuts one axis without waste in two kernels, or beyond the edge in one", () => {
  assert.deepEqual(ways(14, 3, "F(6,3)"), [
    [{ n: 6, r: 3, first: 0, count: 2 }, { n: 2, r: 3, first: 12, count: 1 }],
    [{ n: 6, r: 3, first: 0, count: 3 }],
  ]);
  assert.deepEqual(ways(12, 3, "F(6,3)"), [[{ n: 6, r: 3, first: 0, count: 2 }]]);
});

Deno.test("tileRuns() has the default tile and shorter ones where none is named, each once", () => {
  assert.deepEqual(ways(12, 3), [
    [{ n: 6, r: 3, first: 0, count: 2 }],
    [{ n: 4, r: 3, first: 0, count: 3 }],
    [{ n: 2, r: 3, first: 0, count: 6 }],
  ]);
  assert.deepEqual(ways(2, 3), [[{ n: 2, r: 3, first: 0, count: 1 }]]);
  assert.deepEqual(ways(32, 9), [[{ n: 8, r: 9, first: 0, count: 4 }]]);
});

Deno.test("tileRuns() covers every place of one axis once, with α of at most 16", () => {
  for (let taps = 1; taps <= 30; taps++) {
    for (let size = 1; size <= 40; size++) {
      for (const kernels of ways(size, taps)) {
        let next = 0;
        for (const { n, r, first, count } of kernels) {
          assert.equal(first, next);
          assert.ok(n + r - 1 <= 16 && r * Math.ceil(taps / r) >= taps);
          next += n * count;
        }
        const beyond = next - size;
        assert.ok(
          beyond === 0 || kernels.length === 1 && beyond > 0 && beyond < kernels[0]!.n,
          `${size} places, ${taps} taps`,
        );
      }
    }
  }
});

Deno.test("tileRuns() cuts long filters into even pieces", () => {
  const taps = (size: number, filter: number) => ways(size, filter)[0]![0]!.r;
  assert.equal(taps(40, 9), 9);
  assert.equal(taps(40, 10), 5);
  assert.equal(taps(40, 25), 9);
});

Deno.test("tileRuns() takes the tile that is asked for, no larger than the axis", () => {
  assert.deepEqual(ways(14, 7, "F(6,3)")[0]!.map(({ n, r }) => [n, r]), [[6, 3], [2, 3]]);
  assert.deepEqual(ways(3, 3, "F(6,3)"), [[{ n: 3, r: 3, first: 0, count: 1 }]]);
});

Deno.test("tileRuns() covers two axes in one kernel, reaching beyond the edge", () => {
  assert.deepEqual(tileRuns([7, 8], [3, 3], undefined), [[[
    { n: 2, r: 3, first: 0, count: 4 },
    { n: 2, r: 3, first: 0, count: 4 },
  ]]]);
  assert.deepEqual(tileRuns([7, 8], [3, 5], parseTile("F(4x2,3x5)")), [[[
    { n: 4, r: 3, first: 0, count: 2 },
    { n: 2, r: 5, first: 0, count: 4 },
  ]]]);
  assert.deepEqual(tileRuns([7, 8], [9, 9], undefined)[0]![0]!.map(({ r }) => r), [5, 5]);
});

Deno.test("tileRuns() of an empty axis has no tiles, and transforms that exist", () => {
  assert.deepEqual(ways(0, 3), [[{ n: 1, r: 3, first: 0, count: 0 }]]);
});
