import assert from "#assert";
import { join } from "node:path";
import { calibrationPath, isNews } from "./calibration.ts";

Deno.test("isNews() is so once of a GPU that is unknown, and never of an H100 or H200", () => {
  const folder = Deno.makeTempDirSync();
  try {
    const said = join(folder, "devices", "x.noted");
    const arc = { adapter: "Intel Arc A770" };
    assert.deepEqual([isNews(arc, said), isNews(arc, said)], [true, false]);
    assert.deepEqual([isNews(arc, undefined), isNews(arc, undefined)], [true, true]);
    // Where nothing can be written, it is said again.
    const barred = join(said, "below", "a file");
    assert.deepEqual([isNews(arc, barred), isNews(arc, barred)], [true, true]);
    for (const adapter of ["NVIDIA H200", "NVIDIA H100 80GB HBM3"]) {
      assert.equal(isNews({ adapter }, undefined), false);
    }
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("calibrationPath() has a file for each adapter, driver and backend", () => {
  const device = { backend: "wgpu", adapter: "A/B \u00e9 GPU (x)", driver: "1" };
  const paths = [
    device,
    { ...device, driver: "2" },
    { ...device, backend: "dawn" },
    { ...device, adapter: "A B GPU" },
  ].map((one) => calibrationPath(one)!);
  assert.equal(new Set(paths).size, 4);
  assert.match(paths[0]!, /[\\/]wgconv[\\/]devices[\\/]A-B-GPU-x-[0-9a-f]{8}\.json$/);
  assert.equal(paths[0], calibrationPath({ ...device }));
});
