import assert from "#assert";
import { tensor } from "../tensor/tensor.ts";
import { picture, type PictureLayout } from "./tensor_picture.ts";

function counting(...shape: number[]) {
  const count = shape.reduce((a, b) => a * b, 1);
  return tensor("f32", shape, Float32Array.from({ length: count }, (_, i) => i));
}

Deno.test("picture() finds pixels in every layout", () => {
  const cases: [shape: number[], layout: PictureLayout | undefined, pixels: number[]][] = [
    [[2, 2], undefined, [0, 1, 2, 3]],
    [[3, 1, 2], undefined, [0, 2, 4, 1, 3, 5]],
    [[1, 2, 3], undefined, [0, 1, 2, 3, 4, 5]],
    [[1, 2, 3], "chw", [0, 1, 2, 3, 4, 5]],
    [[1, 3, 1, 2], undefined, [0, 2, 4, 1, 3, 5]],
    [[1, 2, 2, 3], undefined, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]],
    [[1, 1, 2, 3], "nhwc", [0, 1, 2, 3, 4, 5]],
  ];
  for (const [shape, layout, pixels] of cases) {
    const range: [number, number] = [0, 255];
    const { data } = picture(counting(...shape), "x.npy", { index: 0, layout, range });
    assert.deepEqual([...data], pixels, `${shape} ${layout}`);
  }
});

Deno.test("picture() clamps to the range, rounds, and makes NaN black", () => {
  const source = tensor("f32", [1, 6], new Float32Array([-5, 0, 0.5, 1, Infinity, NaN]));
  const { data } = picture(source, "x.npy", { index: 0, range: [0, 1] });
  assert.deepEqual([...data], [0, 0, 128, 255, 255, 0]);
  const own = picture(source, "x.npy", { index: 0 });
  assert.deepEqual(own.range, [-5, 1]);
});

Deno.test("picture() keeps u8 as it is and a constant black", () => {
  const bytes = tensor("u8", [1, 3], new Uint8Array([3, 7, 200]));
  assert.deepEqual([...picture(bytes, "x.npy", { index: 0 }).data], [3, 7, 200]);
  const constant = tensor("f32", [1, 2], new Float32Array([4, 4]));
  assert.deepEqual([...picture(constant, "x.npy", { index: 0 }).data], [0, 0]);
});

Deno.test("picture() says where no value is finite, and draws infinities as ends", () => {
  const drawn = (...values: number[]) =>
    picture(tensor("f32", [1, values.length], new Float32Array(values)), "x.npy", { index: 0 });
  const none = drawn(NaN, Infinity, -Infinity);
  assert.deepEqual([none.range, ...none.data], [null, 0, 255, 0]);
  const constant = drawn(4, Infinity, -Infinity, NaN);
  assert.deepEqual([constant.range, ...constant.data], [[4, 4], 0, 255, 0, 0]);
});

Deno.test("picture() refuses what makes no picture", () => {
  assert.throws(() => picture(counting(4), "x.npy", { index: 0 }), {
    name: "TypeError",
    message: "Cannot show x.npy: a picture has 2 to 4 axes, the tensor has 1",
  });
  assert.throws(() => picture(counting(4, 4), "x.npy", { index: 0, layout: "hwc" }), {
    message: "Cannot show x.npy: layout hwc has 3 axes, the tensor has 2",
  });
  assert.throws(() => picture(counting(1, 1, 2, 2), "x.npy", { index: 1 }), {
    name: "RangeError",
    message: "Cannot show x.npy: there is no image 1, only 0 to 0",
  });
  assert.throws(() => picture(counting(1, 5, 2, 2), "x.npy", { index: 0, channel: 5 }), {
    message: "Cannot show x.npy: there is no channel 5, only 0 to 4",
  });
  // The guess is wrong for channels last, and silent about it misleads.
  const many = "12 channels make no picture: pick one with --channel";
  assert.throws(() => picture(counting(12, 14, 2), "x.npy", { index: 0 }), {
    message: `Cannot show x.npy: ${many}; the axes were taken as chw, --layout says others`,
  });
  assert.throws(() => picture(counting(12, 14, 2), "x.npy", { index: 0, layout: "chw" }), {
    message: `Cannot show x.npy: ${many}`,
  });
  assert.throws(() => picture(counting(0, 4), "x.npy", { index: 0 }), {
    message: "Cannot show x.npy: [0,4] has no pixels",
  });
});
