import assert from "#assert";
import { deno, NO_DRIVER, ROOT, temporaryDirectory } from "./cli.ts";

const DEMO = `${ROOT}tasks/demo.ts`;

Deno.test("the demo filters the photo on the GPU, checks it and paints it", async () => {
  using temporary = temporaryDirectory();
  const { code, stdout, stderr } = await deno(["run", "-A", DEMO], { cwd: temporary.path });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^verdict +pass$/m);
  const names = [...Deno.readDirSync(`${temporary.path}/out/demo`)].map(({ name }) => name);
  assert.equal(names.filter((name) => name.endsWith(".png")).length, 9);
  assert.ok(names.includes("filtered.npy"));
});

Deno.test("without a driver the demo runs on the CPU and says so", async () => {
  using temporary = temporaryDirectory();
  const options = { cwd: temporary.path, env: NO_DRIVER };
  const { code, stdout, stderr } = await deno(["run", "-A", DEMO], options);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^There is no Vulkan driver here/);
  assert.match(stdout, /^device +CPU/m);
});
