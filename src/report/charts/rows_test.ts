import assert from "#assert";
import { layoutRows, wrapLabel } from "./rows.ts";

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

Deno.test("layoutRows() gives every row the room of its label and of its marks", () => {
  const rows = [{ label: "a", marks: 1 }, { label: LONG, marks: 1 }, { label: "b", marks: 6 }];
  const layout = layoutRows([...rows, { label: "c", marks: 2 }], 9);
  assert.ok(layout.at(LONG, 0) - layout.at("a", 0) >= 6 + 24);
  assert.equal(layout.at("b", 5) - layout.at("b", 0), 45);
  assert.ok(layout.at("c", 0) - layout.at("b", 5) >= 9);
  assert.ok(layout.height >= layout.at("c", 1) + 4.5);
  const { values } = layout.y.axis;
  assert.equal(values.length, 4);
  // The first line of four stands above the mark, as far as the last below.
  assert.equal(layout.at(LONG, 0) - values[1]!, 18);
});
