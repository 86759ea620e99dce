/** Runs of values of two bytes as channels, on the driver at hand, against what their definition says. */
import assert from "#assert";
import fc from "fast-check";
import { pass } from "../../src/algorithms/passes.ts";
import { expectPlanned } from "../../src/algorithms/refusal.ts";
import { BufferList } from "../../src/algorithms/tensors.ts";
import { download, upload } from "../../src/gpu/buffers.ts";
import { type GpuDevice, openDevice } from "../../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../../src/gpu/execute.ts";
import { unfoldedElements, unfoldKernel, type UnfoldShape } from "../../src/kernels/im2col.ts";
import { sizeModes } from "../random_axes.ts";
import { backend, full } from "./driver.ts";

/** What the definition says of a shape and its source. */
function unfolded(shape: UnfoldShape, source: Uint16Array): Uint16Array {
  const { axis: { places, taps, size, stride, padding }, rows, paddedChannels } = shape;
  return Uint16Array.from({ length: unfoldedElements(shape) }, (_, i) => {
    const channel = i % paddedChannels;
    const line = Math.floor(i / paddedChannels);
    const x = line % places * stride + channel - padding;
    const row = Math.floor(line / places);
    if (channel >= taps || x < 0 || x >= size) return 0;
    return source[Math.floor(row / rows) * shape.batchStride + row % rows * shape.rowStride + x]!;
  });
}

async function run(
  gpu: GpuDevice,
  shape: UnfoldShape,
  source: Uint16Array,
  mode: "constant" | "uniform",
) {
  const buffers = new BufferList(gpu.limits, mode);
  const unpacked = buffers.add("input", "input", source.length, "bf16");
  const packed = buffers.add("output", "output", unfoldedElements(shape), "bf16");
  const at = { unpacked, packed };
  const kernel = unfoldKernel(buffers.module(at), shape, "bf16");
  assert.match(kernel.kernel.name, /^unfold_halves/);
  const plan = expectPlanned(buffers.plan({
    ...{ kernel: kernel.kernel.name, algorithm: "none", multiplications: 0, arithmetic: {} },
    ...{ passes: [pass(kernel, buffers, at)], notes: [] },
  }));
  using list = createPlanBuffers(gpu, plan);
  upload(gpu, list.get("input"), 0, source);
  using prepared = await preparePlan(gpu, plan, list);
  await execute(gpu, prepared);
  const result = new Uint16Array(unfoldedElements(shape));
  await download(gpu, list.get("output"), 0, result.byteLength, new Uint8Array(result.buffer));
  return result;
}

Deno.test("runs of halves are written once more, whatever they begin and end at", async () => {
  using gpu = await openDevice({ backend });
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        batch: fc.integer({ min: 1, max: 3 }),
        rows: fc.integer({ min: 1, max: 3 }),
        taps: fc.integer({ min: 1, max: 33 }),
        size: fc.integer({ min: 1, max: 60 }),
        stride: fc.integer({ min: 1, max: 12 }),
        padding: fc.integer({ min: 0, max: 20 }),
        places: fc.integer({ min: 1, max: 9 }),
        apart: fc.integer({ min: 0, max: 3 }),
      }),
      sizeModes,
      async ({ batch, rows, taps, size, stride, padding, places, apart }, mode) => {
        const rowStride = size + apart;
        const batchStride = rows * rowStride + apart;
        const shape: UnfoldShape = {
          ...{ batch, rows, batchStride, rowStride, channels: 1, channelStride: 1 },
          axis: { places, taps, size, stride, padding, dilation: 1, sourceStride: 1 },
          paddedChannels: Math.ceil(taps / 8) * 8,
        };
        // An even number: buffers are of whole words.
        const length = 2 * Math.ceil(batch * batchStride / 2);
        const source = Uint16Array.from({ length }, (_, i) => 1 + i % 65_535);
        const expected = unfolded(shape, source);
        assert.deepEqual(await run(gpu, shape, source, mode ?? "constant"), expected);
      },
    ),
    { numRuns: full ? 600 : 80, seed: 20261129 },
  );
});
