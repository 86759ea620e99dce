import type { BufferRole, Pass, Plan } from "../algorithms/plan.ts";
import { allocate, createBuffer, upload } from "./buffers.ts";
import { checkPlan } from "./checks.ts";
import { BINDING_ALIGNMENT, BUFFER_USAGE } from "./constants.ts";
import type { GpuDevice } from "./device.ts";
import { pipelineOf } from "./pipelines.ts";

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

/** A plan on a device; disposing it frees its uniforms, not its buffers or pipelines. */
export interface PreparedPlan extends Disposable {
  /** What was prepared. */
  readonly plan: Plan;
  /** One a pass, in order. */
  readonly steps: readonly Step[];
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
  await gpu.settle("Cannot prepare");
  checkPlan(plan, gpu);
  const compiled = await Promise.all(plan.passes.map((pass) => pipelineOf(gpu, pass.kernel)));
  const uniforms = createUniforms(gpu, plan.passes);
  try {
    const steps = plan.passes.map((pass, index) => {
      const kernel = compiled[index];
      if (kernel === undefined) throw new RangeError(`Pass ${index} has no pipeline`);
      const entries = pass.bindings.map((binding, at): GPUBindGroupEntry => {
        const buffer = buffers.buffers[binding.buffer];
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
    await gpu.settle("Cannot prepare");
    return { plan, steps, [Symbol.dispose]: () => uniforms.buffer?.destroy() };
  } catch (error) {
    uniforms.buffer?.destroy();
    throw error;
  }
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
