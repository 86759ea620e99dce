import assert from "#assert";
import { tileNumbers } from "./plan_arithmetic.ts";

Deno.test("tileNumbers() count tiles along each axis, the last ones cut off", () => {
  const { count, of } = tileNumbers([5, 7], { tile: [2, 3] });
  assert.equal(count, 9);
  assert.deepEqual([of([0, 0]), of([1, 2]), of([1, 3]), of([4, 6])], [0, 0, 1, 8]);
  assert.equal(of([3, 9, 4, 6], 2), 8);
});
