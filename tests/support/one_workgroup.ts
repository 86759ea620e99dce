import { softwareDevice } from "../../src/algorithms/device/software.ts";
import type { DeviceModel } from "../../src/algorithms/device/model.ts";

const device = softwareDevice(2);

/** A device that runs one workgroup at a time: stream-K splits the last tile alone. */
export const ONE_WORKGROUP: DeviceModel = {
  ...device,
  warps: { ...device.warps, busy: 1, onUnits: 1 },
};
