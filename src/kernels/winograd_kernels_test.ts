import assert from "#assert";
import { transpose } from "../winograd/matrix.ts";
import { winogradTransform } from "../winograd/transform.ts";
import { NO_STEPS } from "./epilogue.ts";
import { moduleBuilder, WHOLE } from "./module.ts";
import { outputTransformKernel } from "./winograd_output.ts";
import { type DataTransform, patchTransformKernel } from "./winograd_transform.ts";
import { threadCount, type TiledTensor } from "./winograd_tiles.ts";

const { a, d } = winogradTransform(4, 3);
const TENSORS = { patches: WHOLE, matrices: WHOLE, result: WHOLE };
const stack = { along: "tile", tiles: 512, channels: 16 } as const;

/** Two images of 16 channels in nchw, in tiles of 4 x 4. */
function images(height: number, width: number, padding = 0): TiledTensor {
  const axis = (size: number, stride: number) => ({
    size,
    stride,
    tiles: Math.ceil(size / 4),
    step: 4,
    origin: -padding,
    dilation: 1,
  });
  return {
    groups: 1,
    groupStride: 16 * height * width,
    batch: 2,
    batchStride: 16 * height * width,
    channels: 16,
    channelStride: height * width,
    batchInner: false,
    axes: [axis(height, width), axis(width, 1)],
  };
}

function patches(tensor: TiledTensor) {
  return {
    name: "data_m4x4r3x3",
    tensor,
    matrices: [transpose(d), transpose(d)],
    stack,
    threads: { tiles: 98, channels: 16 },
    start: 0,
    stored: "f32" as const,
  } as const;
}

function outputs(tensor: TiledTensor) {
  return {
    name: "m4x4r3x3",
    tensor,
    matrices: [transpose(a), transpose(a)],
    masked: true,
    stack,
    start: 0,
    stored: "f32" as const,
  } as const;
}

Deno.test("patches are read by fours where rows are whole vectors", () => {
  const transform = (shape: DataTransform) =>
    patchTransformKernel(moduleBuilder("uniform", TENSORS), shape, "f32").kernel;
  const even = transform(patches(images(28, 28, 1)));
  assert.equal(even.name, "winograd_data_m4x4r3x3_f32_tile_x4o1");
  // Three vectors cover six elements from -1 on, for each of six rows.
  assert.equal(even.wgsl.match(/patches_data\[/g)!.length, 18);
  assert.equal(even.wgsl.match(/matrices_data\[/g)!.length, 36);
  const odd = transform(patches(images(28, 27, 1)));
  assert.equal(odd.name, "winograd_data_m4x4r3x3_f32_tile");
  assert.equal(odd.wgsl.match(/patches_data\[/g)!.length, 36);
  const shifted = { ...patches(images(28, 28, 1)), start: 2 };
  assert.match(transform(shifted).name, /_tile$/);
});

Deno.test("results leave by fours, or through workgroup memory where rows are no whole vectors", () => {
  const kernel = (tensor: TiledTensor) =>
    outputTransformKernel(moduleBuilder("uniform", TENSORS), outputs(tensor), NO_STEPS, "f32")
      .kernel;
  const even = kernel(images(28, 28));
  assert.equal(even.name, "winograd_output_m4x4r3x3_f32_tile_x4");
  assert.equal(even.wgsl.match(/result_data\[/g)!.length, 4);
  assert.equal(even.workgroupBytes, 0);
  const odd = kernel(images(14, 14));
  assert.equal(odd.name, "winograd_output_m4x4r3x3_f32_tile_staged");
  assert.equal(odd.workgroupBytes, 4 * 128 * 16);
  assert.ok(!kernel({ ...images(14, 14), batchInner: true }).name.includes("staged"));
});

Deno.test("workgroups cover all threads", () => {
  assert.equal(threadCount(2, { tiles: 98, channels: 16 }), 2 * 98 * 16);
  const tensor = images(28, 28);
  const patched = patchTransformKernel(moduleBuilder("constant", TENSORS), patches(tensor), "f32");
  assert.equal(patched.workgroups, Math.ceil(98 * 16 / 256));
  const made = outputTransformKernel(
    moduleBuilder("constant", TENSORS),
    outputs(tensor),
    NO_STEPS,
    "f32",
  );
  assert.equal(made.workgroups, Math.ceil(98 * 16 / 128));
});
