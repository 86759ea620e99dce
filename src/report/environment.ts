import { VERSION } from "../version.ts";
import type { EnvironmentRecord } from "./record.ts";

/** What computes: a GPU's adapter and driver, or the CPU. */
export interface DeviceDescription {
  readonly backend: string;
  readonly adapter: string;
  readonly driver: string;
  readonly limits: Readonly<Record<string, number>>;
}

/** The CPU backend as records describe it. */
export const CPU_DEVICE: DeviceDescription = {
  backend: "cpu",
  adapter: "CPU (FP64 reference)",
  driver: "",
  limits: {},
};

/**
 * First line of a record stream, dated now.
 *
 * @param options What else a run may be resumed with only when it is the same.
 */
export function environmentRecord(
  device: DeviceDescription,
  seed: number,
  options?: Readonly<Record<string, string | number>>,
): EnvironmentRecord {
  return {
    schema: 1,
    kind: "environment",
    program: "wgconv",
    version: VERSION,
    deno: Deno.version.deno,
    os: `${Deno.build.os} ${Deno.build.arch}`,
    ...device,
    seed,
    ...(options === undefined ? {} : { options }),
    date: new Date().toISOString(),
  };
}
