import assert from "#assert";
import { CHANGE_COLOURS } from "./speedup.ts";
import { PALETTE } from "./theme.ts";

/** Relative luminance, WCAG 2. */
function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

Deno.test("colours are seen on white, on the page's dark and on GitHub's (3:1, WCAG 1.4.11)", () => {
  for (const colour of [...PALETTE, ...Object.values(CHANGE_COLOURS)]) {
    for (const ground of ["#ffffff", "#16181c", "#0d1117"]) {
      const found = contrast(colour, ground);
      assert.ok(found >= 3, `${colour} on ${ground}: ${found}`);
    }
  }
  assert.equal(new Set(PALETTE).size, PALETTE.length);
});
