/**
 * `deno task demo`: filters a photo with one convolution, on the GPU or, where there is no Vulkan driver, on the CPU.
 * The commands it runs are printed; results and pictures go to `out/demo/`.
 */
import { fileURLToPath } from "node:url";
import { encode } from "fast-png";
import { main } from "../src/cli/program.ts";
import { openDevice, readNpy, tensor, UnsupportedError, writeNpy } from "../mod.ts";
import { contactSheet, type Picture, pictures } from "./demo_pictures.ts";
import { FILTER_NAMES, photoFilter } from "./demo_filter.ts";

const PHOTO = new URL("../fixtures/astronaut_256x256x3_f4.npy", import.meta.url);
const OUT = "out/demo";

/** Runs a command of the program as a user would; ends the demo if it fails. */
async function run(...args: string[]): Promise<void> {
  console.log(`\n$ wgconv ${args.join(" ")}`);
  const code = await main(args);
  if (code !== 0) Deno.exit(code);
}

/** Whether a device opens: not every adapter that a system offers does. */
async function hasDevice(): Promise<boolean> {
  // Some drivers complain on stderr without it.
  if (!Deno.env.has("XDG_RUNTIME_DIR")) Deno.env.set("XDG_RUNTIME_DIR", "/tmp");
  try {
    using _gpu = await openDevice();
    return true;
  } catch (error) {
    if (error instanceof UnsupportedError) return false;
    throw error;
  }
}

async function writePicture(name: string, picture: Picture): Promise<void> {
  await Deno.writeFile(`${OUT}/${name}.png`, encode(picture));
}

const device = await hasDevice() ? "gpu" : "cpu";
if (device === "cpu") {
  console.log("There is no Vulkan driver here: the demo runs on the CPU backend.");
}
await Deno.mkdir(OUT, { recursive: true });

// The photo is H W C; a batch of one makes it N H W C. The filter is K R S C.
const photo = await readNpy(fileURLToPath(PHOTO));
if (photo.dtype !== "f32") throw new TypeError(`The photo has dtype ${photo.dtype}, expected f32`);
const [height = 0, width = 0, channels = 0] = photo.shape;
const pixels = new Float32Array(photo.data as Float32Array);
await writeNpy(`${OUT}/photo.npy`, tensor("f32", [1, height, width, channels], pixels));
const filter = photoFilter();
await writeNpy(`${OUT}/filter.npy`, filter);
console.log(`A photo of ${width}x${height}, and one filter of shape [${filter.shape.join(", ")}]:`);
console.log(FILTER_NAMES.map((name, k) => `  output channel ${k}: ${name}`).join("\n"));

const files = ["--input", `${OUT}/photo.npy`, "--filter", `${OUT}/filter.npy`];
const shape = ["--layout", "nhwc", "--padding", "2"];
await run(
  "conv",
  ...files,
  ...shape,
  "--output",
  `${OUT}/filtered.npy`,
  "--check",
  "full",
  "--device",
  device,
);

const filtered = await readNpy(`${OUT}/filtered.npy`);
const sheet = pictures(pixels, filtered.data as Float32Array, width, height);
for (const [name, picture] of sheet) await writePicture(name, picture);
await writePicture("sheet", contactSheet(sheet, 4));
console.log(
  `\nWrote ${OUT}/filtered.npy, ${sheet.length} pictures, and all of them as ${OUT}/sheet.png`,
);
