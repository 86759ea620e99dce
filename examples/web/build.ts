/**
 * Builds the page: `deno run -A examples/web/build.ts [--output dist/web] [--serve 8000]`. Any file server can serve what
 * it writes. Browsers have WebGPU for localhost and for pages over HTTPS.
 */
import { resolve } from "node:path";
import { encode } from "fast-png";
import { readNpy } from "../../mod.ts";
import { bundleForBrowsers } from "../../tasks/browser_bundle.ts";
import { readOptions, wholeNumber } from "../arguments.ts";

const HERE = import.meta.dirname!;
const PHOTO = `${HERE}/../../fixtures/astronaut_256x256x3_f4.npy`;
const TYPES: Readonly<Record<string, string>> = {
  html: "text/html",
  js: "text/javascript",
  png: "image/png",
};

const DOING = "Cannot build";
const USAGE = "deno run -A examples/web/build.ts [--output dist/web] [--serve 8000]";
const values = readOptions(DOING, USAGE, {
  output: { type: "string", default: "dist/web" },
  serve: { type: "string" },
});
const port = values.serve === undefined ? undefined : wholeNumber(DOING, "--serve", values.serve);
await Deno.mkdir(values.output, { recursive: true });
await bundleForBrowsers(`${HERE}/main.ts`, resolve(values.output, "main.js"), { minify: true });
await Deno.copyFile(`${HERE}/index.html`, `${values.output}/index.html`);

const photo = await readNpy(PHOTO);
const [height = 0, width = 0] = photo.shape;
const data = Uint8Array.from(photo.data as Float32Array, (value) => Math.round(255 * value));
await Deno.writeFile(`${values.output}/photo.png`, encode({ width, height, channels: 3, data }));
console.log(`${values.output}: index.html, main.js, photo.png`);

if (port !== undefined) {
  Deno.serve({ port, hostname: "127.0.0.1" }, async (request) => {
    const pathname = decodeURIComponent(new URL(request.url).pathname);
    const name = pathname === "/" ? "index.html" : pathname.slice(1);
    const type = TYPES[/\.(\w+)$/.exec(name)?.[1] ?? ""];
    if (type === undefined || name.includes("/")) return new Response(null, { status: 404 });
    const file = await Deno.readFile(`${values.output}/${name}`);
    return new Response(file, { headers: { "content-type": type } });
  });
}
