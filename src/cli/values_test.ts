import assert from "#assert";
import { FILTER_LAYOUTS, LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import {
  gather,
  oneOf,
  parseBytes,
  parsePadding,
  parsePolicies,
  parseSegments,
  parseShard,
  parseShare,
  parseSizes,
  parseWorkspace,
  positiveNumber,
  someOf,
  splitTiles,
  wholeNumber,
} from "./values.ts";

Deno.test("parseSizes() reads lists with commas or crosses", () => {
  assert.deepEqual(parseSizes("3"), [3]);
  assert.deepEqual(parseSizes("1,2"), [1, 2]);
  assert.deepEqual(parseSizes("4x5x6"), [4, 5, 6]);
  for (const bad of ["", "1,", "-1", "1.5", "a"]) assert.throws(() => parseSizes(bad), bad);
});

Deno.test("parsePadding() reads words and sizes", () => {
  assert.equal(parsePadding("same"), "same");
  assert.equal(parsePadding("VALID"), "valid");
  assert.deepEqual(parsePadding("0,1,2,3"), [0, 1, 2, 3]);
  for (const bad of ["", "some", "-1", "1.5", "1,"]) assert.throws(() => parsePadding(bad), bad);
});

Deno.test("wholeNumber() refuses what is too small or no number", () => {
  assert.equal(wholeNumber(1)("12"), 12);
  for (const bad of ["0", "", "1e3", "-2", "99999999999999999999"]) {
    assert.throws(() => wholeNumber(1)(bad), bad);
  }
});

Deno.test("parseSegments() reads auto and numbers", () => {
  assert.equal(parseSegments("6"), 6);
  assert.equal(parseSegments("Auto"), "auto");
  for (const bad of ["0", "-1", "", "1.5", "automatic"]) {
    assert.throws(() => parseSegments(bad), { message: "expected auto or a whole number >= 1." });
  }
});

Deno.test("parseWorkspace() reads bytes, or a share of the tensors", () => {
  assert.deepEqual(parseWorkspace("64MB"), { maxWorkspaceBytes: 64e6 });
  assert.deepEqual(parseWorkspace("0.5x"), { maxWorkspaceShare: 0.5 });
  assert.deepEqual(parseWorkspace(" 2 X"), { maxWorkspaceShare: 2 });
  for (const bad of ["x", "-1x", "1xx", "1e3x"]) assert.throws(() => parseWorkspace(bad), bad);
});

Deno.test("parseBytes() reads decimal and binary units", () => {
  assert.deepEqual(["0", "64MB", "1.5 GiB", "2kib"].map(parseBytes), [0, 64e6, 1610612736, 2048]);
  for (const bad of ["", "MB", "-1", "1XB", "1e3"]) assert.throws(() => parseBytes(bad), bad);
});

Deno.test("positiveNumber() refuses 0 and what is no number", () => {
  assert.equal(positiveNumber("0.5"), 0.5);
  for (const bad of ["0", "-1", "", "x", "Infinity"]) {
    assert.throws(() => positiveNumber(bad), bad);
  }
});

Deno.test("oneOf() suggests the nearest choice", () => {
  assert.equal(oneOf(["nchw", "nhwc"])("nhwc"), "nhwc");
  assert.throws(
    () => oneOf(["nchw", "nhwc"])("nhwcc"),
    /expected nchw, nhwc, did you mean "nhwc"\?/,
  );
});

Deno.test("oneOf() and someOf() take other names of layouts", () => {
  assert.equal(oneOf(LAYOUTS, LAYOUT_ALIASES)("nwc"), "nhwc");
  assert.deepEqual(someOf(LAYOUTS, LAYOUT_ALIASES)("ncdhw,cwn"), ["nchw", "chwn"]);
  assert.equal(oneOf(FILTER_LAYOUTS, LAYOUT_ALIASES)("ktrsc"), "krsc");
  for (const bad of ["kcs", "toString", "nchhw"]) {
    assert.throws(() => oneOf(LAYOUTS, LAYOUT_ALIASES)(bad), /expected nchw, nhwc, chwn/);
  }
});

Deno.test("someOf() splits lists, and all means every one", () => {
  assert.deepEqual(someOf(["a", "b", "c"])("c, a"), ["c", "a"]);
  assert.deepEqual(someOf(["a", "b"])("all"), ["a", "b"]);
  assert.throws(() => someOf(["a", "b"])("a,x"), /expected a, b/);
});

Deno.test("gather() collects repeated options", () => {
  assert.deepEqual(gather("b", gather("a", undefined)), ["a", "b"]);
});

Deno.test("parseShard() takes parts from 1 to n", () => {
  assert.deepEqual(parseShard("2/4"), { index: 2, count: 4 });
  for (const bad of ["0/4", "5/4", "1", "1/0", "a/b", "-1/2"]) assert.throws(() => parseShard(bad));
});

Deno.test("parseShare() takes shares and percentages", () => {
  assert.deepEqual(["0", "0.01", "1%", "100%"].map(parseShare), [0, 0.01, 0.01, 1]);
  for (const bad of ["2", "-1", "x", "", "1e-3"]) assert.throws(() => parseShare(bad), bad);
});

Deno.test("splitTiles() splits at commas outside brackets", () => {
  assert.deepEqual(splitTiles("auto, F(2x2,3x3),F(6,3)"), ["auto", "F(2x2,3x3)", "F(6,3)"]);
});

Deno.test("parsePolicies() reads names and tiles, and refuses what is neither", () => {
  assert.deepEqual(parsePolicies("auto,small, 64x32x8_8x8"), ["auto", "small", "64x32x8_8x8"]);
  assert.throws(() => parsePolicies("auto,smal"), /64x32x8_8x8, did you mean "small"\?$/);
  for (const bad of ["", "auto,", "x"]) assert.throws(() => parsePolicies(bad), bad);
});
