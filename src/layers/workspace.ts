import { createBuffer } from "../gpu/buffers.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";

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
