import assert from "#assert";
import { parseDescriptor } from "../problem/descriptor.ts";
import { type ClaimedCase, parseClaims } from "./claims.ts";

const CASE: ClaimedCase = {
  exact: false,
  ...{ wide: false, added: true, length: 1000 },
  problem: parseDescriptor("mb1ic4ih8oc4kh3ph1"),
};

function ways(text: string, more: Partial<ClaimedCase> = {}) {
  return parseClaims(text, { ...CASE, ...more }).flatMap((claim) => claim.ways);
}

function values(text: string, key: "operands" | "results" | "sums", more?: Partial<ClaimedCase>) {
  return [...new Set(ways(text, more).map(({ arithmetic }) => arithmetic[key]))];
}

Deno.test("a claim says what operands, sums and results are rounded to", () => {
  assert.deepEqual(values("f32", "operands"), [undefined]);
  assert.deepEqual(values("f32", "operands", { wide: true }), ["f32"]);
  assert.deepEqual(values("tf32", "operands"), ["tf32", "tf32-truncated", undefined]);
  assert.deepEqual(values("bf16", "results"), ["bf16"]);
  assert.deepEqual(values("f16", "sums"), ["f32", "f16"]);
  assert.deepEqual(values("f16-f32", "sums"), ["f32"]);
  assert.deepEqual(values("f16-f32", "results"), [undefined]);
  assert.deepEqual(values("bf16-f32-bf16", "results"), ["bf16"]);
  assert.deepEqual(values("f32", "results", { results: "f16" }), ["f16"]);
  assert.deepEqual(values("f16-f32-f32", "results", { results: "f16" }), [undefined]);
});

Deno.test("a claim names Winograd's tiles, of any element type, and f32-any has all up to eight points", () => {
  assert.deepEqual(ways("winograd F(4x4,3x3)").map(({ arithmetic }) => arithmetic.tiles), [
    [{ axes: [{ n: 4, r: 3 }, { n: 4, r: 3 }] }],
  ]);
  const [half] = ways("f16-f32: Winograd f(6,3)");
  assert.equal(half!.arithmetic.transformed, "f16");
  assert.deepEqual(half!.arithmetic.tiles![0]!.axes, [{ n: 1, r: 1 }, { n: 6, r: 3 }]);
  const tiles = (more?: Partial<ClaimedCase>) =>
    ways("f32-any", more).flatMap(({ name, arithmetic }) =>
      name.includes("fft") ? [] : arithmetic.tiles?.[0]?.axes ?? []
    );
  assert.deepEqual(tiles().map(({ n }) => n), [6, 6, 4, 4, 2, 2]);
  const gradient = parseDescriptor("mb1ic4ih8oc4kh3ph1", "bwd-filter");
  assert.deepEqual(tiles({ problem: gradient }).map(({ r }) => r), [6, 6, 4, 4, 2, 2]);
  assert.deepEqual(tiles({ problem: parseDescriptor("mb1ic4ih9oc4kh3sh2") }), []);
});

Deno.test("Fourier transforms are of the whole of small results, and of tiles of others", () => {
  const names = (problem: string, op?: "bwd-filter") =>
    ways("fft", { problem: parseDescriptor(problem, op) }).map(({ name }) => name);
  assert.deepEqual(names("mb1ic4ih8oc4kh3ph1"), ["fft, fft of 16x16"]);
  assert.deepEqual(names("mb1ic4ih56oc4kh3ph1"), ["fft, fft of 32x32", "fft, fft of 64x64"]);
  assert.deepEqual(names("mb1ic4ih8oc4kh3ph1", "bwd-filter"), ["fft, fft of 16x16"]);
});

Deno.test("orders that are no others for a case are left out", () => {
  const names = (more: Partial<ClaimedCase>) => ways("f32", more).map(({ name }) => name).join();
  assert.match(names({}), /on what is added.*sums of 256/);
  assert.doesNotMatch(names({ added: false }), /added/);
  assert.doesNotMatch(names({ length: 64 }), /sums of 64|256/);
  assert.match(names({ length: 1 }), /^f32, one sum,/);
});

Deno.test("auto tries the finest arithmetic first", () => {
  const names = parseClaims("auto", { ...CASE, wide: true }).map(({ name }) => name);
  assert.deepEqual([names[0], names[1], names.at(-1)], ["f64", "f32", "bf16"]);
  assert.deepEqual(parseClaims("auto", { ...CASE, exact: true }).map(({ name }) => name), ["i8"]);
});

Deno.test("what is no arithmetic, or none of the case, is refused in a sentence", () => {
  const strided = parseDescriptor("mb1ic4ih9oc4kh3sh2");
  for (
    const [text, more, message] of [
      ["f33", {}, /there is no arithmetic "f33", expected auto, f32/],
      ["f32-f16", {}, /there is no arithmetic/],
      ["f16-f32-f32-f32", {}, /there is no arithmetic/],
      ["toString", {}, /there is no arithmetic/],
      ["", {}, /there is no arithmetic ""/],
      ["f32:strassen", {}, /there is no algorithm "strassen"/],
      ["winograd", {}, /there is no algorithm "winograd"/],
      ["winograd F(4x4x4,3x3x3)", {}, /has 3 axes, the problem has 2/],
      ["winograd F(40,3)", {}, /n \+ r - 1/],
      ["winograd F(4x4,3x3)", { problem: strided }, /take stride 1/],
      ["winograd F(4x4,3x3)", { problem: undefined }, /not of products/],
      ["i8", {}, /takes operands of i8/],
      ["f32", { exact: true }, /whose arithmetic is i8/],
    ] as const
  ) {
    assert.throws(() => ways(text, more), message, text);
  }
});
