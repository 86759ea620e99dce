import assert from "#assert";
import { digitsText } from "./axes.ts";

Deno.test("digitsText() declares digits innermost first, the last one being what is left", () => {
  const digits = [{ name: "x", radix: "5u" }, { name: "y", radix: "w.h" }, {
    name: "z",
    radix: "",
  }];
  assert.deepEqual(digitsText("i", "r_", digits, "").split("\n"), [
    "var r_left = i;",
    "let x = r_left % 5u; r_left /= 5u;",
    "let y = r_left % w.h; r_left /= w.h;",
    "let z = r_left;",
  ]);
  assert.equal(digitsText("i", "r_", []), "");
});
