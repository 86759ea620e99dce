import assert from "#assert";
import { DEFAULT_LIMITS } from "./plan.ts";
import { BufferList } from "./tensors.ts";

Deno.test("bindings of a split buffer cover it once, and end where it ends", () => {
  const limits = { ...DEFAULT_LIMITS, maxStorageBufferBindingSize: 1000 };
  const buffers = new BufferList(limits);
  const whole = buffers.add("whole", "workspace", 250, "f32");
  const uneven = buffers.add("uneven", "workspace", 600, "f32");
  const even = buffers.add("even", "workspace", 2 * 192, "f32");
  assert.deepEqual(buffers.bindings(whole), [{ buffer: 0, offset: 0, size: 1000 }]);
  // Parts begin at multiples of 256 bytes.
  assert.deepEqual(buffers.bindings(uneven), [
    { buffer: 1, offset: 0, size: 768 },
    { buffer: 1, offset: 768, size: 768 },
    { buffer: 1, offset: 1536, size: 768 },
    { buffer: 1, offset: 2304, size: 96 },
  ]);
  assert.deepEqual(buffers.bindings(even), [
    { buffer: 2, offset: 0, size: 768 },
    { buffer: 2, offset: 768, size: 768 },
  ]);
  assert.equal(buffers.refused, undefined);
});
