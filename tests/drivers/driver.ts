import { openDevice } from "../../src/gpu/device.ts";
import type { GpuDevice } from "../../src/gpu/gpu_device.ts";

/** The WebGPU that driver tests run on: Deno's own, or Dawn with `WGCONV_TEST_BACKEND=dawn`. */
export const backend = Deno.env.get("WGCONV_TEST_BACKEND") === "dawn" ? "dawn" : "wgpu";
/** Whether they take all of their matrix, with `WGCONV_TEST_MATRIX=full` (`deno task test:drivers`), and not a sample. */
export const full = Deno.env.get("WGCONV_TEST_MATRIX") === "full";

/** Opens the device as commands do; undefined where it has no matrix units. */
export async function openMatrixUnits(robust = false): Promise<GpuDevice | undefined> {
  const gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"], robust });
  if (gpu.matrixUnits !== undefined) return gpu;
  gpu.close();
  console.log(`left out: ${gpu.info.adapter} (${backend}) has no matrix units`);
  return undefined;
}
