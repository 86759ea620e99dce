import assert from "#assert";
import { layoutRows, wrapLabel } from "./speedup.ts";

const LONG = "a_network_with_a_very_long_name/stage_3/bottleneck_block_3/conv_three_by_three";

Deno.test("wrapLabel() cuts at signs where it can, and shortens the middle alone", () => {
  assert.deepEqual(wrapLabel("Conv2N32"), ["Conv2N32"]);
  assert.deepEqual(wrapLabel("mb32ic256ih14oc256oh14kh3ph1"), ["mb32ic256ih14oc256oh14", "kh3ph1"]);
  assert.deepEqual(wrapLabel("mb1ic16ih28oc32oh28kh3ph1"), ["mb1ic16ih28oc32oh28kh3", "ph1"]);
  const lines = wrapLabel(LONG);
  assert.ok(lines.length <= 4 && lines.every(({ length }) => length <= 24), lines.join("|"));
  assert.match(lines.join(""), /^a_network_with.*….*conv_three_by_three$/);
  for (const line of lines.slice(0, -1)) assert.match(line, /[_/…]$/);
});

Deno.test("layoutRows() gives every row the room of its label and of its mark", () => {
  const { middles: [a, long, c], height, y } = layoutRows(["a", LONG, "c"], 15);
  assert.ok(long! - a! >= 6 + 24);
  assert.ok(height >= c! + 7.5);
  assert.equal(y.axis.values.length, 3);
  // The first line of four stands above the mark, as far as the last below.
  assert.equal(long! - y.axis.values[1]!, 18);
});
