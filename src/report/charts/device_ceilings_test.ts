import assert from "#assert";
import { deviceCeilings } from "./roofline.ts";

Deno.test("deviceCeilings() knows an H200 by dtype, and nothing of other devices", () => {
  assert.deepEqual(deviceCeilings("NVIDIA H200", "f32"), { bandwidth: 4300, peak: 65_100 });
  assert.deepEqual(deviceCeilings("NVIDIA H200", "f8"), { bandwidth: 4300 });
  assert.deepEqual(deviceCeilings("llvmpipe", "f32"), {});
});
