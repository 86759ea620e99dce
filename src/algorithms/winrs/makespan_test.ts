import assert from "#assert";
import fc from "fast-check";
import { makespan, type WorkgroupGroup } from "./segments.ts";

/** One workgroup after the other, each in the place that is free first. */
function oneByOne(groups: readonly WorkgroupGroup[], places: number): number {
  const free = Array<number>(places).fill(0);
  for (const [count, time] of groups) {
    for (let i = 0; i < count; i++) {
      const place = free.indexOf(Math.min(...free));
      free[place] = free[place]! + time;
    }
  }
  return Math.max(...free);
}

Deno.test("makespan() is when the last of workgroups ends that begin in the first free place", () => {
  assert.equal(makespan([], 4), 0);
  assert.equal(makespan([[4, 3]], 4), 3);
  assert.equal(makespan([[5, 3]], 4), 6);
  // What is left of a round of long ones has room for short ones.
  assert.equal(makespan([[224, 14], [224, 14]], 132), 56);
  assert.equal(makespan([[224, 21], [224, 7]], 132), 49);
  const groups = fc.array(fc.tuple(fc.nat(30), fc.nat(9)), { maxLength: 6 });
  fc.assert(fc.property(groups, fc.integer({ min: 1, max: 9 }), (groups, places) => {
    assert.equal(makespan(groups, places), oneByOne(groups, places));
  }));
});
