import assert from "#assert";
import { onlyCases, parseRecords } from "./read_records.ts";
import { stream } from "../../tests/support/test_records.ts";

const { cases } = parseRecords(
  stream(
    { message: "a" },
    { message: "b", layout: "nhwc" },
    { message: "c", op: "bwd-data", layout: "nhwc" },
    { message: "d", op: "bwd-filter", layout: "nhwc", provider: "cudnn" },
    { message: "e", problem: 'ic9ih8oc4kh3n"OtherN2"', op: "bwd-data" },
    { message: "f", op: "gemm", problem: "64 64 64", math: "f16x3" },
  ),
  "test",
);
const kept = (...words: string[]) => onlyCases(cases, words).map(({ message }) => message).join("");

Deno.test("onlyCases() takes words of one kind as alternatives, and kinds together", () => {
  assert.equal(kept("fwd"), "ab");
  assert.equal(kept("fwd", "bwd-data"), "abce");
  assert.equal(kept("fwd", "bwd-data", "nhwc"), "bc");
  assert.equal(kept("cudnn"), "d");
  assert.equal(kept("Other"), "e");
  assert.equal(kept("Layer", "bwd-data"), "c");
  assert.equal(kept("f16x3"), "f");
  assert.equal(kept("ic9", "nhwc"), "");
});

Deno.test("onlyCases() refuses a word that no case has", () => {
  assert.throws(() => kept("fwd", "fdw"), /^RangeError: Cannot report: no case has "fdw"$/);
});
