import type { Pass, Plan, PlanBuffer } from "../../src/algorithms/plan.ts";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { upload } from "../../src/gpu/buffers.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { createPlanBuffers, type PlanBuffers } from "../../src/gpu/execute.ts";

/*
 * Tiny hand-written kernels and plans for this room's tests.
 */

/** Elements the test plans work on. */
export const COUNT = 1000;

/** output[i] = factor * input[i] + filter[i] + shift, where factor and shift are the uniforms. */
export const SAXPY: Kernel = {
  name: "test_saxpy",
  wgsl: `
struct Params { factor: f32, shift: f32, count: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < p.count) { z[id.x] = p.factor * x[id.x] + y[id.x] + p.shift; }
}`,
  workgroupSize: [64, 1, 1],
  workgroupBytes: 0,
  bindings: ["read", "read", "write", "uniform"],
  features: [],
};

/** Uniforms of {@linkcode SAXPY}. */
export function saxpyUniforms(factor: number, shift: number): Uint32Array<ArrayBuffer> {
  return new Uint32Array([...new Uint32Array(new Float32Array([factor, shift]).buffer), COUNT]);
}

/** A plan from its buffers and passes. */
export function planOf(buffers: readonly PlanBuffer[], passes: readonly Pass[]): Plan {
  return {
    kernel: passes[0]?.kernel.name ?? "",
    algorithm: "test",
    buffers,
    passes,
    workspaceBytes: 0,
    multiplications: 0,
    arithmetic: {},
    notes: [],
  };
}

/** One pass of {@linkcode SAXPY}, with parts of it replaced. */
export function saxpyPlan(pass: Partial<Pass> = {}, kernel: Partial<Kernel> = {}): Plan {
  const bytes = 4 * COUNT;
  const buffers: PlanBuffer[] = [
    { name: "x", role: "input", bytes },
    { name: "y", role: "filter", bytes },
    { name: "z", role: "output", bytes },
  ];
  return planOf(buffers, [{
    kernel: { ...SAXPY, ...kernel },
    bindings: [0, 1, 2].map((buffer) => ({ buffer, offset: 0, size: bytes })),
    uniforms: saxpyUniforms(2, 0.5),
    grid: [Math.ceil(COUNT / 64), 1, 1],
    multiplications: COUNT,
    ...pass,
  }]);
}

/** Buffers with x[i] = i and y[i] = 10 i. */
export function saxpyBuffers(gpu: GpuDevice, plan: Plan): PlanBuffers {
  const buffers = createPlanBuffers(gpu, plan);
  upload(gpu, buffers.get("input"), 0, Float32Array.from({ length: COUNT }, (_, i) => i));
  upload(gpu, buffers.get("filter"), 0, Float32Array.from({ length: COUNT }, (_, i) => 10 * i));
  return buffers;
}

/** Where work meets the device: what a device, its queue, buffers, encoders and passes are asked to do. */
const CALLS = {
  device: [
    "createBuffer",
    "createShaderModule",
    "createBindGroupLayout",
    "createPipelineLayout",
    "createComputePipelineAsync",
    "createBindGroup",
    "createCommandEncoder",
    "createQuerySet",
    "pushErrorScope",
    "popErrorScope",
  ],
  queue: ["submit", "writeBuffer", "onSubmittedWorkDone"],
  buffer: ["mapAsync", "getMappedRange", "unmap"],
  encoder: ["beginComputePass", "copyBufferToBuffer", "resolveQuerySet", "clearBuffer", "finish"],
  pass: ["setPipeline", "setBindGroup", "dispatchWorkgroups", "end"],
} as const;

/**
 * Loses a device in the moment before its `moment`th call, as a driver that resets does.
 *
 * @returns How many calls there were so far.
 */
export function loseDeviceAt(gpu: Pick<GpuDevice, "device">, moment: number): () => number {
  let calls = 0;
  const MADE: Readonly<Record<string, keyof typeof CALLS>> = {
    createBuffer: "buffer",
    createCommandEncoder: "encoder",
    beginComputePass: "pass",
  };
  const watch = (target: object, kind: keyof typeof CALLS) => {
    for (const name of CALLS[kind]) {
      const original = Reflect.get(target, name) as (...values: unknown[]) => unknown;
      const watched = (...values: unknown[]) => {
        if (++calls === moment) gpu.device.destroy();
        const made = original.apply(target, values);
        const kindMade = MADE[name];
        if (kindMade !== undefined) watch(made as object, kindMade);
        return made;
      };
      Object.defineProperty(target, name, { value: watched, configurable: true });
    }
  };
  watch(gpu.device, "device");
  watch(gpu.device.queue, "queue");
  return () => calls;
}
