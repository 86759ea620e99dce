import assert from "#assert";
import type { Kernel } from "../kernels/kernel.ts";
import { BACKENDS } from "./provider.ts";
import { SAXPY } from "./test_plans.ts";
import { openValidator, validateWgsl } from "./validate.ts";

/** Uses features whose `enable` lines differ between the backends. */
const HALVES: Kernel = {
  name: "test_halves",
  wgsl: `
@group(0) @binding(0) var<storage, read_write> z: array<f16>;
var<workgroup> tile: array<vec4f, 2048>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) id: u32) {
  tile[id] = vec4f(f32(z[id]));
  workgroupBarrier();
  z[id] = f16(subgroupAdd(tile[63 - id].x));
}`,
  workgroupSize: [64, 1, 1],
  workgroupBytes: 32768,
  bindings: ["write"],
  features: ["shader-f16", "subgroups"],
};

for (const backend of BACKENDS) {
  Deno.test(`validateWgsl() finds nothing wrong with sound kernels (${backend})`, async () => {
    using validator = await openValidator(backend);
    assert.deepEqual(await validator.validate(SAXPY), []);
    assert.deepEqual(await validator.validate(HALVES), []);
  });

  Deno.test(`validateWgsl() shows the line that is wrong (${backend})`, async () => {
    const wgsl = SAXPY.wgsl.replace("p.factor *", "nothing *");
    const [message] = await validateWgsl({ ...SAXPY, wgsl }, backend);
    assert.equal(message?.type, "error");
    assert.match(message?.message, /nothing.*\(line 8, column \d+\)\n {4}8 \|/s);
  });

  Deno.test(`validateWgsl() compares the WGSL with the kernel's bindings (${backend})`, async () => {
    const messages = await validateWgsl(
      { ...SAXPY, bindings: ["read", "read", "read", "uniform"] },
      backend,
    );
    assert.deepEqual(messages.map(({ type }) => type), ["error"]);
  });

  Deno.test(`validateWgsl() names features the backend has not (${backend})`, async () => {
    const messages = await validateWgsl({ ...SAXPY, features: ["no-such-feature"] }, backend);
    assert.equal(messages.length, 1);
    assert.match(messages[0]?.message, /has no no-such-feature$/);
  });
}

Deno.test("validateWgsl() through Dawn finds a barrier that not all threads reach", async () => {
  const wgsl = HALVES.wgsl.replace("workgroupBarrier();", "if (id < 9) { workgroupBarrier(); }");
  const messages = await validateWgsl({ ...HALVES, wgsl }, "dawn");
  assert.ok(messages.some(({ type, message }) => type === "error" && /uniform/.test(message)));
});
