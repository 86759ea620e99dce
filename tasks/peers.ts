/**
 * `deno task peers`: the libraries that `bench/peers/webgpu` times, of pinned versions, and its program, in `dist/peers`: all that a
 * machine without a network needs beside Deno.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fetchPackage } from "../src/npm_package.ts";

const TO = "dist/peers";
const WASM = "ort-wasm-simd-threaded.asyncify";
const NODE = "node_modules/onnxruntime-node";
const NATIVE = "bin/napi-v6/linux/x64";
/** Parts of packages, and where they go. */
const FILES = [
  ...["ort.webgpu.min.mjs", `${WASM}.mjs`, `${WASM}.wasm`].map((file) =>
    ["onnxruntime-web", `dist/${file}`, file] as const
  ),
  ...["package.json", "dist", NATIVE].map((part) =>
    ["onnxruntime-node", part, `${NODE}/${part}`] as const
  ),
  ["onnxruntime-common", "", "node_modules/onnxruntime-common"],
] as const;
const ENTRIES = {
  "tfjs.js":
    'import "npm:@tensorflow/tfjs-backend-webgpu@4.22.0"; export * from "npm:@tensorflow/tfjs-core@4.22.0";',
  "jax-js.js": 'export * from "npm:@jax-js/jax@0.1.25";',
};

async function bundle(from: string, file: string, ...options: string[]): Promise<void> {
  const args = ["bundle", "-q", "--minify", ...options, "--output", join(TO, file), from];
  const { code } = await new Deno.Command(Deno.execPath(), { args }).spawn().status;
  if (code !== 0) throw new Error(`Cannot bundle ${from}`);
}

mkdirSync(TO, { recursive: true });
for (const [file, text] of Object.entries(ENTRIES)) {
  writeFileSync(join(TO, `of-${file}`), text);
  await bundle(join(TO, `of-${file}`), file, "--no-config", "--no-lock");
}
await bundle("bench/peers/webgpu/peers.ts", "peers.js");
for (const [name, from, to] of FILES) {
  const said = { doing: `Cannot bundle ${name}`, how: "run it with -A", offline: "npm is needed" };
  const folder = await fetchPackage({ name, version: "1.30.0", ...said });
  cpSync(join(folder, from), join(TO, to), { recursive: true });
}
