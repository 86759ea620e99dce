import assert from "#assert";
import fc from "fast-check";
import type { Axis, Direction } from "../axes.ts";
import { tapWordText } from "./tap_word.ts";

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
        fc.record({
          size: fc.integer({ min: 1, max: 7 }),
          taps: fc.integer({ min: 1, max: 4 }),
          dilation: fc.integer({ min: 1, max: 3 }),
          stride: fc.integer({ min: 1, max: 2 }),
          padding: fc.integer({ min: 0, max: 7 }),
          end: fc.integer({ min: 0, max: 9 }),
        }),
        { minLength: 1, maxLength: 2 },
      ),
      fc.constantFrom<Direction>("forward", "backward"),
      (drawn, direction) => {
        const axes = drawn.map(({ size, taps, dilation, stride, padding, end }): Axis => {
          const step = direction === "forward" ? stride : 1;
          const outer = Math.floor((size + padding + end - (taps - 1) * dilation - 1) / step) + 1;
          // Of backward-data the places are the input's.
          const [places, source] = direction === "forward" ? [outer, size] : [size, outer];
          return { places, taps, size: source, stride: step, padding, dilation, sourceStride: 1 };
        });
        fc.pre(axes.every(({ places, size }) => places > 0 && size > 0));
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
