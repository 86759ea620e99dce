import { download, upload } from "../../src/gpu/buffers.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../../src/gpu/execute.ts";
import type { Kernel } from "../../src/kernels/kernel.ts";
import type { Plan } from "../../src/algorithms/plan.ts";

/** A kernel that is timed by itself: it reads `data`, binding 0, and writes `result`, binding 1. */
export interface Probe {
  readonly name: string;
  /** WGSL behind the bindings' declarations; entry point `main`. */
  readonly wgsl: string;
  readonly threads: number;
  readonly workgroups: number;
  /** WGSL's name of what both buffers hold. */
  readonly element: string;
  readonly workgroupBytes: number;
  readonly features?: readonly string[];
  readonly data: Float32Array<ArrayBuffer>;
  readonly resultBytes: number;
  /** Samples are so many nanoseconds of calls at least; 5 ms where absent. */
  readonly fillNs?: number;
}

/** A probe's time and what it left. */
export interface Probed {
  /** The shortest of five samples, nanoseconds a call. */
  readonly ns: number;
  /** The first so many results as f32. */
  readonly result: Float32Array<ArrayBuffer>;
}

/** Results that are fetched. */
const FETCHED = 4096;

/** Times a probe on a GPU whose clocks have risen (CPUs have none). */
export async function timeProbe(gpu: GpuDevice, probe: Probe): Promise<Probed> {
  const { name, element, threads, workgroups, workgroupBytes, data, resultBytes } = probe;
  const kernel: Kernel = {
    name,
    wgsl: [
      `@group(0) @binding(0) var<storage, read> data: array<${element}>;`,
      `@group(0) @binding(1) var<storage, read_write> result: array<${element}>;`,
      probe.wgsl,
    ].join("\n"),
    workgroupSize: [threads, 1, 1],
    workgroupBytes,
    bindings: ["read", "write"],
    features: probe.features ?? [],
  };
  const across = Math.min(workgroups, gpu.limits.maxComputeWorkgroupsPerDimension);
  const plan: Plan = {
    kernel: name,
    algorithm: "probe",
    buffers: [
      { name: "data", role: "input", bytes: data.byteLength },
      { name: "result", role: "output", bytes: resultBytes },
    ],
    passes: [{
      kernel,
      bindings: [
        { buffer: 0, offset: 0, size: data.byteLength },
        { buffer: 1, offset: 0, size: resultBytes },
      ],
      grid: [across, Math.ceil(workgroups / across), 1],
      multiplications: 0,
    }],
    workspaceBytes: 0,
    multiplications: 0,
    arithmetic: {},
    notes: [],
  };
  using buffers = createPlanBuffers(gpu, plan);
  upload(gpu, buffers.buffers[0]!, 0, data);
  using prepared = await preparePlan(gpu, plan, buffers);
  const { software } = gpu.info;
  const once = await execute(gpu, prepared, { samples: 1, repeats: 1, warmup: 1 });
  const repeats = Math.max(1, Math.ceil((probe.fillNs ?? 5e6) / once.samplesNs[0]!));
  const warmup = software ? 0 : 40 * repeats;
  const timed = await execute(gpu, prepared, { samples: 5, repeats, warmup });
  const result = new Float32Array(Math.min(FETCHED, resultBytes / 4));
  const bytes = new Uint8Array(result.buffer);
  await download(gpu, buffers.buffers[1]!, 0, bytes.length, bytes);
  return { ns: Math.min(...timed.samplesNs), result };
}
