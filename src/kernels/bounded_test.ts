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
  let x = data[min(u32(i + flat[min(u32(j), 11u)].x), arrayLength(&data) - 1u)].y;
  tile[min(u32(i % 9u), 8u)][min(u32(tile[0][min(u32(k), 4u)]), 4u)] = x;
  sums[3] = other[i];
  flat[min(u32(a[b]), 11u)] = data[min(u32(i), arrayLength(&data) - 1u)];
}`,
  );
  assert.equal(boundedIndices("fn main() { let x = v[i]; }"), "fn main() { let x = v[i]; }");
});

Deno.test("boundedIndices() ignores comments, and keeps their lines", () => {
  const text =
    "var<workgroup> a: array<f32, 4>; // a[i]\nfn f() { a[/* ] */ i] = 1; }\n/* array\n*/";
  assert.equal(
    boundedIndices(text).replaceAll(/ +/g, " "),
    "var<workgroup> a: array<f32, 4>; \nfn f() { a[min(u32( i), 3u)] = 1; }\n \n ",
  );
});

Deno.test("boundedIndices() refuses arrays that it does not see, and what it cannot tell apart", () => {
  const shared = "var<workgroup> w: array<array<f32, 4>, 8>;\n";
  for (
    const text of [
      "struct S { n: u32, all: array<f32> }",
      "alias Row = f32;",
      "fn f(a: ptr<function, f32>) {}",
      "fn f(a: array<f32, 4>) {}",
      "let a = array<f32, 2>(1, 2);",
      "const a: array<f32, 2> = array<f32, 2>(1, 2);",
      "var a = array(1f, 2f);",
      "var <workgroup> a: array<f32, 4>;",
      "var<workgroup>a: array<f32, 4>;",
      "var<workgroup> a: array <f32, 4>;",
      "var<workgroup> a: array<f32, 4,>;",
      "var<workgroup> a: array<f32, (1 << 3)>;",
      "var<workgroup> a: array<f32, 4>; fn f() { var a: array<f32, 5>; }",
      "var<workgroup> a: array<f32, 4>; fn f() { a[i",
      `${shared}fn f() { w [i][j] = 1; }`,
      `${shared}fn f() { (w)[i][j] = 1; }`,
      `${shared}fn f() { let p = &w; }`,
      `${shared}fn f() { let p = &w[i][j]; }`,
      `${shared}fn f() { let row = w[i]; }`,
      `${shared}fn f() { let all = w; }`,
      `${shared}fn f() { var w = vec4f(); w[i] = 1; }`,
      `${shared}fn f(w: u32) {}`,
    ]
  ) assert.throws(() => boundedIndices(text), TypeError, text);
  for (
    const text of [
      `${shared}fn f() { let n = arrayLength(&w) + v.w[i]; }`,
      "var<workgroup> n: array<atomic<u32>, 4>; fn f() { atomicAdd(&n[i], 1u); }",
      "var<workgroup> n: array<f32, SIZE>; fn f() { n[i] = 1; }",
      "fn f() { var sums = array<f32, 4>(); sums[i] = 1; }",
      "fn f() { var sums: array<f32, 4> = array<f32, 4>(); sums[i] = 1; }",
    ]
  ) assert.match(boundedIndices(text), /min\(u32\(i\), |arrayLength/);
});
