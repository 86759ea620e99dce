import assert from "#assert";
import fc from "fast-check";
import { type Axis, digitsText, type Direction, tapWordText } from "./axes.ts";
import { loaderAxes, loaderAxis } from "../../tests/random_axes.ts";

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

/** The word of a place, by its WGSL: unsigned sums, of which those below zero are huge. */
function wordOf(axes: readonly Axis[], direction: Direction, origins: readonly number[]): number {
  const sign = direction === "forward" ? "+" : "-";
  const text = tapWordText(
    "word",
    axes,
    direction,
    (d, places) => `((${origins[d]} ${sign} ${places}) >>> 0)`,
    (d) => `${axes[d]!.size}`,
  );
  const select = (no: number, yes: number, when: boolean) => when ? yes : no;
  const script = `${text.replaceAll(/\b(\d+)u\b/g, "$1")}\nreturn word0 >>> 0;`;
  return Function("select", script)(select) as number;
}

/** Every list of one index of each count. */
function indexes(counts: readonly number[]): number[][] {
  return counts.reduce<number[][]>(
    (lists, count) =>
      lists.flatMap((list) => Array.from({ length: count }, (_, i) => [...list, i])),
    [[]],
  );
}

Deno.test("a word of taps has the bits of those inside the source, in both directions", () => {
  let unmasked = 0;
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          loaderAxes({ size: 7, padding: 7, end: 9 }),
          fc.integer({ min: 1, max: 2 }),
        ),
        { minLength: 1, maxLength: 2 },
      ),
      fc.constantFrom<Direction>("forward", "backward"),
      (drawn, direction) => {
        const axes = drawn.map(([axis, stride]) => loaderAxis({ ...axis, stride }, direction))
          .filter((axis) => axis !== undefined);
        fc.pre(axes.length === drawn.length);
        const taps = axes.map(({ taps }) => taps);
        for (const place of indexes(axes.map(({ places }) => places))) {
          const origins = axes.map(({ stride, padding }, d) =>
            direction === "forward" ? place[d]! * stride - padding : place[d]! + padding
          );
          const inside = indexes(taps).map((tap) =>
            axes.every(({ dilation, size }, d) => {
              const at = direction === "forward"
                ? origins[d]! + tap[d]! * dilation
                : origins[d]! - tap[d]! * dilation;
              return at >= 0 && at < size;
            })
          );
          const expected = inside.reduce((word, one, i) => one ? word + 2 ** i : word, 0);
          assert.equal(wordOf(axes, direction, origins), expected, JSON.stringify({ axes, place }));
          if (inside.every((one) => one)) unmasked++;
        }
      },
    ),
    { numRuns: 1000, seed: 20261125 },
  );
  assert.ok(unmasked > 500, `${unmasked}`);
});
