import { predictMs } from "../../algorithms/cost/auto.ts";
import type { DeviceModel } from "../../algorithms/device/model.ts";
import type { PlanRequest } from "../../algorithms/request.ts";

/** Errors beyond this count no more: what no figure explains should not pull at all of them. */
const FAR = 0.4;

/** A figure of a model by its path, e.g. `["rates", "packed"]`. */
export type FigurePath = readonly string[];

/** What was measured, and what a model says of it. */
export interface FitCase {
  readonly ms: number;
  /** Milliseconds; undefined where nothing is predicted. */
  predict(model: DeviceModel): number | undefined;
}

/** How a model is fitted. */
interface FitOptions {
  /** Figures, those of a group by one factor. */
  readonly groups: readonly (readonly FigurePath[])[];
  /** By how much a figure is changed in each round, as a share of itself. */
  readonly steps: readonly number[];
  /**
   * What a figure costs that is not what it was, in squared errors; `change` is the logarithm of their ratio, `count` the cases
   * that it has a say in.
   */
  readonly penalty: (change: number, count: number) => number;
  /** Whether a case, by its place, is to say something of a group's figures where these have a say in it; each one where absent. */
  readonly speaks?: (paths: readonly FigurePath[], index: number) => boolean;
  readonly onRound?: (model: DeviceModel) => void;
}

/** log(predicted / measured); undefined where nothing is predicted. */
export function predictionError(one: FitCase, model: DeviceModel): number | undefined {
  const predicted = one.predict(model);
  return predicted === undefined ? undefined : Math.log(predicted / one.ms);
}

/** Milliseconds that a model says of a request for a named algorithm; undefined where it says nothing. */
export function predictRequest(request: PlanRequest, device: DeviceModel): number | undefined {
  if (request.algorithm === "auto") return undefined;
  const predicted = predictMs({ ...request, device }, request.algorithm);
  return typeof predicted === "number" ? predicted : undefined;
}

/** Root mean square; 0 of nothing. */
export function rms(errors: readonly number[]): number {
  return Math.sqrt(errors.reduce((sum, one) => sum + one * one, 0) / Math.max(1, errors.length));
}

/** Paths of the figures that may be fitted: rates, shares, times and costs. */
export function figurePaths(model: DeviceModel): FigurePath[] {
  return ["rates", "shares", "times", "costs"].flatMap((name) =>
    pathsBelow(model[name as keyof DeviceModel], [name])
  );
}

function pathsBelow(value: unknown, path: FigurePath): FigurePath[] {
  if (typeof value === "number") return [path];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => pathsBelow(field, [...path, name]));
}

/** A figure of a model. */
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

/** A model with figures times a factor, of three digits each. */
function scaleFigures(
  model: DeviceModel,
  paths: readonly FigurePath[],
  factor: number,
): DeviceModel {
  return paths.reduce(
    (scaled, path) => withFigure(scaled, path, threeDigits(factor * figure(model, path))),
    model,
  );
}

function threeDigits(value: number): number {
  return Number(value.toPrecision(3));
}

/** What an error counts: its square, growing no faster than itself where it is far off. */
function cost(error: number): number {
  const size = Math.abs(error);
  return size < FAR ? size * size : FAR * (2 * size - FAR);
}

/**
 * The model whose predictions are nearest to what was measured: one group of figures after the other is changed by the
 * round's step, and keeps what lowers the errors of the cases that it has a say in by more than it costs. Figures have three
 * digits.
 */
export function fitFigures(
  start: DeviceModel,
  cases: readonly FitCase[],
  { groups, steps, penalty, speaks = () => true, onRound }: FitOptions,
): DeviceModel {
  const errorOf = (index: number, model: DeviceModel) => predictionError(cases[index]!, model) ?? 0;
  let model = start;
  const before = cases.map((_, index) => errorOf(index, start));
  const fitted = groups.map((paths) => ({
    paths,
    touched: touchedBy(paths, steps[0] ?? 0).filter((index) => speaks(paths, index)),
  }));
  for (const step of steps) {
    for (const { paths, touched } of fitted) {
      if (touched.length === 0) continue;
      const change = (one: DeviceModel) =>
        Math.log(figure(one, paths[0]!) / figure(start, paths[0]!));
      // Computed anew: figures that were fitted before this one have moved these cases.
      const loss = (one: DeviceModel) =>
        touched.reduce((sum, index) => sum + cost(errorOf(index, one)), 0) +
        penalty(change(one), touched.length);
      let best = { model, loss: loss(model) };
      const changed = change(model) === 0 ? [] : [restored(model, paths)];
      const factors = [1 + step, 1 / (1 + step), 1 + step / 3, 1 / (1 + step / 3)];
      for (const one of [...factors.map((by) => scaleFigures(model, paths, by)), ...changed]) {
        const lost = loss(one);
        if (lost < best.loss) best = { model: one, loss: lost };
      }
      model = best.model;
    }
    onRound?.(model);
  }
  return model;

  /** The cases that figures have a say in, within a step. */
  function touchedBy(paths: readonly FigurePath[], step: number): number[] {
    const nearby = [1 + step, 1 / (1 + step)].map((by) => scaleFigures(start, paths, by));
    return [...cases.keys()].filter((index) =>
      nearby.some((one) => errorOf(index, one) !== before[index])
    );
  }

  /** A model with figures as they were at the start. */
  function restored(one: DeviceModel, paths: readonly FigurePath[]): DeviceModel {
    return paths.reduce((some, path) => withFigure(some, path, figure(start, path)), one);
  }
}
