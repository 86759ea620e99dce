import assert from "#assert";
import {
  formatBytes,
  formatCount,
  formatError,
  formatGflops,
  formatMilliseconds,
} from "./format.ts";

Deno.test("formatMilliseconds() picks the unit", () => {
  assert.equal(formatMilliseconds(0.01234), "12.34 us");
  assert.equal(formatMilliseconds(1.5), "1.500 ms");
  assert.equal(formatMilliseconds(61234), "61.23 s");
});

Deno.test("formatGflops() turns to TFLOP/s at 1000", () => {
  assert.equal(formatGflops(12.345), "12.35 GFLOP/s");
  assert.equal(formatGflops(34567), "34.57 TFLOP/s");
});

Deno.test("formatBytes() uses powers of 1024", () => {
  assert.equal(formatBytes(0), "0 B");
  assert.equal(formatBytes(1536), "1.500 KiB");
  assert.equal(formatBytes(3 * 1024 ** 3), "3.000 GiB");
});

Deno.test("formatError() and formatCount() print metrics and counts", () => {
  assert.equal(formatError(null), "-");
  assert.equal(formatError(2.412e-7), "2.41e-7");
  assert.equal(formatCount(1234567), "1,234,567");
});
