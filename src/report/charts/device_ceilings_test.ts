import assert from "#assert";
import { deviceCeilings } from "./device_ceilings.ts";

Deno.test("deviceCeilings() knows an H200 by dtype, and nothing of other devices", () => {
  assert.deepEqual(deviceCeilings("NVIDIA H200", "f32"), { bandwidth: 4800, peak: 66_900 });
  assert.deepEqual(deviceCeilings("NVIDIA H200", "i8"), { bandwidth: 4800 });
  assert.deepEqual(deviceCeilings("llvmpipe", "f32"), {});
});
