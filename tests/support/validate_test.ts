import assert from "#assert";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { BACKENDS } from "../../src/gpu/provider.ts";
import { SAXPY } from "./test_plans.ts";
import { openValidator, validateWgsl } from "./validate.ts";

/** Uses a feature whose `enable` line only Dawn wants, and more memory than its null device has. */
const LANES: Kernel = {
  name: "test_lanes",
  wgsl: `
@group(0) @binding(0) var<storage, read_write> z: array<f32>;
var<workgroup> tile: array<vec4f, 2048>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) id: u32) {
  tile[id] = vec4f(z[id]);
  workgroupBarrier();
  z[id] = subgroupAdd(tile[63 - id].x);
}`,
  workgroupSize: [64, 1, 1],
  workgroupBytes: 32768,
  bindings: ["write"],
  features: ["subgroups"],
};

/** Both want an `enable` line for this one. */
const HALVES: Kernel = {
  ...LANES,
  name: "test_halves",
  wgsl: LANES.wgsl.replace("array<f32>", "array<f16>").replace("vec4f(z[id])", "vec4f(f32(z[id]))")
    .replace("= subgroupAdd(tile[63 - id].x)", "= f16(subgroupAdd(tile[63 - id].x))"),
  features: ["shader-f16", "subgroups"],
};

for (const backend of BACKENDS) {
  Deno.test(`validateWgsl() finds nothing wrong with sound kernels (${backend})`, async () => {
    using validator = await openValidator(backend);
    assert.deepEqual(await validator.validate(SAXPY), []);
    assert.deepEqual(await validator.validate(LANES), []);
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

Deno.test("validateWgsl() takes f16 wherever it is to be had", async () => {
  assert.deepEqual(await validateWgsl(HALVES, "dawn"), []);
  using gpu = await openDevice({ optionalFeatures: ["shader-f16"] });
  const expected = gpu.features.has("shader-f16") ? [] : ["the adapter has no shader-f16"];
  const messages = await validateWgsl(HALVES, "wgpu");
  assert.deepEqual(messages.map(({ message }) => message), expected);
});

Deno.test("validateWgsl() through Dawn finds a barrier that not all threads reach", async () => {
  const wgsl = LANES.wgsl.replace("workgroupBarrier();", "if (id < 9) { workgroupBarrier(); }");
  const messages = await validateWgsl({ ...LANES, wgsl }, "dawn");
  assert.ok(messages.some(({ type, message }) => type === "error" && /uniform/.test(message)));
});
