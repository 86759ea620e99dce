import type { BufferRole, Plan } from "../algorithms/plan.ts";
import { DeviceError, InputTypeError } from "../errors.ts";
import { expectObject, said } from "../expect.ts";
import { createBuffer } from "../gpu/buffers.ts";
import { type BoundPlan, encodeSteps } from "../gpu/execute.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { compilePlan } from "../gpu/prepare.ts";
import { describeSpec, expectBuffer, GpuTensor, specBytes, type TensorSpec } from "./gpu_tensor.ts";
import { idOf } from "./plan_cache.ts";

/**
 * Device memory that layers compute in, between their tensors. Layers that run one after the other can share it; it takes
 * as much as the one that needs most.
 */
export interface Workspace extends Disposable {
  /** Bytes that it takes now. */
  readonly bytes: number;
}

/**
 * Makes a {@linkcode Workspace} that layers share: their option `workspace`. It has its memory from the first run on, as much
 * as the layers that were prepared until then need, and is freed when it is disposed.
 *
 * @example
 * ```ts
 * import { gpuTensor, openDevice, parseDescriptor, prepareConvolution, sharedWorkspace } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * using workspace = sharedWorkspace(gpu);
 * const options = { algorithm: "im2col", workspace } as const;
 * using small = await prepareConvolution(gpu, parseDescriptor("mb1ic4ih8oc4kh3"), options);
 * using large = await prepareConvolution(gpu, parseDescriptor("mb2ic4ih8oc4kh3"), options);
 * using input = gpuTensor(gpu, small.tensors.input);
 * using filter = gpuTensor(gpu, small.tensors.filter);
 * using output = gpuTensor(gpu, small.tensors.output);
 * small.run({ input, filter, output });
 * assert.equal(workspace.bytes, large.plan.workspaceBytes);
 * ```
 */
export function sharedWorkspace(gpu: GpuDevice): Workspace {
  return new WorkspaceBuffers(gpu);
}

/**
 * The buffers of a workspace, the largest first. Layers may share them because no result depends on what the workspace held
 * before the plan ran.
 */
export class WorkspaceBuffers implements Workspace {
  readonly gpu: GpuDevice;
  readonly #wanted: number[] = [];
  #buffers: GPUBuffer[] = [];
  // What was too small for a later layer: encoders that are not submitted yet may still use it.
  readonly #outgrown: GPUBuffer[] = [];
  #disposed = false;

  constructor(gpu: GpuDevice) {
    this.gpu = gpu;
  }

  get bytes(): number {
    return [...this.#buffers, ...this.#outgrown].reduce((sum, { size }) => sum + size, 0);
  }

  get isDisposed(): boolean {
    return this.#disposed;
  }

  /** Sees to buffers of these bytes each, in the order in which {@linkcode take} gives them. */
  reserve(sizes: readonly number[]): void {
    sizes.forEach((bytes, i) => this.#wanted[i] = Math.max(bytes, this.#wanted[i] ?? 0));
  }

  /** The first `count` buffers, made where they are missing or too small. */
  take(count: number): readonly GPUBuffer[] {
    for (let i = 0; i < count; i++) {
      const bytes = this.#wanted[i]!;
      const buffer = this.#buffers[i];
      if (buffer !== undefined && buffer.size >= bytes) continue;
      if (buffer !== undefined) this.#outgrown.push(buffer);
      this.#buffers[i] = createBuffer(this.gpu, bytes, `workspace ${i}`);
    }
    return this.#buffers;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const buffer of [...this.#buffers, ...this.#outgrown]) buffer.destroy();
    this.#buffers = [];
    this.#outgrown.length = 0;
  }
}

/** What a layer reads and writes, by name. */
export type LayerTensors = { readonly [name in Exclude<BufferRole, "workspace">]?: TensorSpec };

/** A tensor on the device for each of a layer's: made by `gpuTensor()`, or a buffer that is large enough. */
export type Bound<T extends LayerTensors> = { readonly [name in keyof T]: GpuTensor | GPUBuffer };

/**
 * A plan that is ready to run on tensors of a device, as often as asked: nothing is compiled, allocated, uploaded or fetched
 * by a run. Disposing it frees its workspace; its pipelines stay with the device.
 */
export interface Layer<T extends LayerTensors = LayerTensors> extends Disposable {
  /** What runs. */
  readonly plan: Plan;
  /** What it reads and writes: what `gpuTensor()` makes them of. */
  readonly tensors: T;
  /** Which of them it writes. */
  readonly result: keyof T & string;
  /**
   * Encodes a run. Runs of one encoder see each other's results.
   *
   * @param encoder Many layers in one compute pass cost less than a pass each. Of a pass it sets the pipeline and bind group 0.
   * @throws {TypeError} where a tensor is missing, disposed, of another shape, type, layout or device, or one too many, or
   * where a buffer has no `STORAGE`, is the result's too, or is that of two tensors and a kernel takes two
   * @throws {RangeError} where a buffer is too small
   * @throws {DeviceError} when the device is closed or lost, or after an error of earlier work
   */
  encode(encoder: GPUCommandEncoder | GPUComputePassEncoder, tensors: Bound<T>): void;
  /** Submits a run by itself, and waits for nothing: `read()` of the result does. It throws what `encode` throws. */
  run(tensors: Bound<T>): void;
  /** The plan on these tensors, for `execute()`, which times it. It throws what `encode` throws. */
  bind(tensors: Bound<T>): BoundPlan;
}

/** How a layer computes, beside its plan. */
export interface LayerOptions {
  /** Where it keeps what is between its passes, shared with others; a workspace of its own where absent. */
  readonly workspace?: Workspace;
}

/** Sets of tensors whose bindings a layer keeps; those of a training step are few. */
const MOST_BOUND = 16;

/**
 * Makes a layer of a plan.
 *
 * @throws {UnsupportedError} where the device does not suffice
 * @throws {DeviceError} where a kernel does not compile
 */
export async function makeLayer<T extends LayerTensors>(
  gpu: GpuDevice,
  plan: Plan,
  tensors: T,
  result: keyof T & string,
  { workspace }: LayerOptions,
): Promise<Layer<T>> {
  const shared = expectWorkspace(gpu, workspace);
  using resources = new DisposableStack();
  const compiled = resources.use(await compilePlan(gpu, plan));
  const scratch = shared ?? resources.use(new WorkspaceBuffers(gpu));
  // The largest first, so that those of several layers lie over each other.
  const order = plan.buffers.flatMap(({ role }, at) => role === "workspace" ? [at] : [])
    .toSorted((a, b) => plan.buffers[b]!.bytes - plan.buffers[a]!.bytes);
  scratch.reserve(order.map((at) => plan.buffers[at]!.bytes));
  if (shared === undefined) scratch.take(order.length);
  await gpu.settle("Cannot prepare");

  const names = Object.keys(tensors);
  const doing = "Cannot encode";
  const bound = new Map<string, BoundPlan>();
  let disposed = false;
  const bind = (given: Bound<T>): BoundPlan => {
    if (disposed) throw new InputTypeError(`${doing}: the layer was disposed`);
    if (scratch.isDisposed) throw new InputTypeError(`${doing}: the workspace was disposed`);
    gpu.check(doing);
    const held = buffersOf(gpu, tensors, result, given);
    const own = scratch.take(order.length);
    const buffers = plan.buffers.map(({ role }, at) =>
      role === "workspace" ? own[order.indexOf(at)]! : held[role]!
    );
    expectApart(doing, plan, buffers);
    const key = buffers.map(idOf).join();
    let found = bound.get(key);
    if (found === undefined) {
      const steps = gpu.watch(
        "validation",
        () => compiled.bind(buffers),
        (message) => {
          bound.delete(key);
          return new DeviceError(
            `a buffer of ${names.join(", ")} is of another device or destroyed: ${message}`,
          );
        },
      );
      found = { plan, steps };
      bound.set(key, found);
      if (bound.size > MOST_BOUND) bound.delete(bound.keys().next().value!);
    }
    return found;
  };
  const encode: Layer<T>["encode"] = (encoder, given) => {
    expectEncoder(doing, encoder);
    const work = bind(given);
    if (!("beginComputePass" in encoder)) return encodeSteps(encoder, work);
    const pass = encoder.beginComputePass();
    encodeSteps(pass, work);
    pass.end();
  };
  const kept = resources.move();
  return {
    plan,
    tensors,
    result,
    bind,
    encode,
    run(given) {
      const encoder = gpu.device.createCommandEncoder();
      encode(encoder, given);
      gpu.device.queue.submit([encoder.finish()]);
    },
    [Symbol.dispose]() {
      disposed = true;
      bound.clear();
      kept.dispose();
    },
  };
}

function expectEncoder(doing: string, encoder: unknown): void {
  const encodes = typeof encoder === "object" && encoder !== null &&
    ("beginComputePass" in encoder || "dispatchWorkgroups" in encoder);
  if (encodes) return;
  throw new InputTypeError(
    `${doing}: the encoder is ${said(encoder)}, ` +
      "expected a GPUCommandEncoder or a GPUComputePassEncoder",
  );
}

/** The workspace that is shared, if one is. */
function expectWorkspace(gpu: GpuDevice, workspace: Workspace | undefined) {
  if (workspace === undefined) return undefined;
  if (!(workspace instanceof WorkspaceBuffers)) {
    throw new InputTypeError("Cannot prepare: the workspace is none that sharedWorkspace() made");
  }
  if (workspace.gpu !== gpu) {
    throw new InputTypeError("Cannot prepare: the workspace is of another device");
  }
  return workspace;
}

function buffersOf(
  gpu: GpuDevice,
  tensors: LayerTensors,
  result: string,
  given: { readonly [name: string]: GpuTensor | GPUBuffer },
): { readonly [name: string]: GPUBuffer } {
  const doing = "Cannot encode";
  expectObject(doing, "what holds the tensors", given, Object.keys(tensors).join(", "));
  const buffers: Record<string, GPUBuffer> = {};
  for (const [name, spec] of Object.entries(tensors)) {
    const one = given[name];
    if (one === undefined) {
      throw new InputTypeError(`${doing}: ${name}, ${describeSpec(spec)}, is missing`);
    }
    if (one instanceof GpuTensor) expectTensor(`${doing}: ${name}`, gpu, spec, one);
    else expectBuffer(doing, `${name}, ${describeSpec(spec)},`, one, specBytes(spec));
    buffers[name] = one instanceof GpuTensor ? one.buffer : one;
  }
  for (const name of Object.keys(given)) {
    if (!(name in tensors)) {
      throw new InputTypeError(
        `${doing}: the layer has no ${name}, its tensors are ${Object.keys(tensors).join(", ")}`,
      );
    }
    if (name !== result && buffers[name] === buffers[result]) {
      throw new InputTypeError(`${doing}: ${name} and the result, ${result}, are one buffer`);
    }
  }
  return buffers;
}

/** Refuses a buffer that a kernel would have twice, once as one that might be written: WebGPU allows none. */
function expectApart(
  doing: string,
  { passes, buffers }: Plan,
  given: readonly GPUBuffer[],
): void {
  for (const { kernel, bindings } of passes) {
    const places = bindings.map(({ buffer }) => buffer);
    for (const one of places.filter((_, i) => kernel.bindings[i] === "ordered")) {
      const other = places.find((place) => place !== one && given[place] === given[one]);
      if (other === undefined) continue;
      throw new InputTypeError(
        `${doing}: ${buffers[one]!.role} and ${buffers[other]!.role} are one buffer, ` +
          `${kernel.name} takes two`,
      );
    }
  }
}

function expectTensor(what: string, gpu: GpuDevice, spec: TensorSpec, tensor: GpuTensor): void {
  if (tensor.isDisposed) throw new InputTypeError(`${what} was disposed`);
  if (tensor.gpu !== gpu) throw new InputTypeError(`${what} is of another device than the layer`);
  const same = tensor.dtype === spec.dtype && `${tensor.shape}` === `${spec.shape}` &&
    (tensor.layout ?? spec.layout) === spec.layout;
  if (!same) {
    throw new InputTypeError(`${what} is ${describeSpec(tensor)}, expected ${describeSpec(spec)}`);
  }
}
