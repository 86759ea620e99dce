/**
 * How fast a kernel copies memory, by the width of a load and a store and by how many a thread does:
 *   deno run -A bench/copy.ts [--mib 512] [--backend dawn]
 * TB/s, read and written together. Threads side by side load side by side; those of a workgroup that do several are a
 * workgroup apart. What should not fit the cache twice: 512 MiB read, 512 written.
 */
import { parseArgs } from "node:util";
import { openDevice } from "../src/gpu/device.ts";
import { timeProbe } from "./probes/probe.ts";

const THREADS = 256;
const WIDTHS = [["f32", 1], ["vec2f", 2], ["vec4f", 4]] as const;
const EACH = [1, 2, 4, 8];

const { values } = parseArgs({
  options: { mib: { type: "string" }, backend: { type: "string", default: "wgpu" } },
});
const backend = values.backend === "dawn" ? "dawn" : "wgpu";
using gpu = await openDevice({ backend, robust: false });
const words = Number(values.mib ?? (gpu.info.software ? 4 : 512)) * 2 ** 18;
const data = new Float32Array(words).map((_, i) => i % 9973);
console.log(`${gpu.info.adapter}: a copy of ${words / 2 ** 18} MiB`);
console.log("width  each   TB/s");
for (const [element, width] of WIDTHS) {
  for (const each of EACH) {
    const workgroups = words / width / THREADS / each;
    const wgsl = [
      `@compute @workgroup_size(${THREADS})`,
      "fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) grid: vec3u,",
      "  @builtin(local_invocation_index) t: u32) {",
      "  let id = group.x + group.y * grid.x;",
      `  if (id >= ${workgroups}u) { return; }`,
      `  let first = id * ${THREADS * each}u + t;`,
      // All loads before the first store: they could be of one place.
      ...Array.from({ length: each }, (_, i) => `  let v${i} = data[first + ${i * THREADS}u];`),
      ...Array.from({ length: each }, (_, i) => `  result[first + ${i * THREADS}u] = v${i};`),
      "}",
    ].join("\n");
    const { ns, result } = await timeProbe(gpu, {
      name: `copy_${element}_x${each}`,
      wgsl,
      threads: THREADS,
      workgroups,
      element,
      workgroupBytes: 0,
      data,
      resultBytes: 4 * words,
    });
    const wrong = result.findIndex((value, i) => value !== data[i]);
    if (wrong >= 0) throw new Error(`${element} x ${each} leaves ${result[wrong]} at ${wrong}`);
    console.log(
      `${element.padEnd(5)}  ${`${each}`.padStart(4)}  ${(8 * words / ns / 1e3).toFixed(3)}`,
    );
  }
}
