import { range } from "./lists.ts";
import type { Kernel } from "./kernel.ts";

const THREADS = 256;
/** Sums of a thread that do not wait for each other. */
const CHAINS = 16;
const STEPS = 16;

/**
 * Workgroups that keep what runs them busy from registers alone, for a time that `rounds` says: one takes a multiprocessor to
 * itself, two on the same take twice as long.
 */
export function busyKernel(rounds: number): Kernel {
  const values = (name: string) =>
    range(8).map((i) => `  let ${name}${i} = vec4f(data[(t + ${i}u) % 64u] * 0.5f);`);
  const sums = range(CHAINS).map((i) => `s${i}`);
  const body = range(STEPS).map((step) =>
    sums.map((sum, i) => `    ${sum} = fma(a${i % 8}, b${(i + (i >> 3) + step) % 8}, ${sum});`)
  );
  return {
    name: `busy_${rounds}`,
    wgsl: [
      "@group(0) @binding(0) var<storage, read> data: array<f32>;",
      "@group(0) @binding(1) var<storage, read_write> result: array<f32>;",
      `@compute @workgroup_size(${THREADS})`,
      "fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) t: u32) {",
      ...values("a"),
      ...values("b"),
      ...sums.map((sum) => `  var ${sum} = vec4f(0.0f);`),
      `  for (var round = 0u; round < ${rounds}u; round++) {`,
      ...body.flat(),
      "  }",
      `  let sum = ${sums.join(" + ")};`,
      // Never so: the sums must be needed.
      "  if (sum.x == 12345.0f) { result[id.x % 64u] = sum.x + sum.y + sum.z + sum.w; }",
      "}",
    ].join("\n"),
    workgroupSize: [THREADS, 1, 1],
    workgroupBytes: 0,
    bindings: ["read", "write"],
    features: [],
  };
}

/** Threads of a workgroup of {@linkcode copyKernel}, each of which moves 16 bytes. */
export const COPY_THREADS = 256;

/** Copies a buffer. */
export function copyKernel(): Kernel {
  return {
    name: "copy",
    wgsl: [
      "@group(0) @binding(0) var<storage, read> data: array<vec4f>;",
      "@group(0) @binding(1) var<storage, read_write> result: array<vec4f>;",
      `@compute @workgroup_size(${COPY_THREADS})`,
      "fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,",
      "  @builtin(local_invocation_index) t: u32) {",
      `  let place = (group.x + groups.x * group.y) * ${COPY_THREADS}u + t;`,
      "  if (place < arrayLength(&data)) { result[place] = data[place]; }",
      "}",
    ].join("\n"),
    workgroupSize: [COPY_THREADS, 1, 1],
    workgroupBytes: 0,
    bindings: ["read", "write"],
    features: [],
  };
}
