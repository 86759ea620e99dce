import assert from "#assert";
import { parsePair } from "../../../tests/support/winrs_figures.ts";
import { segmentPicture } from "./describe.ts";
import { gridSegments, tileSegments } from "./segments.ts";

Deno.test("segmentPicture() draws Figure 3's nine segments with their heights, widths and numbers", () => {
  const pair = parsePair("a8n3r6,a4n3r2", 3, 28);
  assert.deepEqual(segmentPicture(tileSegments(28, 28, pair, { height: 9, width: 12 })), [
    "        12a   12a    4b",
    "   10     0     1     2",
    "    9     3     4     5",
    "    9     6     7     8",
  ]);
});

Deno.test("segmentPicture() leaves out the middle of many rows, and draws nothing of one segment", () => {
  const pair = parsePair("a4n3r2", 3, 8);
  assert.deepEqual(segmentPicture(gridSegments(16, 8, pair, 8, 1)), [
    "         8a",
    "    2     0",
    "    2     1",
    "  ...   ...",
    "    2     7",
  ]);
  assert.deepEqual(segmentPicture(gridSegments(16, 8, pair, 1, 1)), []);
});
