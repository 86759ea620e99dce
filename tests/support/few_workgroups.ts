import { H200 } from "../../src/algorithms/device/h200.ts";
import type { DeviceModel } from "../../src/algorithms/device/model.ts";

/**
 * A device that runs seven small workgroups at a time, so slowly that passes cost nothing: blocks that are no whole waves of seven share
 * their depths.
 */
export const FEW_WORKGROUPS: DeviceModel = {
  ...H200,
  multiprocessors: 7,
  registers: 2048,
  warps: { ...H200.warps, busy: 1 },
  rates: { ...H200.rates, sliced: { one: 1e-4, oneWide: 1e-4, two: 1e-4 } },
};
