import assert from "#assert";
import { contactSheet } from "../../tasks/demo_pictures.ts";
import { deno, NO_DRIVER, ROOT, temporaryDirectory } from "../cli.ts";

const DEMO = `${ROOT}tasks/demo.ts`;

Deno.test("the demo filters the photo on the GPU, checks it and paints it", async () => {
  using temporary = temporaryDirectory();
  const { code, stdout, stderr } = await deno(["run", "-A", DEMO], { cwd: temporary.path });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^verdict +pass$/m);
  // Sobel's filters and edges leave little of flat places: references near zero carry the mean.
  assert.match(stdout, /^MARE +median \d\.\d\de-7, mean /m);
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

Deno.test("the demo's sheet has a caption above each picture", () => {
  const [width, height] = [100, 60];
  const grey = {
    width,
    height,
    channels: 3 as const,
    data: new Uint8Array(width * height * 3).fill(99),
  };
  const names = ["photo", "blur", "sharpen", "sobel_x", "edges"];
  const sheet = contactSheet(names.map((name) => [name, grey]), 4);
  assert.equal(sheet.width, 4 * 104 - 4);
  const strip = sheet.height / 2 - height;
  assert.ok(strip >= 14);
  const white = (left: number, top: number) => {
    let count = 0;
    for (let y = top; y < top + strip; y++) {
      for (let x = left; x < left + width; x++) {
        if (sheet.data[(y * sheet.width + x) * 3] === 255) count++;
      }
    }
    return count;
  };
  const captions = names.map((_, i) => white(i % 4 * 104, Math.floor(i / 4) * (strip + height)));
  // Four pixels a dot, and letters have eleven dots or more.
  captions.forEach((count, i) => assert.ok(count >= 4 * 11 * (names[i]!.length - 1), names[i]));
  assert.equal(white(104, strip + height), 0);
  assert.throws(() => contactSheet([["q?", grey]], 4), RangeError);
});
