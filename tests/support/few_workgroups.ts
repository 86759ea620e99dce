import { H200 } from "../../src/algorithms/device/h200.ts";
import type { DeviceModel } from "../../src/algorithms/device/model.ts";

/** A device of one multiprocessor that multiplies so slowly that passes cost nothing: whole waves are few workgroups. */
export const FEW_WORKGROUPS: DeviceModel = {
  ...H200,
  multiprocessors: 1,
  rates: { ...H200.rates, sliced: { one: 1e-4, oneWide: 1e-4, two: 1e-4 } },
};
