import assert from "node:assert/strict";
import { shareInRow, tapsInRow } from "../loader.ts";
import {
  joinsRows,
  ringColumn,
  ringColumns,
  ringOf,
  ringSteps,
  rowBox,
} from "./correlation_ring.ts";
import { moduleBuilder } from "../module.ts";

const axis = (places: number, taps: number, padding: number, size = places) => ({
  places,
  taps,
  size,
  stride: 1,
  padding,
  dilation: 1,
  sourceStride: 1,
});

Deno.test("rowBox() divides images and rows where any box does, and is as high as such are", () => {
  assert.deepEqual(rowBox(64, [axis(56, 3, 1), axis(56, 3, 1)], 32), { rows: 8, images: 4 });
  assert.deepEqual(rowBox(64, [axis(7, 3, 1), axis(7, 3, 1)], 64), { rows: 1, images: 64 });
  assert.deepEqual(rowBox(1, [axis(112, 3, 1), axis(112, 3, 1)], 16), { rows: 16, images: 1 });
  // Where none does that which leaves least outside.
  assert.deepEqual(rowBox(1, [axis(7, 3, 1), axis(9, 3, 1)], 16), { rows: 16, images: 1 });
  // A row is an image.
  assert.deepEqual(rowBox(40, [axis(9, 3, 1)], 16), { rows: 1, images: 16 });
});

Deno.test("ringSteps() has a step for each place of a box, and as many as its taps reach beyond zeros", () => {
  const steps = (batch: number, axes: ReturnType<typeof axis>[], count: number, joined = false) =>
    ringSteps({ batch, joined, axes, box: rowBox(batch, axes, count) });
  assert.equal(steps(64, [axis(56, 3, 1), axis(56, 3, 1)], 32), 64 * 56 / 32 * 57);
  // No zeros lie between rows without padding, and enough with as much as taps reach.
  assert.equal(steps(64, [axis(8, 3, 0), axis(8, 3, 0, 10)], 32), 64 * 8 / 32 * 10);
  assert.equal(steps(64, [axis(8, 3, 2), axis(8, 3, 2, 6)], 32), 64 * 8 / 32 * 8);
  assert.equal(steps(5, [axis(3, 3, 1), axis(7, 3, 1), axis(7, 2, 0, 8)], 4), 3 * 2 * 5 * 8);
  // Rows that follow each other have no more steps than places.
  assert.equal(steps(64, [axis(7, 3, 1), axis(7, 3, 1)], 64, true), 7 * 7);
});

Deno.test("rows follow each other where they keep the input's size, and multiply the taps that meet it alone", () => {
  for (const places of [1, 2, 3, 5, 8]) {
    for (const taps of [2, 3, 4]) {
      for (const dilation of [1, 2]) {
        const reach = (taps - 1) * dilation;
        for (let padding = 0; padding <= reach + 1; padding++) {
          const own = { ...axis(places, taps, padding), dilation };
          assert.equal(joinsRows(own), padding <= reach && places > reach);
          assert.ok(!joinsRows({ ...own, size: places + 1 }));
          if (!joinsRows(own)) continue;
          const ring = ringOf(own, true);
          let met = 0;
          for (let step = 0; step < places; step++) {
            const inside = tapsInRow(ring, step);
            for (let tap = 0; tap < taps; tap++) {
              const source = step - padding + tap * dilation;
              assert.equal(inside.includes(tap), source >= 0 && source < places);
            }
            met += inside.length;
          }
          assert.equal(shareInRow(ring), met / (taps * places));
          assert.equal(shareInRow(ringOf(own, false)), 1);
        }
      }
    }
  }
});

Deno.test("ringColumn() counts every tap and channel of a filter once, and columns of padding beyond all", () => {
  for (const channels of [16, 24, 40]) {
    const columns = { taps: 3, block: 16, channels };
    const text = ringColumn(moduleBuilder("constant"), columns, "(c)", `${9 * channels}u`);
    const select = (no: bigint, yes: bigint, which: boolean) => which ? yes : no;
    const value = new Function(
      "c",
      "select",
      `return ${text.replaceAll(/\b(\d+)u\b/g, "$1n")}`,
    ) as (c: bigint, pick: typeof select) => bigint;
    const found = Array.from(
      { length: ringColumns(columns, 3) },
      (_, c) => Number(value(BigInt(c), select)),
    );
    const own = found.filter((column) => column !== 9 * channels);
    assert.deepEqual(
      own.toSorted((a, b) => a - b),
      Array.from({ length: 9 * channels }, (_, i) => i),
    );
    // Matrices of the same channels follow each other by their taps.
    assert.deepEqual(found.slice(0, 48).filter((_, i) => i % 16 === 0), [
      0,
      channels,
      2 * channels,
    ]);
  }
});
