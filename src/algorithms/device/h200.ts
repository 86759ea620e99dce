import h200 from "./h200.json" with { type: "json" };
import type { DeviceModel } from "./model.ts";

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
