import assert from "node:assert/strict";
import { moduleBuilder } from "../module.ts";
import { ringColumn, ringColumns, ringSteps, rowBox } from "./correlation_ring.ts";

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
  const steps = (batch: number, axes: ReturnType<typeof axis>[], count: number) =>
    ringSteps({ batch, axes, box: rowBox(batch, axes, count) });
  assert.equal(steps(64, [axis(56, 3, 1), axis(56, 3, 1)], 32), 64 * 56 / 32 * 57);
  // No zeros lie between rows without padding, and enough with as much as taps reach.
  assert.equal(steps(64, [axis(8, 3, 0), axis(8, 3, 0, 10)], 32), 64 * 8 / 32 * 10);
  assert.equal(steps(64, [axis(8, 3, 2), axis(8, 3, 2, 6)], 32), 64 * 8 / 32 * 8);
  assert.equal(steps(5, [axis(3, 3, 1), axis(7, 3, 1), axis(7, 2, 0, 8)], 4), 3 * 2 * 5 * 8);
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
