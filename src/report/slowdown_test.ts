import assert from "#assert";
import { slowdown } from "./speed_change.ts";

const RISING = [1, 1.01, 1.02, 1.03, 1.1, 1.15, 1.2, 1.21, 1.22, 1.23];

Deno.test("slowdown() finds rates that drop within a case", () => {
  assert.equal(slowdown(RISING)!.toFixed(3), (1 - 1.02 / 1.21).toFixed(3));
});

Deno.test("slowdown() sees none in steady, faster, few or scattered samples", () => {
  assert.equal(slowdown(new Array(30).fill(1)), undefined);
  assert.equal(slowdown(RISING.toReversed()), undefined);
  assert.equal(slowdown(RISING.slice(-5)), undefined);
  assert.equal(slowdown([1, 1.3, 1.1, 1.2, 1.05, 1.25, 1, 1.3, 1.1, 1.2]), undefined);
  assert.equal(slowdown(RISING.map((time) => 1 + (time - 1) / 100)), undefined);
});
