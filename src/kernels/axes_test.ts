import assert from "#assert";
import { digitsText } from "./axes.ts";

Deno.test("digitsText() declares digits innermost first, the last one being what is left", () => {
  const digits = [{ name: "x", radix: "5u" }, { name: "y", radix: "w.h" }, {
    name: "z",
    radix: "",
  }];
  assert.deepEqual(digitsText("i", "r", digits, "").split("\n"), [
    "let x = i % 5u;",
    "let r0 = i / 5u;",
    "let y = r0 % w.h;",
    "let r1 = r0 / w.h;",
    "let z = r1;",
  ]);
  assert.equal(digitsText("i", "r", digits.slice(0, 1)), "  let x = i;");
  assert.equal(digitsText("i", "r", []), "");
});
