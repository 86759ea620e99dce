/**
 * How many workgroups a multiprocessor runs side by side by the workgroup memory that each takes: the time of a chain of
 * multiply-adds stays as it is while they do, and grows where one has to wait.
 *   deno run -A bench/workgroup_residency.ts [--multiprocessors 132] [--threads 128] [--bytes 8192,12800,16384,24576,25600]
 * Microseconds of one workgroup a multiprocessor, two and so on, and the most before a time that is 1.6 times the one before.
 */
import { parseArgs } from "node:util";
import { openDevice } from "../src/gpu/device.ts";
import { timeProbe } from "./probes/probe.ts";

const { values } = parseArgs({
  options: {
    multiprocessors: { type: "string", default: "132" },
    threads: { type: "string", default: "128" },
    bytes: { type: "string", default: "8192,12288,12800,16384,17408,20480,24576,25600,32768" },
  },
});
using gpu = await openDevice({});
const { software } = gpu.info;
const multiprocessors = Number(values.multiprocessors);
const threads = Number(values.threads);
const counts = [1, 2, 3, 4, 5, 6, 7, 8];
/** A time that many times the one before: a workgroup waits. */
const WAITS = 1.6;

/** A chain of multiply-adds, of which each waits for the one before, in workgroups that hold so many vectors. */
function chain(vectors: number): string {
  return [
    `var<workgroup> tile: array<vec4f, ${vectors}>;`,
    `@compute @workgroup_size(${threads})`,
    "fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) grid: vec3u,",
    "  @builtin(local_invocation_index) t: u32) {",
    "  tile[t] = data[t % 4u];",
    `  tile[${vectors - 1}u - t] = data[t % 4u];`,
    "  workgroupBarrier();",
    `  var x = tile[(t * 7u) % ${threads}u].x;`,
    `  for (var i = 0u; i < ${software ? 8 : 4000}u; i++) {`,
    ...[0.999, 0.998, 0.997, 0.996].map((factor) => `    x = fma(x, ${factor}f, 0.5f);`),
    "  }",
    `  result[(group.x + group.y * grid.x) * ${threads}u + t] = vec4f(x);`,
    "}",
  ].join("\n");
}

console.log(gpu.info.adapter);
console.log(`bytes   side by side  ${counts.map((count) => `${count}`.padStart(6)).join(" ")}`);
for (const bytes of values.bytes.split(",").map(Number)) {
  const vectors = Math.floor(bytes / 16);
  const times: number[] = [];
  for (const count of counts) {
    const workgroups = count * multiprocessors;
    const { ns, result } = await timeProbe(gpu, {
      name: `residency_${bytes}_${count}`,
      wgsl: chain(vectors),
      threads,
      workgroups,
      element: "vec4f",
      workgroupBytes: 16 * vectors,
      data: new Float32Array(16).fill(1),
      resultBytes: 16 * threads * workgroups,
      fillNs: 1e6,
    });
    if (!result.every((value) => value > 0)) throw new Error(`${bytes} bytes left ${result[0]}`);
    times.push(ns / 1e3);
  }
  const waits = times.findIndex((time, i) => i > 0 && time > WAITS * times[i - 1]!);
  const most = counts.at(waits === -1 ? -1 : waits - 1)!;
  console.log(
    `${`${bytes}`.padStart(6)}  ${`${most}`.padStart(12)}  ${
      times.map((time) => time.toFixed(0).padStart(6)).join(" ")
    }`,
  );
}
