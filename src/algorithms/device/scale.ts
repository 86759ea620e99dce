import type { DeviceModel } from "./model.ts";

/** Figures times a factor, at any depth. */
export function scaledBy<T extends object>(figures: T, factor: number): T {
  const scaled = (value: unknown): unknown =>
    typeof value === "number" ? value * factor : Object.fromEntries(
      Object.entries(value as object).map(([name, one]) => [name, scaled(one)]),
    );
  return scaled(figures) as T;
}

/**
 * The model of a device that computes and moves data so many times as fast, and whose dispatches take so many times as long. Costs, which are
 * in multiply-adds, follow.
 */
export function scaledModel(
  model: DeviceModel,
  { computing = 1, moving = 1, waiting = 1 }: {
    readonly computing?: number;
    readonly moving?: number;
    readonly waiting?: number;
  },
): DeviceModel {
  const { rates, times, costs } = model;
  const { stream, filterStream, slicedStore, winrsBuckets } = scaledBy(rates, moving);
  const { element, store, storeAgain, unitStore } = scaledBy(costs, computing / moving);
  return {
    ...model,
    rates: { ...scaledBy(rates, computing), stream, filterStream, slicedStore, winrsBuckets },
    times: scaledBy(times, waiting),
    costs: {
      ...costs,
      ...{ element, store, storeAgain, unitStore },
      dispatch: costs.dispatch * computing * waiting,
    },
  };
}
