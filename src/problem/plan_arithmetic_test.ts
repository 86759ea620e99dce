import assert from "#assert";
import { tileCount, tileNumbers, tileOf, tileStart } from "./plan_arithmetic.ts";

Deno.test("tileNumbers() count tiles along each axis, the last ones cut off", () => {
  const { count, of } = tileNumbers([5, 7], { tile: [2, 3] });
  assert.equal(count, 9);
  assert.deepEqual([of([0, 0]), of([1, 2]), of([1, 3]), of([4, 6])], [0, 0, 1, 8]);
  assert.equal(of([3, 9, 4, 6], 2), 8);
});

Deno.test("places of a tile stand apart: each place has one tile, each tile its places", () => {
  for (const [size, n, apart] of [[11, 3, 2], [5, 2, 7], [12, 4, 1], [9, 1, 3]] as const) {
    const met = new Map<number, number[]>();
    for (let place = 0; place < size; place++) {
      const tile = tileOf(place, n, apart);
      met.set(tile, [...met.get(tile) ?? [], place]);
    }
    assert.ok(Math.max(...met.keys()) < tileCount(size, n, apart));
    for (const [tile, places] of met) {
      const first = tileStart(tile, n, apart);
      assert.deepEqual(places, places.map((_, i) => first + i * apart));
      assert.ok(places.length <= n);
    }
  }
});
