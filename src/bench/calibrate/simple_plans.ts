import { H200 } from "../../algorithms/device/h200.ts";
import { type DeviceModel, moveTime, passTime } from "../../algorithms/device/model.ts";
import type { DeviceLimits, Plan } from "../../algorithms/plan.ts";
import type { Kernel } from "../../kernels/kernel.ts";
import { busyKernel, COPY_THREADS, copyKernel } from "../../kernels/measuring.ts";

/** Rounds of a busy workgroup: one that is alone takes some 0.2 ms. */
const ROUNDS = 400;
/** Bytes that are copied: with their copies more than any cache holds; on a CPU less. */
const COPIED = 128 << 20;
const COPIED_SOFTWARE = 16 << 20;
/** What a copy moves on an H200, in TB/s. */
const H200_COPY = 4.3;

/** So many workgroups of {@linkcode busyKernel}. */
export function busyPlan(grid: number): Plan {
  return simplePlan(busyKernel(ROUNDS), 256, [grid, 1, 1]);
}

/** Bytes of {@linkcode copyPlan}. */
export function copiedBytes({ software }: DeviceModel, limits: DeviceLimits): number {
  const most = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  return Math.min(software ? COPIED_SOFTWARE : COPIED, 2 ** Math.floor(Math.log2(most)));
}

/** A copy of so many bytes, a power of two. */
export function copyPlan(bytes: number): Plan {
  const groups = bytes / 16 / COPY_THREADS;
  const across = Math.min(groups, 1 << 15);
  return simplePlan(copyKernel(), bytes, [across, Math.ceil(groups / across), 1]);
}

/** Milliseconds of a copy: it is to the model's stream of transforms as an H200's is. */
export function copyMs(bytes: number, model: DeviceModel): number {
  const rate = model.rates.stream * H200_COPY / H200.rates.stream;
  return passTime(0, moveTime(2 * bytes, rate), model) / 1e3;
}

function simplePlan(kernel: Kernel, bytes: number, grid: Plan["passes"][number]["grid"]): Plan {
  return {
    kernel: kernel.name,
    algorithm: "none",
    buffers: [{ name: "data", role: "input", bytes }, { name: "result", role: "output", bytes }],
    passes: [{
      kernel,
      bindings: [{ buffer: 0, offset: 0, size: bytes }, { buffer: 1, offset: 0, size: bytes }],
      grid,
      multiplications: 0,
    }],
    workspaceBytes: 0,
    multiplications: 0,
    arithmetic: {},
    notes: [],
  };
}
