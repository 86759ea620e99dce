import assert from "#assert";
import { DEFAULT_LIMITS, type Pass, type Plan } from "../algorithms/plan.ts";
import { UnsupportedError } from "../errors.ts";
import type { Kernel } from "../kernels/kernel.ts";
import { checkPlan } from "./checks.ts";
import { saxpyPlan } from "../../tests/support/test_plans.ts";

const DEVICE = { limits: DEFAULT_LIMITS, features: new Set<string>() };
const whole = (buffer: number) => ({ buffer, offset: 0, size: 4000 });

function refuses(plan: Plan, kind: typeof UnsupportedError | typeof RangeError, message: RegExp) {
  assert.throws(
    () => checkPlan(plan, DEVICE),
    (error: unknown) => error instanceof kind && message.test(error.message),
    `expected ${message}`,
  );
}

Deno.test("checkPlan() takes a sound plan", () => {
  checkPlan(saxpyPlan(), DEVICE);
});

Deno.test("checkPlan() names the kernel and the limit that a device lacks", () => {
  const cases: [Partial<Pass>, Partial<Kernel>, RegExp][] = [
    [{}, { workgroupBytes: 16385 }, /16385 bytes of workgroup memory.*StorageSize is 16384/],
    [{}, { workgroupSize: [16, 16, 2] }, /needs 512 threads in a workgroup.*Workgroup is 256/],
    [{ grid: [1, 65536, 1] }, {}, /needs 65536 workgroups along one axis.*is 65535/],
    [{}, { features: ["shader-f16"] }, /the device was opened without shader-f16/],
    [{}, { bindings: new Array(9).fill("read") }, /needs 9 storage bindings/],
  ];
  for (const [pass, kernel, message] of cases) {
    const plan = saxpyPlan(pass, kernel);
    refuses(plan, UnsupportedError, message);
    refuses(plan, UnsupportedError, /^Cannot run test_saxpy: /);
  }
});

Deno.test("checkPlan() refuses a binding larger than the device binds", () => {
  const limits = { ...DEFAULT_LIMITS, maxStorageBufferBindingSize: 1000 };
  assert.throws(() => checkPlan(saxpyPlan(), { ...DEVICE, limits }), {
    name: "UnsupportedError",
    message: "Cannot run test_saxpy: binding 0 (x) needs 4000 bytes, the device's " +
      "maxStorageBufferBindingSize is 1000",
  });
});

Deno.test("checkPlan() refuses plans that contradict themselves", () => {
  const cases: [Partial<Pass>, RegExp][] = [
    [{ bindings: [whole(0), whole(1)] }, /has 3 storage bindings, the pass gives 2/],
    [{ bindings: [whole(0), whole(2), whole(2)] }, /binding 1 \(z\) reads a buffer that the same/],
    [{ bindings: [whole(0), whole(1), whole(3)] }, /binding 2 names buffer 3/],
    [{ bindings: [{ buffer: 0, offset: 128, size: 4 }, whole(1), whole(2)] }, /no multiple of 256/],
    [{ bindings: [{ buffer: 0, offset: 256, size: 4000 }, whole(1), whole(2)] }, /covers 4000/],
    [{ bindings: [{ buffer: 0, offset: 0, size: 0 }, whole(1), whole(2)] }, /covers 0 bytes/],
    [{ uniforms: new Uint32Array(0) }, /its uniforms are missing/],
    [{ grid: [1, 1.5, 1] }, /the grid is 1 x 1\.5 x 1/],
  ];
  for (const [pass, message] of cases) refuses(saxpyPlan(pass), RangeError, message);
});
