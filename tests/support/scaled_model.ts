import type { DeviceModel } from "../../src/algorithms/device/model.ts";

/** The model with all rates times `factor`, and times over it: a device that does the same so much faster. */
export function scaledModel(model: DeviceModel, factor: number): DeviceModel {
  return {
    ...model,
    rates: scaledNumbers(model.rates, factor),
    times: scaledNumbers(model.times, 1 / factor),
  };
}

function scaledNumbers<T extends object>(values: T, factor: number): T {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === "number" ? value * factor : scaledNumbers(value, factor),
    ]),
  ) as T;
}
