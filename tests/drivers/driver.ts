import assert from "#assert";
import { openDevice } from "../../src/gpu/device.ts";
import type { GpuDevice } from "../../src/gpu/gpu_device.ts";

/** The WebGPU that driver tests run on: Deno's own, or Dawn with `WGCONV_TEST_BACKEND=dawn`. */
export const backend = Deno.env.get("WGCONV_TEST_BACKEND") === "dawn" ? "dawn" : "wgpu";
/** Whether they take all of their matrix, with `WGCONV_TEST_MATRIX=full` (`deno task test:drivers`), and not a sample. */
export const full = Deno.env.get("WGCONV_TEST_MATRIX") === "full";

/** How devices of tests are opened. */
interface Opening {
  readonly optionalFeatures?: readonly string[];
  readonly robust?: boolean;
}

/** As commands open it. */
const COMMANDS: Opening = { optionalFeatures: ["shader-f16"], robust: false };

/** What makes tests, each with a device of its own; of a device that `lacks` something they are left out. */
export function testsOn(
  opening: Opening,
  lacks: (gpu: GpuDevice) => string | undefined = () => undefined,
) {
  return (name: string, body: (gpu: GpuDevice) => void | Promise<void>): void =>
    Deno.test(name, async () => {
      using gpu = await openDevice({ backend, ...opening });
      const lacking = lacks(gpu);
      if (lacking === undefined) await body(gpu);
      else console.log(`left out: ${gpu.info.adapter} (${backend}) has no ${lacking}`);
    });
}

const units = testsOn(
  COMMANDS,
  ({ matrixUnits }) => matrixUnits ? undefined : "matrix units",
);

/** A test with the driver's device. */
export const test = Object.assign(testsOn({}), {
  /** A test of f16. */
  half: testsOn(
    { optionalFeatures: ["shader-f16"] },
    ({ features }) => features.has("shader-f16") ? undefined : "shader-f16",
  ),
  /** A test of matrix units. */
  units,
  /** A test that results on matrix units are the same where the device checks indices itself. */
  checked(name: string, resultsOf: (gpu: GpuDevice) => Promise<readonly unknown[]>): void {
    units(name, async (gpu) => {
      using checked = await openDevice({ backend, ...COMMANDS, robust: true });
      assert.deepEqual(await resultsOf(gpu), await resultsOf(checked));
    });
  },
});
