import assert from "#assert";
import { sliceIterations } from "./loop.ts";

/** Iterations that a loop over `steps` counts, and the loops of so many steps inside of it, their last checks among them. */
function counted(steps: number, partial: number, written: number): number {
  let count = 0;
  const rounds = (first: number, end: number) => {
    for (let round = first;; round += written) {
      count++;
      if (round >= end) break;
      for (let turn = 0; written > 1 && turn <= written; turn++) count++;
    }
  };
  if (partial === 0) {
    rounds(0, steps);
    return count;
  }
  for (let first = 0; first < steps; first += partial) {
    count++;
    rounds(first, Math.min(steps, first + partial));
  }
  return count + 1;
}

Deno.test("sliceIterations() is what loops count, with loops of two steps inside, in parts too", () => {
  for (const written of [1, 2]) {
    for (const steps of [1, 2, 7, 96]) {
      for (const partial of [0, 2, 8]) {
        assert.equal(
          sliceIterations({ steps, partial }, written),
          counted(steps, partial, written),
          `${steps} steps in parts of ${partial}, ${written} a round`,
        );
      }
    }
  }
});
