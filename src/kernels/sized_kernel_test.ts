import assert from "#assert";
import { moduleBuilder } from "./module.ts";
import { foldGrid, sizedKernel } from "./sized_kernel.ts";

Deno.test("sizedKernel() names baked kernels by their text", () => {
  const make = (mode: "constant" | "uniform", wgsl: string) =>
    sizedKernel(moduleBuilder(mode), "k", wgsl, { workgroups: 1 }).kernel.name;
  assert.equal(make("uniform", "a"), "k");
  assert.match(make("constant", "a"), /^k\.[0-9a-f]{8}$/);
  assert.notEqual(make("constant", "a"), make("constant", "b"));
});

Deno.test("foldGrid() covers the count within the limit", () => {
  assert.deepEqual(foldGrid(10, 16), [10, 1, 1]);
  const [x, y] = foldGrid(70_001, 65_535)!;
  assert.ok(x <= 65_535 && x * y >= 70_001 && x * y < 70_001 + 65_535);
  assert.equal(foldGrid(300, 16), undefined);
});
