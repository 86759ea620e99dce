import { InputTypeError, UnsupportedError } from "../errors.ts";
import { type GpuDevice, openDevice } from "../gpu/device.ts";
import { type Executor, gpuExecutor } from "../run/executor.ts";
import type { Planning } from "../run/subject.ts";
import { keptCalibration, noteUncalibrated } from "./calibration.ts";
import type { GpuChoice } from "./shared_options.ts";

/** Opens the GPU; where there is none, the error says what to do without. */
export async function openGpu(
  { backend, adapter }: GpuChoice,
  features: readonly string[] = [],
): Promise<GpuDevice> {
  try {
    return await openDevice({ backend, adapter, features, robust: false });
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    throw new UnsupportedError(`${error.message}; --device cpu computes without a GPU`);
  }
}

/**
 * An open GPU that plans by what was measured of it, unless the planning says what its device reaches.
 *
 * @throws {InputTypeError} where that is of a GPU and the device is a CPU, or the reverse: their kernels differ.
 */
export function gpuExecutorOf(gpu: GpuDevice, planning: Partial<Planning> = {}): Executor {
  const { device: given } = planning;
  if (given !== undefined) {
    const { adapter, software } = gpu.info;
    if (given.software === software) return gpuExecutor(gpu);
    const kind = (software: boolean) => software ? "a CPU" : "a GPU";
    throw new InputTypeError(
      `Cannot plan: --device-model is of ${kind(given.software)} (${given.name}), ` +
        `${adapter} is ${kind(software)}; \`wgconv plan\` without --device gpu plans for others`,
    );
  }
  const { device } = gpuExecutor(gpu);
  const kept = keptCalibration(device);
  if (kept === undefined) noteUncalibrated({ ...device, software: gpu.info.software });
  return gpuExecutor(gpu, kept?.model);
}

/** Opens the GPU as {@linkcode gpuExecutorOf} plans for it. */
export async function openGpuExecutor(
  choice: GpuChoice,
  features: readonly string[] = [],
  planning: Partial<Planning> = {},
): Promise<Executor> {
  return gpuExecutorOf(await openGpu(choice, features), planning);
}
