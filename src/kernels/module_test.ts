import assert from "#assert";
import { moduleBuilder, splitTensor, WHOLE } from "./module.ts";

Deno.test("splitTensor() cuts at multiples of 256 bytes, and only what exceeds a binding", () => {
  assert.deepEqual(splitTensor(1000, 1000), WHOLE);
  assert.deepEqual(splitTensor(1001, 1000), { parts: 2, partBytes: 768 });
  assert.deepEqual(splitTensor(3 * 768, 1000), { parts: 3, partBytes: 768 });
  assert.deepEqual(splitTensor(3 * 768 + 1, 1000), { parts: 4, partBytes: 768 });
});

Deno.test("moduleBuilder() bakes sizes, or keeps them in the order of one uniform struct", () => {
  const baked = moduleBuilder("constant");
  assert.equal(baked.size("width", 7), "7u");
  assert.equal(baked.bound().uniforms, undefined);
  assert.deepEqual(baked.bound().bindings, []);

  const module = moduleBuilder("uniform");
  module.tensor("input", "read", 1, WHOLE);
  assert.equal(module.size("width", 7), "sizes.width");
  module.size("height", 9);
  module.size("width", 7);
  assert.deepEqual([...module.bound().uniforms!], [7, 9]);
  assert.deepEqual(module.bound().bindings, ["read", "uniform"]);
  assert.match(module.declarations(), /@binding\(1\) var<uniform> sizes: Sizes/);
});

Deno.test("moduleBuilder() refuses two values of one name, and tells what 32 bits cannot index", () => {
  const module = moduleBuilder("uniform");
  module.size("width", 7);
  assert.throws(() => module.size("width", 8), /size width is 7 and 8/);
  module.size("most", 2 ** 32 - 1);
  assert.equal(module.bound().tooLarge, undefined);
  module.size("count", 2 ** 32);
  assert.equal(module.bound().tooLarge, "count is 4294967296");
  assert.throws(() => module.size("half", 0.5), RangeError);
});

Deno.test("tensor() reaches every part of a split tensor", () => {
  const module = moduleBuilder("constant");
  const access = module.tensor("x", "read", 4, { parts: 3, partBytes: 256 });
  assert.equal(access.load("i"), "load_x(i)");
  const text = module.declarations();
  assert.match(text, /if \(i < 16u\) \{ return x_data0\[i\]; \}/);
  assert.match(text, /if \(i < 32u\) \{ return x_data1\[i - 16u\]; \}/);
  assert.match(text, /\n {2}return x_data2\[i - 32u\];/);
  assert.deepEqual(module.bound().bindings, ["read", "read", "read"]);
});
