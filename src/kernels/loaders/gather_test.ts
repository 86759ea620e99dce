import assert from "#assert";
import fc from "fast-check";
import { loaderAxes, loaderAxis } from "../../../tests/random_axes.ts";
import type { Direction } from "../axes.ts";
import { walkedRow } from "./gather.ts";

Deno.test("columns of a row find every tap of a result at its own distance, and zeros where there is none", () => {
  let [walked, refused] = [0, 0];
  fc.assert(
    fc.property(
      loaderAxes({ size: 9, padding: 6, end: 6 }, 2),
      fc.constantFrom<Direction>("forward", "backward"),
      (drawn, direction) => {
        const axis = loaderAxis(drawn, direction);
        fc.pre(axis !== undefined);
        const { places, taps, size: source, padding, dilation } = axis;
        const reach = (taps - 1) * dilation;
        const row = walkedRow(axis, direction);
        if (row === undefined) {
          assert.ok(direction === "backward" && padding > reach);
          refused++;
          return;
        }
        walked++;
        for (let line = 0; line < 3; line++) {
          for (let place = 0; place < places; place++) {
            for (let tap = 0; tap < taps; tap++) {
              const at = direction === "forward"
                ? place - padding + tap * dilation
                : place + padding - (taps - 1 - tap) * dilation;
              // As the loader finds it: a width is added, so that nothing is below zero.
              const cell = line * row.places + place + tap * dilation + row.places - row.lead;
              const [found, x] = [Math.floor(cell / row.places) - 1, cell % row.places];
              if (at >= 0 && at < source) assert.deepEqual([found, x], [line, at]);
              else assert.ok(x >= source, `${at} of ${source} is ${x} in row ${found}`);
            }
          }
        }
      },
    ),
    { numRuns: 2000, seed: 20261125 },
  );
  assert.ok(walked > 500 && refused > 20, `${walked}, ${refused}`);
});
