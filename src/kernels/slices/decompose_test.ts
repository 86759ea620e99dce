import assert from "#assert";
import { decompose } from "./decompose.ts";

Deno.test("decompose() declares digits innermost first, the last one being what is left", () => {
  const digits = [{ name: "x", radix: "5u" }, { name: "y", radix: "w.h" }, {
    name: "z",
    radix: "",
  }];
  assert.deepEqual(decompose("i", "r", digits, "").split("\n"), [
    "let x = i % 5u;",
    "let r0 = i / 5u;",
    "let y = r0 % w.h;",
    "let r1 = r0 / w.h;",
    "let z = r1;",
  ]);
  assert.equal(decompose("i", "r", digits.slice(0, 1)), "  let x = i;");
  assert.equal(decompose("i", "r", []), "");
});
