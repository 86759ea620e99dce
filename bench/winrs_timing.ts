/** How `bench/winrs_sweep.ts` times a configuration of WinRS. */
import type { Plan } from "../src/algorithms/plan.ts";
import type { Configuration } from "../src/algorithms/winrs/configure.ts";
import { omegaName } from "../src/algorithms/winrs/omega.ts";
import type { KernelPair } from "../src/algorithms/winrs/pair.ts";
import { createBuffer, download, upload } from "../src/gpu/buffers.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import { type ConvProblem, directFlops, tensorShape } from "../src/problem/conv_problem.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { dtypeBytes } from "../src/tensor/dtype.ts";
import { elementCount } from "../src/tensor/tensor.ts";

/** Elements of the seeded data that is repeated through both operands. */
const CHUNK = 2 ** 24;
/** Elements of results that are compared. */
const COMPARED = 2 ** 16;

/** A configuration to measure. */
export interface Trial {
  readonly phase: string;
  readonly problem: ConvProblem;
  readonly configuration: Configuration;
  readonly plan: Plan;
}

/** Seeded data on the device, in the operands' type. */
export class Data implements Disposable {
  readonly source: GPUBuffer;
  readonly dtype: "f32" | "f16";
  constructor(gpu: GpuDevice, dtype: "f32" | "f16") {
    this.dtype = dtype;
    this.source = createBuffer(gpu, dtypeBytes(dtype) * CHUNK, "data");
    upload(gpu, this.source, 0, fillTensor(dtype, [CHUNK], "uniform11", 1).data);
  }
  [Symbol.dispose](): void {
    this.source.destroy();
  }
}

/** A problem's operands on the device, and its result. */
export class Operands implements Disposable {
  readonly #buffers: Partial<Record<"input" | "output" | "filter", GPUBuffer>> = {};
  #first: Float16Array | Float32Array | undefined;
  #warm = false;
  readonly #gpu: GpuDevice;
  readonly #dtype: Data["dtype"];
  constructor(gpu: GpuDevice, { source, dtype }: Data, problem: ConvProblem) {
    this.#gpu = gpu;
    this.#dtype = dtype;
    for (const which of ["input", "output", "filter"] as const) {
      const bytes = dtypeBytes(dtype) * elementCount(tensorShape(problem, which));
      const buffer = createBuffer(gpu, bytes, which);
      const encoder = gpu.device.createCommandEncoder();
      for (let at = 0; which !== "filter" && at < bytes; at += source.size) {
        encoder.copyBufferToBuffer(source, 0, buffer, at, Math.min(source.size, bytes - at));
      }
      gpu.device.queue.submit([encoder.finish()]);
      this.#buffers[which] = buffer;
    }
  }

  /** Milliseconds of a trial, which it prints. */
  async time({ phase, problem, configuration, plan }: Trial): Promise<number> {
    const gpu = this.#gpu;
    using buffers = createPlanBuffers(gpu, plan, this.#buffers);
    using prepared = await preparePlan(gpu, plan, buffers);
    const sample = async (samples: number, warmMs: number) => {
      const { samplesNs } = await execute(gpu, prepared, {
        samples,
        repeats: Math.max(1, Math.ceil(4e6 / ns)),
        warmup: gpu.info.software ? 0 : Math.ceil(warmMs * 1e6 / ns),
        estimateNs: ns,
      });
      return samplesNs.toSorted((a, b) => a - b)[samples >> 1]!;
    };
    let ns = 1e6;
    ns = await sample(1, this.#warm ? 2 : 300);
    this.#warm = true;
    // Clocks may still be rising: until two medians agree.
    for (let tries = 0; tries < 5; tries++) {
      const before = ns;
      ns = await sample(3, 20);
      if (Math.abs(ns - before) < 0.02 * ns) break;
    }
    const result = this.#buffers.filter!;
    const compared = Math.min(COMPARED, result.size / dtypeBytes(this.#dtype));
    const values = this.#dtype === "f16" ? new Float16Array(compared) : new Float32Array(compared);
    await download(gpu, result, 0, values.byteLength, new Uint8Array(values.buffer));
    let [difference, norm] = [0, 0];
    values.forEach((value, i) => {
      const expected = this.#first?.[i] ?? value;
      difference += (value - expected) ** 2;
      norm += expected ** 2;
    });
    this.#first ??= values;
    const { pair, segmentation } = configuration;
    const { rows, last, columns, firstColumns, count } = segmentation;
    console.log([
      "one",
      problem.name,
      phase,
      pairName(pair),
      `${pair.k0}+${pair.k1}`,
      `${rows}${last === 1 ? "" : `(${last.toFixed(2)})`}x${firstColumns}+${
        columns - firstColumns
      }`,
      count,
      (ns / 1e6).toFixed(4),
      configuration.predictedMs.toFixed(4),
      (directFlops(problem) / ns / 1e3).toFixed(1),
      Math.sqrt(difference / norm).toExponential(1),
    ].join("\t"));
    return ns / 1e6;
  }

  [Symbol.dispose](): void {
    for (const buffer of Object.values(this.#buffers)) buffer.destroy();
  }
}

/** As `--pair` takes it. */
export function pairName({ first, second }: KernelPair): string {
  return [first, ...(second ? [second] : [])].map(omegaName).join(",");
}
