import { type Kernel, WORKGROUP_BYTES } from "../kernels/kernel.ts";
import type { KernelVariant } from "../kernels/variant.ts";
import type { ChannelOperand } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { Schedule } from "./schedule.ts";

/** The name of an algorithm in the registry; `auto` lets the planner choose one. */
export type AlgorithmName = string;

/** An algorithm that `auto` may take, as a request says it. */
export interface Candidate {
  /** Its name in the registry. */
  readonly algorithm: AlgorithmName;
  /** Tile of a Winograd algorithm, e.g. `F(4x4,3x3)`. */
  readonly tile?: string;
  /** Kernels of WinRS, e.g. `a8n3r6,a4n3r2`. */
  readonly pair?: string;
  /** Kernels that differ from those that are taken where nothing is said. */
  readonly variant?: KernelVariant;
  /** How much it enlarges rounding errors. */
  readonly amplification: number;
  /** Why it is none for the request. */
  readonly reason?: string;
}

/** A candidate and what the model says of it: a time, or why there is none. */
export interface Rival extends Candidate {
  /** Milliseconds. */
  readonly predictedMs?: number;
}

/**
 * What a buffer of a plan is for. `input`, `filter`, `output`: a convolution's tensors, whichever way they go; `a`, `b`,
 * `c`, `residual` and `output`: a product's.
 */
export type BufferRole =
  | "input"
  | "filter"
  | "output"
  | ChannelOperand
  | "filterZeroPoint"
  | "a"
  | "b"
  | "c"
  | "residual"
  | "workspace";

/** A buffer of a plan. Its place in {@linkcode Plan.buffers} is its id. */
export interface PlanBuffer {
  /** For people, e.g. `transformed filter`. */
  readonly name: string;
  /** What it holds. */
  readonly role: BufferRole;
  /** What the plan reads and writes, in bytes; a multiple of 4. */
  readonly bytes: number;
  /** Of values in bf16, which hosts have in f32; as hosts have them where absent. */
  readonly dtype?: "bf16";
}

/** A part of a plan's buffer as one binding sees it. */
export interface PlanBinding {
  /** Index into {@linkcode Plan.buffers}. */
  readonly buffer: number;
  /** In bytes; a multiple of 256. */
  readonly offset: number;
  /** In bytes; a multiple of 4. */
  readonly size: number;
}

/** One dispatch. */
export interface Pass {
  /** What runs. */
  readonly kernel: Kernel;
  /** One per storage binding of the kernel, in binding order; uniforms come from `uniforms`. */
  readonly bindings: readonly PlanBinding[];
  /** Contents of the kernel's `uniform` binding (at most one, the last), if it has one: 32-bit words. */
  readonly uniforms?: Uint32Array<ArrayBuffer>;
  /** Workgroups along x, y, z; each at most 65,535. */
  readonly grid: readonly [number, number, number];
  /** The direct algorithm's share of multiply-adds, for reports; 0 for transforms. */
  readonly multiplications: number;
  /** Most iterations of its loops, all of them together, that a thread runs; none where absent. */
  readonly iterations?: number;
}

/**
 * Everything that runs on the device for one problem, as data: made without a GPU, printed by
 * `wgconv plan`, run by `execute`. Passes run in order; a pass sees what the ones before it wrote.
 */
export interface Plan {
  /** Name of the kernel that does the work: the stable id of records. */
  readonly kernel: string;
  /** The algorithm's name; `gemm` of a product. */
  readonly algorithm: string;
  /** All that it needs on the device. */
  readonly buffers: readonly PlanBuffer[];
  /** Run one after the other. */
  readonly passes: readonly Pass[];
  /** Sum of the workspace buffers' bytes. */
  readonly workspaceBytes: number;
  /** Multiplications the kernels perform, waste included. */
  readonly multiplications: number;
  /** Predicted time of a run on {@linkcode predictedDevice}; absent where no model predicts it. */
  readonly predictedMs?: number;
  /** The device whose model predicts {@linkcode predictedMs}: `NVIDIA H200` where the request names none. */
  readonly predictedDevice?: string;
  /** Whether `auto` took it because it was measured to be the fastest on the device. */
  readonly measured?: true;
  /** How much the algorithm enlarges rounding errors; 1, that of sums of products, where absent. */
  readonly amplification?: number;
  /** How the sums are rounded: what the check simulates. */
  readonly arithmetic: PlanArithmetic;
  /** How its kernels run: what was asked for, with the tile and the splits that were chosen. Absent where nothing is chosen. */
  readonly schedule?: Schedule;
  /** What `auto` weighed, this plan's algorithm first; absent where the algorithm was named, or nothing was weighed. */
  readonly rivals?: readonly Rival[];
  /** Why this plan, one sentence a line, for `wgconv plan`. */
  readonly notes: readonly string[];
}

/** The limits of a device that planning depends on; names are WebGPU's. */
export interface DeviceLimits {
  /** Bytes of workgroup memory. */
  readonly maxComputeWorkgroupStorageSize: number;
  /** Threads of a workgroup. */
  readonly maxComputeInvocationsPerWorkgroup: number;
  /** Workgroups along one axis of a grid. */
  readonly maxComputeWorkgroupsPerDimension: number;
  /** Bytes of one binding. */
  readonly maxStorageBufferBindingSize: number;
  /** Bytes of a buffer. */
  readonly maxBufferSize: number;
  /** Storage buffers that a kernel binds. */
  readonly maxStorageBuffersPerShaderStage: number;
}

/**
 * The limits every WebGPU device has.
 * @example
 * ```ts
 * import { DEFAULT_LIMITS } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * assert.equal(DEFAULT_LIMITS.maxComputeInvocationsPerWorkgroup, 256);
 * ```
 */
export const DEFAULT_LIMITS: DeviceLimits = {
  maxComputeWorkgroupStorageSize: WORKGROUP_BYTES,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupsPerDimension: 65535,
  maxStorageBufferBindingSize: 128 * 1024 * 1024,
  maxBufferSize: 256 * 1024 * 1024,
  maxStorageBuffersPerShaderStage: 8,
};
