import assert from "#assert";
import fc from "fast-check";
import { nominal, parsePair } from "../../../tests/support/winrs_figures.ts";
import { fastestPair } from "./pair.ts";
import {
  gridSegments,
  mostRows,
  partStarts,
  rowHeights,
  segment,
  type Segmentation,
  segmentShape,
  tileSegments,
} from "./segments.ts";

const differences = (starts: readonly number[]) =>
  starts.slice(1).map((end, i) => end - starts[i]!);

Deno.test("tileSegments() cuts a 28x28 ∇Y by 9x12 into nine segments, {2, 5, 8} on Ω4(3,2)", () => {
  const pair = fastestPair(3, 28, nominal);
  const segments = tileSegments(28, 28, pair, { height: 9, width: 12 });
  assert.deepEqual(differences(segments.columnStarts), [12, 12, 4]);
  assert.deepEqual(differences(segments.rowStarts), [10, 9, 9]);
  assert.equal(segments.count, 9);
});

Deno.test("segmentShape() takes the whole of ∇Y for one segment", () => {
  const pair = fastestPair(3, 28, nominal);
  assert.deepEqual(segmentShape(28, 28, pair, 1), { height: 28, width: 24 });
});

Deno.test("segmentShape() takes single tiles where segments outnumber them", () => {
  const pair = fastestPair(3, 28, nominal);
  assert.deepEqual(segmentShape(28, 28, pair, 8), { height: 14, width: 6 });
});

Deno.test("segmentShape() cuts columns alone where Ẑ divides the tiles", () => {
  const pair = fastestPair(3, 28, nominal);
  assert.deepEqual(segmentShape(28, 28, pair, 2), { height: 28, width: 12 });
});

Deno.test("segmentShape() takes the least factor of the tiles that is wide enough", () => {
  const pair = fastestPair(3, 54, nominal);
  assert.deepEqual(segmentShape(30, 54, pair, 4), { height: 22, width: 18 });
});

Deno.test("segmentShape() cuts a single row by width alone", () => {
  const pair = fastestPair(3, 222, nominal);
  const shape = segmentShape(1, 222, pair, 4);
  assert.deepEqual(shape, { height: 1, width: 60 });
  assert.deepEqual(differences(tileSegments(1, 222, pair, shape).columnStarts), [60, 54, 54, 54]);
});

Deno.test("segmentShape() keeps segments as high as the padding", () => {
  const pair = fastestPair(9, 16, nominal);
  assert.equal(mostRows(16, 4), 4);
  assert.ok(segmentShape(16, 16, pair, 100, 4).height >= 4);
});

Deno.test("segment() shares the one bucket where Ẑ = 1 leaves a remainder", () => {
  const pair = fastestPair(3, 14, nominal);
  const segments = segment(14, 14, pair, 1);
  assert.equal(segments.shared, true);
  assert.equal(segments.count, 1);
  assert.deepEqual(segments.columnStarts, [0, 12, 14]);
});

Deno.test("gridSegments() lets the second kernel add to the first one's buckets where asked", () => {
  const pair = fastestPair(3, 28, nominal);
  const own = gridSegments(28, 28, pair, 3, 2);
  const shared = gridSegments(28, 28, pair, 3, 2, true);
  assert.equal(own.count, 9);
  assert.equal(shared.count, 6);
});

Deno.test("gridSegments() makes the last row as low as it is told, and the others even", () => {
  const pair = parsePair("a8n3r6", 3, 28);
  const heights = (rows: number, last: number) =>
    differences(gridSegments(28, 28, pair, rows, 1, true, last).rowStarts);
  assert.deepEqual(heights(2, 1 / 3), [21, 7]);
  assert.deepEqual(heights(4, 1 / 9), [9, 9, 9, 1]);
  assert.deepEqual(heights(2, 3 / 4), [16, 12]);
  assert.deepEqual(heights(3, 1), [10, 9, 9]);
});

Deno.test("rowHeights() gives all rows away once, however few there are", () => {
  const sizes = fc.record({
    size: fc.integer({ min: 1, max: 300 }),
    rows: fc.integer({ min: 2, max: 40 }),
    last: fc.double({ min: 0.01, max: 1, noNaN: true }),
  });
  fc.assert(fc.property(sizes, ({ size, rows, last }) => {
    const made = rowHeights(size, { rows, last });
    const heights = differences(partStarts(size, rows, made));
    assert.equal(heights.reduce((sum, height) => sum + height, 0), size);
    assert.ok(
      heights.every((height, row) => height >= 0 && (row === 0 || height <= heights[row - 1]!)),
    );
    assert.equal(heights[0], made.long);
  }));
});

Deno.test("segment() refuses counts and sizes that are no positive whole numbers", () => {
  const pair = parsePair("a8n3r6", 3, 16);
  assert.throws(() => segment(16, 16, pair, 0), /^RangeError: Cannot cut ∇Y into segments: Z is 0/);
  assert.throws(() => segment(0, 16, pair, 1), RangeError);
});

const cases = fc.record({
  filterWidth: fc.integer({ min: 1, max: 18 }),
  outputHeight: fc.integer({ min: 1, max: 120 }),
  outputWidth: fc.integer({ min: 1, max: 240 }),
  count: fc.integer({ min: 1, max: 600 }),
  paddingHeight: fc.integer({ min: 0, max: 8 }),
  exact: fc.boolean(),
});

function checkTiling(segments: Segmentation, outputHeight: number, outputWidth: number): void {
  for (
    const [starts, size] of [
      [segments.rowStarts, outputHeight],
      [segments.columnStarts, outputWidth],
    ] as const
  ) {
    assert.equal(starts[0], 0);
    assert.equal(starts.at(-1), size);
    assert.ok(differences(starts).every((part) => part > 0));
  }
  assert.equal(segments.rowStarts.length, segments.rows + 1);
  assert.equal(segments.columnStarts.length, segments.columns + 1);
}

Deno.test("segment() tiles ∇Y exactly, in widths that are multiples of r0 or r1, Ŝ_W <= O_W", () => {
  fc.assert(
    fc.property(
      cases,
      ({ filterWidth, outputHeight, outputWidth, count, paddingHeight, exact }) => {
        const pair = fastestPair(filterWidth, outputWidth, nominal, { exact });
        const shape = segmentShape(outputHeight, outputWidth, pair, count, paddingHeight);
        assert.ok(shape.width <= outputWidth && shape.height <= outputHeight);
        assert.ok(shape.height >= Math.min(paddingHeight, outputHeight));
        const segments = segment(outputHeight, outputWidth, pair, count, paddingHeight);
        checkTiling(segments, outputHeight, outputWidth);
        const rows = differences(segments.rowStarts);
        assert.ok(Math.max(...rows) - Math.min(...rows) <= 1);
        differences(segments.columnStarts).forEach((width, column) => {
          const r = column < segments.firstColumns ? pair.first.r : pair.second!.r;
          const padded = column === segments.columns - 1 ? pair.width - outputWidth : 0;
          assert.equal((width + padded) % r, 0);
          if (exact) assert.equal(padded, 0);
        });
      },
    ),
    { numRuns: 500 },
  );
});
