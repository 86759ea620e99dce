import assert from "#assert";
import { shardOf } from "./table_options.ts";

Deno.test("shardOf() deals all to the parts, each to one, which may be none", () => {
  const all = [1, 2, 3, 4, 5];
  const parts = [1, 2, 3].map((index) => shardOf(all, { index, count: 3 }));
  assert.deepEqual(parts, [[1, 4], [2, 5], [3]]);
  assert.equal(shardOf(all, undefined), all);
  assert.deepEqual(shardOf([1], { index: 2, count: 3 }), []);
});
