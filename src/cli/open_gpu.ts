import { InputTypeError, UnsupportedError } from "../errors.ts";
import { type GpuDevice, openDevice } from "../gpu/device.ts";
import { isDawnHere } from "../gpu/dawn.ts";
import { describeAdapters } from "../gpu/list_adapters.ts";
import type { Backend } from "../gpu/provider.ts";
import { type Executor, gpuExecutor } from "../run/executor.ts";
import type { Planning } from "../run/subject.ts";
import { timePlans } from "../run/time_plans.ts";
import { keptCalibration, noteUncalibrated } from "./calibration.ts";
import { reporter } from "./output.ts";
import { learnSize, SIZE_PROTOCOL } from "./learn.ts";
import type { AnyGpuChoice } from "./shared_options.ts";
import type { TuningChoice } from "./tuning_options.ts";

/** The backend that is asked for; of `auto` Dawn where matrix units multiply, if it is here and its GPU has such, else wgpu, which it says. */
export async function chosenBackend(choice: AnyGpuChoice): Promise<Backend> {
  if (choice.backend !== "auto") return choice.backend;
  const { adapter, onUnits } = choice;
  const hasUnits = () =>
    describeAdapters("dawn", adapter).then(([one]) => one?.matrixUnits !== undefined, () => false);
  const [chosen, why]: [Backend, string] = !onUnits
    ? ["wgpu", "matrix units are for f16, int8 and --math f16x3"]
    : !await isDawnHere()
    ? ["wgpu", "Dawn, which reaches matrix units, is not installed; --backend dawn downloads it"]
    : await hasUnits()
    ? ["dawn", "its matrix units multiply these types"]
    : ["wgpu", "Dawn has no matrix units here"];
  reporter("stderr").message(`--backend auto: ${chosen}, ${why}`);
  return chosen;
}

/** Opens the GPU; where there is none, the error says what to do without. */
export async function openGpu(
  choice: AnyGpuChoice,
  features: readonly string[] = [],
): Promise<GpuDevice> {
  const { adapter } = choice;
  const backend = await chosenBackend(choice);
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
  const measured = measuredExecutor(gpu, planning);
  if (measured !== undefined) return measured;
  const executor = gpuExecutor(gpu);
  noteUncalibrated({ ...executor.device, software: gpu.info.software });
  return executor;
}

/** An open GPU of which something was measured, or is said; undefined where nothing is. */
function measuredExecutor(gpu: GpuDevice, planning: Partial<Planning>): Executor | undefined {
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
  if (kept !== undefined) return gpuExecutor(gpu, kept.model);
  const size = keptCalibration(device, "size");
  return size && gpuExecutor(gpu, size.model, true);
}

/**
 * Opens the GPU as {@linkcode gpuExecutorOf} plans for it, and measures its size where there is a budget for that; one that is
 * lost meanwhile is opened again.
 */
export async function openGpuExecutor(
  choice: AnyGpuChoice,
  features: readonly string[] = [],
  planning: Partial<Planning> = {},
  learning: TuningChoice = { tuneBudget: 0 },
): Promise<Executor> {
  let gpu = await openGpu(choice, features);
  const measured = measuredExecutor(gpu, planning);
  if (measured !== undefined) return measured;
  const model = await learnSize(
    gpu,
    gpuExecutor(gpu),
    planning,
    learning,
    (plans) => timePlans(gpu, plans, SIZE_PROTOCOL),
  );
  if (!gpu.isOpen) {
    gpu.close();
    gpu = await openGpu(choice, features);
  }
  return model === undefined ? gpuExecutorOf(gpu, planning) : gpuExecutor(gpu, model, true);
}
