import assert from "#assert";
import { innerProduct, multiplyFragments } from "./thread_products.ts";

const TILE = { threadRows: 4, threadColumns: 8 };
const sum = (row: number, fragment: number) => `c${row}_${fragment}`;

Deno.test("products there and back are each made once, and share a value with the one before", () => {
  for (const order of ["serpentine", "columns"] as const) {
    const lines = multiplyFragments(innerProduct("f32"), TILE, sum, order);
    const products = lines.map((line) => {
      const [, into = "", a = "", b = ""] =
        line.match(/^(c\d_\d\.\w) = fma\((a0\.\w), (b\d\.\w), \1\);$/) ?? [];
      assert.notEqual(into, "", line);
      return { into, a, b };
    });
    assert.equal(new Set(products.map(({ into }) => into)).size, 4 * 8);
    for (const { into, a, b } of products) {
      assert.equal(into, `c${"xyzw".indexOf(a.at(-1)!)}_${b[1]}.${b.at(-1)}`);
    }
    for (const [i, { a, b }] of products.entries()) {
      const before = products[i - 1];
      assert.ok(before === undefined || before.a === a || before.b === b, `${order}: product ${i}`);
    }
    const along = order === "serpentine" ? "a" : "b";
    assert.equal(products[0]![along], products[1]![along]);
  }
});

Deno.test("halves and int8 are multiplied by vectors in any order", () => {
  for (const accumulation of ["f16", "i32"] as const) {
    const inner = innerProduct(accumulation);
    for (const order of ["serpentine", "columns"] as const) {
      assert.deepEqual(
        multiplyFragments(inner, TILE, sum, order),
        multiplyFragments(inner, TILE, sum, "rows"),
      );
    }
  }
  assert.equal(multiplyFragments(innerProduct("f32"), TILE, sum, "rows").length, 4 * 2);
});

Deno.test("a thread of eight rows has two vectors of A", () => {
  const tile = { threadRows: 8, threadColumns: 4 };
  const products = multiplyFragments(innerProduct("f32"), tile, sum, "serpentine");
  assert.equal(products[20], "c5_0.w = fma(a1.y, b0.w, c5_0.w);");
  assert.equal(products.length, 32);
});
