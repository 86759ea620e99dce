import assert from "node:assert/strict";
import { moduleBuilder } from "../module.ts";
import { ringColumn, ringColumns } from "./ring_columns.ts";

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
