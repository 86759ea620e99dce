/** Every generated kernel passes Deno's naga; wgsl_dawn_test.ts is its neighbour, a file of its own so that both run at once. */
import assert from "#assert";
import { findErrors } from "./kernels/every.ts";

Deno.test("every kernel is valid WGSL to wgpu", async () => {
  const { count, errors } = await findErrors("wgpu");
  assert.deepEqual(errors, []);
  assert.ok(count > 100, `${count} kernels`);
});
