import assert from "#assert";
import { outputPlace, tiledPlace, tiledSizes, tileNumbers } from "./result_tiles.ts";

Deno.test("tileNumbers() count tiles along each axis, the last ones cut off", () => {
  const { count, of } = tileNumbers([5, 7], { tile: [2, 3] });
  assert.equal(count, 9);
  assert.deepEqual([of([0, 0]), of([1, 2]), of([1, 3]), of([4, 6])], [0, 0, 1, 8]);
  assert.equal(of([3, 9, 4, 6], 2), 8);
});

Deno.test("tileNumbers() of joined rows count along their line", () => {
  // Rows of 7 begin 8 apart: 39 places, 7 tiles an image, the second of which has the end of the first row and the next one's begin.
  const { count, of } = tileNumbers([3, 5, 7], { tile: [1, 1, 6], pitch: 8 });
  assert.equal(count, 21);
  assert.deepEqual(
    [of([0, 0, 5]), of([0, 0, 6]), of([0, 1, 3]), of([0, 1, 4]), of([2, 4, 6])],
    [0, 1, 1, 2, 20],
  );
});

Deno.test("places of a line are those of its rows, and between them none of a result", () => {
  assert.deepEqual(tiledSizes([3, 5, 7], 8), [3, 1, 39]);
  assert.deepEqual(tiledPlace([2, 4, 6], 8), [2, 0, 38]);
  assert.deepEqual(outputPlace([2, 0, 38], 8), [2, 4, 6]);
  assert.deepEqual(outputPlace([2, 0, 15], 8), [2, 1, 7]);
  for (const map of [tiledSizes, tiledPlace, outputPlace]) {
    assert.deepEqual(map([3, 5, 7], undefined), [3, 5, 7]);
  }
});
