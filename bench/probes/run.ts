import { parseArgs } from "node:util";
import { parsePattern } from "../../src/cli/match_option.ts";
import { type GpuDevice, openDevice } from "../../src/gpu/device.ts";

/** What a benchmark of probes runs on, as its command line has it. */
export interface ProbeRun {
  readonly gpu: GpuDevice;
  readonly multiprocessors: number;
  /** Clocks a second of all multiprocessors. */
  readonly clocks: number;
  /** Whether a probe by that name is asked for. */
  asks(name: string): boolean;
}

/**
 * Reads `--match`, `--multiprocessors` and `--mhz`, an H200's where nothing is said, and `--backend`, opens the device, without checks
 * of bounds where that can be had, and says which it is.
 */
export async function openProbes(): Promise<ProbeRun> {
  const { values } = parseArgs({
    options: {
      match: { type: "string", default: "" },
      multiprocessors: { type: "string", default: "132" },
      mhz: { type: "string", default: "1980" },
      backend: { type: "string", default: "wgpu" },
    },
  });
  const pattern = parsePattern(values.match);
  const multiprocessors = Number(values.multiprocessors);
  const gpu = await openDevice({
    backend: values.backend === "dawn" ? "dawn" : "wgpu",
    robust: false,
  });
  console.log(gpu.info.adapter);
  return {
    gpu,
    multiprocessors,
    clocks: multiprocessors * Number(values.mhz) * 1e6,
    asks: (name) => pattern.test(name),
  };
}
