/**
 * `deno task peers`: the libraries that `bench/peers/webgpu` times, of pinned versions, and its program, in `dist/peers`: all that a
 * machine without a network needs beside Deno.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { fetchPackage, onFetch } from "../src/npm_package.ts";

const TO = "dist/peers";
/** What is bundled of npm. */
const LIBRARIES = {
  "tfjs": `import "npm:@tensorflow/tfjs-backend-webgpu@4.22.0";
export * from "npm:@tensorflow/tfjs-core@4.22.0";`,
  "jax-js": 'export * from "npm:@jax-js/jax@0.1.25";',
};
const ONNXRUNTIME = "1.30.0";
const WASM = "ort-wasm-simd-threaded.asyncify";
/** Packages, their megabytes, and the files and folders that are copied: to where they are found, or into the package's folder. */
const COPIED = [
  ["onnxruntime-web", 33, ["ort.webgpu.min.mjs", `${WASM}.mjs`, `${WASM}.wasm`]],
  ["onnxruntime-node", 113, ["package.json", "dist", "bin/napi-v6/linux/x64"]],
  ["onnxruntime-common", 0.1, ["package.json", "dist/cjs"]],
] as const;

async function bundle(from: string, file: string, ...options: string[]): Promise<void> {
  const args = ["bundle", "-q", "--minify", ...options, "--output", `${TO}/${file}`, from];
  const { code } = await new Deno.Command(Deno.execPath(), { args }).spawn().status;
  if (code !== 0) throw new Error(`Cannot bundle ${from}`);
}

mkdirSync(TO, { recursive: true });
for (const [name, text] of Object.entries(LIBRARIES)) {
  writeFileSync(`${TO}/entry-${name}.js`, text);
  await bundle(`${TO}/entry-${name}.js`, `${name}.js`, "--no-config", "--no-lock");
}
await bundle("bench/peers/webgpu/peers.ts", "peers.js");
onFetch(console.log);
for (const [name, megabytes, files] of COPIED) {
  const said = { doing: `Cannot bundle ${name}`, how: "run it with -A", offline: "npm is needed" };
  const native = { name, version: ONNXRUNTIME, title: name, megabytes };
  const folder = await fetchPackage({ ...native, ...said });
  for (const file of files) {
    const [from, to] = name === "onnxruntime-web" ? ["dist/", ""] : ["", `node_modules/${name}/`];
    cpSync(`${folder}/${from}${file}`, `${TO}/${to}${file}`, { recursive: true });
  }
}
