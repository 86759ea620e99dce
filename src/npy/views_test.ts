import assert from "#assert";
import { type Tensor, tensor } from "../tensor/tensor.ts";
import { memoryBytes } from "./bytes.ts";
import { npyBytes } from "./header.ts";
import { npySource, type TensorSource } from "./source.ts";
import { broadcastSource, broadcastsTo, permutedSource, reshapedSource } from "./views.ts";

/** 0, 1, 2 ... of a shape. */
function counting(shape: readonly number[]): Tensor<"f32"> {
  const count = shape.reduce((product, size) => product * size, 1);
  return tensor("f32", shape, Float32Array.from({ length: count }, (_, i) => i));
}

async function sourceOf(whole: Tensor): Promise<TensorSource> {
  const bytes = new Uint8Array([...npyBytes(whole)].flatMap((piece) => [...piece]));
  return await npySource(memoryBytes(bytes), "x.npy");
}

/** What a view gives, read whole and in chunks of five. */
async function valuesOf(view: TensorSource): Promise<number[]> {
  const { data, shape } = await view.readAs("f64");
  assert.deepEqual(shape, view.shape);
  const chunks: number[] = [];
  for await (const chunk of view.chunksAs("f64", 5)) {
    assert.ok(chunk.length <= 5);
    chunks.push(...chunk);
  }
  assert.deepEqual(chunks, [...data]);
  return chunks;
}

Deno.test("reshapedSource() and permutedSource() give the values in their order", async () => {
  const reshaped = reshapedSource(await sourceOf(counting([3, 4])), [1, 3, 4]);
  assert.deepEqual(await valuesOf(reshaped), [...counting([12]).data]);
  const permuted = permutedSource(await sourceOf(counting([2, 3, 4])), [2, 0, 1]);
  assert.deepEqual(permuted.shape, [4, 2, 3]);
  const expected = Array.from(
    { length: 24 },
    (_, i) => Math.floor(i / 6) + Math.floor(i / 3) % 2 * 12 + i % 3 * 4,
  );
  assert.deepEqual(await valuesOf(permuted), expected);
  assert.throws(
    () => permuted.part(0, 0, 1),
    /^TypeError: Cannot read parts of x.npy as \[4, 2, 3]/,
  );
});

Deno.test("broadcastSource() repeats as NumPy does", async () => {
  const shape = [2, 3, 2, 3];
  for (const own of [[], [1], [3], [2, 1], [3, 1, 1], [2, 1, 2, 3], [1, 3, 2, 1], [2, 3, 2, 3]]) {
    assert.ok(broadcastsTo(own, shape));
    const view = broadcastSource(await sourceOf(counting(own)), shape);
    const expected = Array.from({ length: 36 }, (_, i) => {
      const at = [Math.floor(i / 18), Math.floor(i / 6) % 3, Math.floor(i / 3) % 2, i % 3];
      const places = at.slice(shape.length - own.length);
      return own.reduce((sum, size, axis) => sum * size + (size === 1 ? 0 : places[axis]!), 0);
    });
    assert.deepEqual(await valuesOf(view), expected, `[${own}]`);
  }
  for (const own of [[2], [3, 2], [1, 2, 3, 2, 3], [0]]) assert.ok(!broadcastsTo(own, shape));
});
