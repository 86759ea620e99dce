/** Every generated kernel passes Dawn's Tint, on its null device. */
import assert from "#assert";
import { findErrors } from "./kernels/every.ts";

Deno.test("every kernel is valid WGSL to dawn", async () => {
  const { count, errors } = await findErrors("dawn");
  assert.deepEqual(errors, []);
  assert.ok(count > 100, `${count} kernels`);
});
