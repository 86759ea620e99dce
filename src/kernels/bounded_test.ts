import assert from "#assert";
import { boundedIndices } from "./bounded.ts";

Deno.test("boundedIndices() holds indices below the ends of arrays of every kind", () => {
  const wgsl = `@group(0) @binding(0) var<storage, read> data: array<vec4<f32>>;
var<workgroup> tile: array<array<f32, 5>, 9>;
var<workgroup> flat: array<vec4f, 12>;
fn main() {
  var sums: array<f32, 4>;
  let x = data[i + flat[j].x].y;
  tile[i % 9u][tile[0][k]] = x;
  sums[3] = other[i];
  flat[a[b]] = data[i];
}`;
  assert.equal(
    boundedIndices(wgsl),
    `@group(0) @binding(0) var<storage, read> data: array<vec4<f32>>;
var<workgroup> tile: array<array<f32, 5>, 9>;
var<workgroup> flat: array<vec4f, 12>;
fn main() {
  var sums: array<f32, 4>;
  let x = data[min(i + flat[min(j, 11u)].x, arrayLength(&data) - 1u)].y;
  tile[min(i % 9u, 8u)][min(tile[0][min(k, 4u)], 4u)] = x;
  sums[3] = other[i];
  flat[min(a[b], 11u)] = data[min(i, arrayLength(&data) - 1u)];
}`,
  );
  assert.equal(boundedIndices("fn main() { let x = v[i]; }"), "fn main() { let x = v[i]; }");
});

Deno.test("boundedIndices() refuses arrays that it does not see, and what it cannot tell apart", () => {
  for (
    const text of [
      "struct S { n: u32, all: array<f32> }",
      "alias Row = array<f32, 4>;",
      "fn f(a: ptr<function, array<f32, 4>>) {}",
      "let a = array<f32, 2>(1, 2);",
      "const a: array<f32, 2> = array<f32, 2>(1, 2);",
    ]
  ) assert.throws(() => boundedIndices(text), /no variables of their own/);
  assert.throws(
    () => boundedIndices("var<workgroup> a: array<f32, 4>; fn f() { var a: array<f32, 5>; }"),
    /two arrays are named a/,
  );
  assert.throws(() => boundedIndices("var<workgroup> a: array<f32, 4>; a[i"), /never closed/);
});
