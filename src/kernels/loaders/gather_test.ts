import assert from "#assert";
import fc from "fast-check";
import { walkedRow } from "./gather.ts";

Deno.test("columns of a row find every tap of a result at its own distance, and zeros where there is none", () => {
  let [walked, refused] = [0, 0];
  fc.assert(
    fc.property(
      fc.record({
        size: fc.integer({ min: 1, max: 9 }),
        taps: fc.integer({ min: 2, max: 4 }),
        dilation: fc.integer({ min: 1, max: 3 }),
        padding: fc.integer({ min: 0, max: 6 }),
        end: fc.integer({ min: 0, max: 6 }),
      }),
      fc.constantFrom("forward", "backward"),
      ({ size, taps, dilation, padding, end }, direction) => {
        const reach = (taps - 1) * dilation;
        // Of backward-data the places are the input's, the gathered image the output's gradient.
        const outer = size + padding + end - reach;
        fc.pre(outer >= 1);
        const [places, source] = direction === "forward" ? [outer, size] : [size, outer];
        const axis = { places, taps, size: source, stride: 1, padding, dilation, sourceStride: 1 };
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
