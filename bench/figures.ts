/** The numbers of a device model, by where they stand in it. */
import type { DeviceModel } from "../src/algorithms/device/model.ts";

/** Names of fields, from a model inwards. */
export type FigurePath = readonly string[];

/** Where all times, rates, shares and costs stand. */
export function figurePaths(model: DeviceModel): FigurePath[] {
  const below = (value: unknown, path: FigurePath): FigurePath[] =>
    typeof value === "number"
      ? [path]
      : Object.entries(value ?? {}).flatMap(([name, field]) => below(field, [...path, name]));
  return (["times", "rates", "shares", "costs"] as const).flatMap((name) =>
    below(model[name], [name])
  );
}

export function figure(model: DeviceModel, path: FigurePath): number {
  return path.reduce<unknown>(
    (value, name) => (value as Record<string, unknown>)[name],
    model,
  ) as number;
}

/** A model with another figure. */
export function withFigure<T>(model: T, [name, ...rest]: FigurePath, value: number): T {
  const field = (model as Record<string, unknown>)[name!];
  return { ...model, [name!]: rest.length === 0 ? value : withFigure(field, rest, value) };
}
