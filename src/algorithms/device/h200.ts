import h200 from "./h200.json" with { type: "json" };
import type { DeviceModel } from "./model.ts";
import { softwareFigures, softwarePolicies } from "./software.ts";

/**
 * An NVIDIA H200, the device that is assumed where none is said. Its figures are what `bench/fit_device_model.ts` finds in records, so that
 * choices count and not the figures themselves: `bench/planner_check.ts` says how much what is chosen loses to the best. Those that no
 * record speaks of stay as they were first found: by forced tiles on an H200 and an H100 (matrix units, int8, f32 in halves), by probes of
 * a calibration (`times`, `costs`), and estimates (`dealtUnevenly`, `matrix-sixteen`; nothing was measured of `direct`). `threadResults`
 * are as many as any tile has; two workgroups of 24 KiB share a multiprocessor, two of 25 do not.
 */
export const H200: DeviceModel = h200;

/** The device that a request is for; an H200 where it says nothing. */
export function deviceOf({ device = H200 }: { readonly device?: DeviceModel }): DeviceModel {
  return device;
}

/**
 * A CPU that runs so many workgroups of 256 threads side by side, by the figures of its driver ({@linkcode softwareFigures}). It stays a
 * software device whatever figures are given: its loops are cut short, it weighs a CPU's policies in place of those of a GPU that is given,
 * and a transform's threads wait for nothing.
 *
 * @param adapter Its name, e.g. `llvmpipe (LLVM 15.0.6, 256 bits)`.
 * @param given Figures in place of its own.
 */
export function softwareDevice(
  workgroupsInFlight: number,
  adapter = "",
  given?: DeviceModel,
): DeviceModel {
  if (given?.software) return given;
  const multiprocessors = Math.max(1, Math.round(workgroupsInFlight / 2));
  const { rates, times, shares } = given === undefined
    ? softwareFigures(adapter, multiprocessors, H200)
    : {
      ...given,
      times: { ...given.times, transform: 0, loads: 0 },
      shares: { ...given.shares, policies: softwarePolicies(given.shares) },
    };
  const figures = { ...given ?? H200, rates, times, shares };
  return { ...figures, name: "software", software: true, multiprocessors };
}
