import { DeviceError, InputSyntaxError } from "../errors.ts";
import type { BindingKind, Kernel } from "../kernels/kernel.ts";
import { STAGE_COMPUTE } from "./constants.ts";
import type { GpuDevice } from "./device.ts";
import { narrowSubgroups } from "./features.ts";

/** A kernel ready to be dispatched. */
export interface CompiledKernel {
  readonly pipeline: GPUComputePipeline;
  /** Of group 0. */
  readonly layout: GPUBindGroupLayout;
}

/** An entry of a device's cache. */
interface CachedPipeline {
  readonly wgsl: string;
  readonly compiled: Promise<CompiledKernel>;
}

/** Pipelines kept for later plans: a suite of thousands would take gigabytes of a software driver. */
export const MOST_PIPELINES = 256;

const BUFFER_TYPES: Readonly<Record<BindingKind, GPUBufferBindingType>> = {
  read: "read-only-storage",
  ordered: "storage",
  write: "storage",
  uniform: "uniform",
};

const caches = new WeakMap<GpuDevice, Map<string, CachedPipeline>>();

/** A device's pipelines by kernel name. */
export function pipelinesOf(gpu: GpuDevice): Map<string, CachedPipeline> {
  let pipelines = caches.get(gpu);
  if (pipelines === undefined) caches.set(gpu, pipelines = new Map());
  return pipelines;
}

/**
 * The kernel's pipeline, compiled once a device and name.
 *
 * @throws {TypeError} where another WGSL text has the same name
 * @throws {DeviceError} where it does not compile, with the line of WGSL; {SyntaxError} where it is a user's file
 */
export function pipelineOf(gpu: GpuDevice, kernel: Kernel): Promise<CompiledKernel> {
  const pipelines = pipelinesOf(gpu);
  const cached = pipelines.get(kernel.name);
  if (cached !== undefined) {
    if (cached.wgsl === kernel.wgsl) return cached.compiled;
    throw new TypeError(`Cannot compile ${kernel.name}: other WGSL has the same name`);
  }
  const compiled = compileKernel(
    gpu.device,
    gpu.provider.textOf(narrowSubgroups(kernel, gpu.subgroupSize)),
    kernel,
  );
  pipelines.set(kernel.name, { wgsl: kernel.wgsl, compiled });
  // A pipeline that a plan still runs is kept by that plan.
  if (pipelines.size > MOST_PIPELINES) pipelines.delete(pipelines.keys().next().value!);
  return compiled;
}

/** Compiles `code`, which is the kernel's WGSL behind its `enable` lines. */
async function compileKernel(
  device: GPUDevice,
  code: string,
  kernel: Kernel,
): Promise<CompiledKernel> {
  // No await until the scope is popped: scopes are a stack that other work shares.
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ label: kernel.name, code });
  const layout = bindGroupLayout(device, kernel.bindings);
  const outcome = createPipeline(device, module, layout, kernel);
  const scoped = await device.popErrorScope();
  const pipeline = await outcome;
  if (scoped === null && !(pipeline instanceof Error)) return { pipeline, layout };
  const { messages } = await module.getCompilationInfo();
  const first = messages.find((message) => message.type === "error");
  const reason = first !== undefined
    ? describeMessage(first, code)
    : scoped?.message ?? (pipeline instanceof Error ? pipeline.message : "unknown error");
  if (kernel.file === undefined) {
    throw new DeviceError(`Cannot compile ${kernel.name}: ${reason.trim()}`);
  }
  const place = first === undefined ? "" : `, line ${first.lineNum}, column ${first.linePos}`;
  const words = (first?.message.trim().split("\n")[0] ?? reason).replaceAll(/\s+/g, " ")
    .replace(/^Shader '[^']*' /, "");
  throw new InputSyntaxError(`Cannot compile ${kernel.file}${place}: ${words}`);
}

/** Group 0's layout for bindings in order. */
export function bindGroupLayout(
  device: GPUDevice,
  bindings: readonly BindingKind[],
): GPUBindGroupLayout {
  return device.createBindGroupLayout({
    entries: bindings.map((kind, binding) => ({
      binding,
      visibility: STAGE_COMPUTE,
      buffer: { type: BUFFER_TYPES[kind] },
    })),
  });
}

/** Makes the pipeline of a kernel's entry point; an error is returned, since nobody awaits it at once. */
export async function createPipeline(
  device: GPUDevice,
  module: GPUShaderModule,
  layout: GPUBindGroupLayout,
  { name, entry = "main", constants = {} }: Pick<Kernel, "name" | "entry" | "constants">,
): Promise<GPUComputePipeline | Error> {
  try {
    return await device.createComputePipelineAsync({
      label: name,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: entry, constants: { ...constants } },
    });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** A compiler's message with the line of `code` it is about, which follows on a line of its own. */
export function describeMessage(message: GPUCompilationMessage, code: string): string {
  const text = message.message.trim();
  const line = code.split("\n")[message.lineNum - 1];
  if (message.lineNum === 0 || line === undefined) return text;
  return `${text} (line ${message.lineNum}, column ${message.linePos})\n` +
    `${String(message.lineNum).padStart(5)} | ${line}`;
}
