import assert from "#assert";
import { shardOf } from "./table_options.ts";

Deno.test("shardOf() deals all to the parts, each to one, and refuses empty parts", () => {
  const all = [1, 2, 3, 4, 5];
  const parts = [1, 2, 3].map((index) => shardOf("Cannot x", all, { index, count: 3 }));
  assert.deepEqual(parts, [[1, 4], [2, 5], [3]]);
  assert.equal(shardOf("Cannot x", all, undefined), all);
  assert.throws(() => shardOf("Cannot x", [1], { index: 2, count: 3 }), {
    name: "TypeError",
    message: "Cannot x: part 2 of 3 is empty, there are fewer problems than parts: 1",
  });
});
