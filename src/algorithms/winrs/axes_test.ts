import assert from "#assert";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { reduceAxes } from "./omega.ts";

const reduce = (text: string) => reduceAxes(parseDescriptor(text, "bwd-filter"));

Deno.test("reduceAxes() runs along the width and counts the other axes' rows through", () => {
  const axes = reduce("mb1ic2id8oc2od6kd3ih9oh8kh2iw10ow6kw5");
  assert.equal(axes.widthAxis, 2);
  assert.equal(axes.swapped, false);
  assert.deepEqual([axes.filterWidth, axes.outputWidth], [5, 6]);
  assert.deepEqual(axes.outerAxes, [0, 1]);
  assert.deepEqual([axes.filterRows, axes.outputRows], [6, 48]);
});

Deno.test("reduceAxes() gives a 1-D problem one row", () => {
  const axes = reduce("mb1ic2iw20oc2ow18kw3");
  assert.deepEqual([axes.filterRows, axes.outputRows, axes.paddingRows], [1, 1, 0]);
  assert.deepEqual(axes.outer, []);
});

Deno.test("reduceAxes() swaps the axes of a filter one column wide", () => {
  const axes = reduce("mb1ic2ih20iw21oc2oh11ow21kh10kw1");
  assert.equal(axes.swapped, true);
  assert.deepEqual([axes.filterWidth, axes.outputWidth], [10, 11]);
  assert.deepEqual([axes.filterRows, axes.outputRows], [1, 21]);
});

Deno.test("reduceAxes() swaps away from a strided or dilated width, but not for nothing", () => {
  assert.equal(reduce("mb1ic2ih9iw9oc2oh7ow4kh3sh1sw2kw3").widthAxis, 0);
  assert.equal(reduce("mb1ic2ih9iw9oc2oh9ow9kh1kw1").swapped, false);
  assert.equal(reduce("mb1ic2ih20iw20oc2oh10ow10kh11kw11").swapped, false);
});

Deno.test("reduceAxes() says how many rows the outermost padding spans", () => {
  assert.equal(reduce("mb1ic2ih9iw9oc2kh5ph2").paddingRows, 2);
  assert.equal(reduce("mb1ic2id4ih9iw9oc2kd3kh3kw3pd1ph1pw1").paddingRows, 9);
});
