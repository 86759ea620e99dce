import assert from "#assert";
import { chosenBackend } from "./open_gpu.ts";

Deno.test("chosenBackend() takes what is asked for, and wgpu where no matrix units would multiply", async () => {
  assert.equal(await chosenBackend({ backend: "dawn" }), "dawn");
  assert.equal(await chosenBackend({ backend: "auto", onUnits: false }), "wgpu");
});
