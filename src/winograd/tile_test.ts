import assert from "#assert";
import { formatTile, parseTile } from "./tile.ts";

Deno.test("parseTile() reads one and two axes", () => {
  assert.deepEqual(parseTile("F(6,3)"), { n: [6], r: [3] });
  assert.deepEqual(parseTile("f(4x2, 3x5)"), { n: [4, 2], r: [3, 5] });
});

Deno.test("formatTile() writes what parseTile() reads", () => {
  for (const text of ["F(6,3)", "F(2x2,3x3)", "F(1x14,9x3)", "F(16,1)"]) {
    assert.equal(formatTile(parseTile(text)), text);
  }
});

Deno.test("parseTile() refuses other text", () => {
  for (const text of ["", "F(6)", "F(6,3", "G(6,3)", "F(6,-3)", "F(6x,3x3)", "F(2x2x2,3x3x3)"]) {
    assert.throws(() => parseTile(text), {
      name: "SyntaxError",
      message: `Cannot read tile "${text}": expected F(6,3) or F(2x2,3x3)`,
    });
  }
  assert.throws(() => parseTile("F(2x2,3)"), {
    name: "SyntaxError",
    message: 'Cannot read tile "F(2x2,3)": n has 2 axes, r has 1',
  });
});

Deno.test("parseTile() refuses sizes out of range", () => {
  assert.throws(() => parseTile("F(15,3)"), {
    name: "RangeError",
    message: "Cannot use tile F(15,3): n + r - 1 of F(15,3) is 17, above 16",
  });
  assert.throws(() => parseTile("F(2x0,3x3)"), {
    name: "RangeError",
    message: "Cannot use tile F(2x0,3x3): F(0,3) has a size below 1",
  });
});
