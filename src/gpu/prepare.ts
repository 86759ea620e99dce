import type { BufferRole, Pass, Plan } from "../algorithms/plan.ts";
import { DeviceError, InputSyntaxError } from "../errors.ts";
import type { BindingKind, Kernel } from "../kernels/kernel.ts";
import { allocate, createBuffer, upload } from "./buffers.ts";
import { checkPlan } from "./checks.ts";
import { BINDING_ALIGNMENT, BUFFER_USAGE, STAGE_COMPUTE } from "./constants.ts";
import type { GpuDevice } from "./device.ts";
import { narrowSubgroups } from "./features.ts";

/** A kernel ready to be dispatched. */
interface CompiledKernel {
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

/** The device's buffers of a plan; disposing it frees those it made. */
export interface PlanBuffers extends Disposable {
  /** One per entry of `Plan.buffers`, in its order. */
  readonly buffers: readonly GPUBuffer[];
  /** The first buffer of a role; throws a RangeError where the plan has none. */
  get(role: BufferRole): GPUBuffer;
}

/** A dispatch with everything it needs, made once and encoded often. */
export interface Step {
  /** The compiled kernel. */
  readonly pipeline: GPUComputePipeline;
  /** Its buffers. */
  readonly bindGroup: GPUBindGroup;
  /** Workgroups along x, y and z. */
  readonly grid: readonly [number, number, number];
}

/** What of a plan is encoded: its dispatches on the buffers that they are of. */
export interface BoundPlan {
  /** What was prepared. */
  readonly plan: Plan;
  /** One a pass, in order. */
  readonly steps: readonly Step[];
}

/** A plan on a device; disposing it frees its uniforms, not its buffers or pipelines. */
export interface PreparedPlan extends BoundPlan, Disposable {}

/** A plan's pipelines and uniforms, for any buffers; disposing it frees the uniforms. */
interface CompiledPlan extends Disposable {
  /**
   * Its steps on buffers, one per entry of `Plan.buffers`.
   *
   * @throws {RangeError} where one is missing
   */
  bind(buffers: readonly GPUBuffer[]): readonly Step[];
}

/**
 * Makes a buffer for each of the plan's, but for roles found in `given`, which stay the caller's.
 *
 * @throws {UnsupportedError} over the device's `maxBufferSize`
 * @throws {RangeError} where a given buffer is too small
 */
export function createPlanBuffers(
  gpu: GpuDevice,
  plan: Plan,
  given: Partial<Record<BufferRole, GPUBuffer>> = {},
): PlanBuffers {
  const own: GPUBuffer[] = [];
  const dispose = () => own.splice(0).forEach((buffer) => buffer.destroy());
  try {
    const buffers = plan.buffers.map(({ name, role, bytes }) => {
      const theirs = given[role];
      if (theirs === undefined) {
        const buffer = createBuffer(gpu, bytes, name);
        own.push(buffer);
        return buffer;
      }
      if (theirs.size < bytes) {
        throw new RangeError(
          `Cannot use the given ${role} buffer: ${name} has ${bytes} bytes, it has ${theirs.size}`,
        );
      }
      return theirs;
    });
    const get = (role: BufferRole) => {
      const buffer = buffers[plan.buffers.findIndex((entry) => entry.role === role)];
      if (buffer === undefined) throw new RangeError(`The plan has no ${role} buffer`);
      return buffer;
    };
    return { buffers, get, [Symbol.dispose]: dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

/**
 * Checks a plan against the device, compiles its kernels and binds its buffers.
 *
 * @throws {UnsupportedError} where the device does not suffice, or had no memory for a buffer
 * @throws {RangeError} where the plan contradicts itself
 * @throws {DeviceError} where a kernel does not compile
 */
export async function preparePlan(
  gpu: GpuDevice,
  plan: Plan,
  buffers: PlanBuffers,
): Promise<PreparedPlan> {
  const compiled = await compilePlan(gpu, plan);
  try {
    const steps = compiled.bind(buffers.buffers);
    await gpu.settle("Cannot prepare");
    return { plan, steps, [Symbol.dispose]: () => compiled[Symbol.dispose]() };
  } catch (error) {
    compiled[Symbol.dispose]();
    throw error;
  }
}

/** The part of {@linkcode preparePlan} that needs no buffers; it throws the same. */
export async function compilePlan(gpu: GpuDevice, plan: Plan): Promise<CompiledPlan> {
  await gpu.settle("Cannot prepare");
  const kernels = await compileKernels(gpu, plan);
  const uniforms = createUniforms(gpu, plan.passes);
  const bind = (buffers: readonly GPUBuffer[]) =>
    plan.passes.map((pass, index): Step => {
      const kernel = kernels[index];
      if (kernel === undefined) throw new RangeError(`Pass ${index} has no pipeline`);
      const entries = pass.bindings.map((binding, at): GPUBindGroupEntry => {
        const buffer = buffers[binding.buffer];
        if (buffer === undefined) throw new RangeError(`Buffer ${binding.buffer} is missing`);
        return { binding: at, resource: { buffer, offset: binding.offset, size: binding.size } };
      });
      const resource = uniforms.bindings[index];
      if (resource !== undefined) entries.push({ binding: entries.length, resource });
      return {
        pipeline: kernel.pipeline,
        bindGroup: gpu.device.createBindGroup({ layout: kernel.layout, entries }),
        grid: pass.grid,
      };
    });
  return { bind, [Symbol.dispose]: () => uniforms.buffer?.destroy() };
}

/** Compiles a plan's kernels, or finds them compiled, after holding the plan against the device; throws as {@linkcode compilePlan}. */
export async function compileKernels(gpu: GpuDevice, plan: Plan): Promise<CompiledKernel[]> {
  checkPlan(plan, gpu);
  return await Promise.all(plan.passes.map((pass) => pipelineOf(gpu, pass.kernel)));
}

/** One buffer with the uniforms of all passes, and each pass's part of it. */
function createUniforms(
  gpu: GpuDevice,
  passes: readonly Pass[],
): { buffer?: GPUBuffer; bindings: readonly (GPUBufferBinding | undefined)[] } {
  let bytes = 0;
  const parts = passes.map(({ uniforms }) => {
    if (uniforms === undefined) return undefined;
    // Structs with vectors in them are rounded up to 16 bytes.
    const part = { offset: bytes, size: Math.ceil(uniforms.byteLength / 16) * 16, uniforms };
    bytes = Math.ceil((bytes + part.size) / BINDING_ALIGNMENT) * BINDING_ALIGNMENT;
    return part;
  });
  if (bytes === 0) return { bindings: [] };
  const usage = BUFFER_USAGE.uniform | BUFFER_USAGE.copyDestination;
  const buffer = allocate(gpu, bytes, "uniforms", usage);
  const contents = new Uint32Array(bytes / 4);
  for (const part of parts) if (part) contents.set(part.uniforms, part.offset / 4);
  upload(gpu, buffer, 0, contents);
  return {
    buffer,
    bindings: parts.map((part) => part && { buffer, offset: part.offset, size: part.size }),
  };
}
