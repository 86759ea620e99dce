import * as v from "valibot";
import { H200, softwareDevice } from "../../algorithms/device/h200.ts";
import { type DeviceModel, weighsPolicy } from "../../algorithms/device/model.ts";
import { InputSyntaxError, InputTypeError } from "../../errors.ts";
import { parseJson, schemaFault } from "../../json.ts";
import { TILE_POLICIES } from "../../kernels/policy.ts";
import { readText } from "../../read_text.ts";
import type { DeviceDescription } from "../../report/environment.ts";
import { VERSION } from "../../version.ts";
import type { Calibrated } from "./calibrate.ts";

/** Of calibrations' files: figures of a model that are not what they were make it another. */
const CALIBRATION_SCHEMA = 3;
/** Its figures of GPUs mean the same; those of CPUs were without shares of policies. */
const GPU_SCHEMA = 2;

/** Fields that count something. */
const COUNTS = ["multiprocessors", "registers", "threadResults", "sharedBytes"];

/** Figures that may be 0: of what `auto` takes never, and of what costs nothing. */
const MAY_BE_ZERO = ["f16x3", "transform", "halvesText", "loads"];
/** The same of all that lies below. */
const ALL_MAY_BE_ZERO = "policies";

/** Figures that models had, by what they stood below: calibrations wrote all of them. Those that are read say nothing. */
const FORMER: Readonly<Record<string, readonly string[]>> = {
  flushed: ["transformed"],
  sliced: ["joined", "flushed"],
  shares: ["unpacking"],
  "F(4,3)": ["64x64x8_8x8d"],
};

/** Fields as a value has them, none of them required: positive numbers, objects of such fields, texts, yes and no. */
function schemaLike(value: unknown, name = "", parent = ""): v.GenericSchema {
  if (COUNTS.includes(name)) return v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1e9));
  if (typeof value === "number") {
    const zero = MAY_BE_ZERO.includes(name) || parent === ALL_MAY_BE_ZERO;
    return v.pipe(v.number(), v.minValue(zero ? 0 : 1e-9), v.maxValue(1e12));
  }
  if (typeof value !== "object" || value === null) {
    return typeof value === "boolean" ? v.boolean() : v.string();
  }
  return v.strictObject(
    Object.fromEntries([
      ...(FORMER[name] ?? []).map((key) => [key, v.optional(v.number())]),
      ...Object.entries(value).map((
        [key, field],
      ) => [key, v.optional(schemaLike(field, key, name))]),
    ]),
  );
}

/** The fields of `over` in place of those of `base`, at any depth. */
function merged<T>(base: T, over: unknown): T {
  if (typeof base !== "object" || base === null) return over === undefined ? base : over as T;
  const fields = (over ?? {}) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(base).map(([name, value]) => [name, merged(value, fields[name])]),
  ) as T;
}

/**
 * The model that a file holds: a JSON object of {@linkcode DeviceModel}'s fields, or what a calibration wrote. What it lacks is an
 * H200's, or lavapipe's where it says that it is of a software device.
 *
 * @throws {SyntaxError} for text that is no JSON, {TypeError} for a calibration of another version, or a field that a model does not have, or other than it has it.
 */
export function readDeviceModel(path: string): DeviceModel {
  const text = readText(path);
  const json = jsonObject(text);
  if (json === undefined) {
    const expected = "expected a JSON object of a device model";
    parseJson(
      text,
      (what, line) =>
        new InputSyntaxError(`Cannot read ${path}: line ${line} ${what}, ${expected}`),
    );
    throw new InputSyntaxError(`Cannot read ${path}: ${expected}`);
  }
  if (json.kind !== "calibration") {
    if (json.schema !== undefined) {
      throw new InputTypeError(
        `Cannot read ${path}: it is no device model, wgconv calibrate --output writes one`,
      );
    }
    return parseDeviceModel(json, path);
  }
  const { schema, model } = json;
  const known = schema === CALIBRATION_SCHEMA ||
    schema === GPU_SCHEMA && (model as { software?: unknown } | null)?.software === false;
  if (!known) {
    throw new InputTypeError(
      `Cannot read ${path}: another version of wgconv wrote it, run wgconv calibrate again`,
    );
  }
  return parseDeviceModel(model, path);
}

/**
 * The model that a value of JSON is.
 *
 * @throws {TypeError} as {@linkcode readDeviceModel}.
 */
export function parseDeviceModel(json: unknown, source: string): DeviceModel {
  if (typeof json !== "object" || json === null) {
    throw new InputTypeError(`Cannot read ${source}: it has no model of a device`);
  }
  const result = v.safeParse(schemaLike(H200), json);
  if (result.success) return wholeModel(result.output as Partial<DeviceModel>, source);
  const { unknown, field, what } = schemaFault(result.issues[0], "the text");
  throw new InputTypeError(
    `Cannot read ${source}: ${unknown ? `a device model has no ${field}` : what}`,
  );
}

/** A model of some figures: what it lacks is an H200's, or a software device's of as many multiprocessors. */
function wholeModel(given: Partial<DeviceModel>, source: string): DeviceModel {
  const { software = false, multiprocessors = 0 } = given;
  if (software && multiprocessors === 0) {
    throw new InputTypeError(
      `Cannot read ${source}: it is of a software device, and has no multiprocessors`,
    );
  }
  const base = software ? softwareDevice(2 * multiprocessors) : H200;
  const whole = merged(base, { ...given, rates: ratesOf(given, base) });
  // Shares of policies were measured by what the same file says of few warps, which had one figure for all of them.
  const { busy, power } = whole.warps;
  const alike = given.warps !== undefined && given.warps.loop === undefined;
  const loop = alike ? { busy, power } : whole.warps.loop;
  // A model without a name takes its file's: figures that it leaves out are an H200's, but it is none.
  const model = { ...whole, name: given.name ?? source, warps: { ...whole.warps, loop } };
  if (!TILE_POLICIES.some((policy) => weighsPolicy(model, policy))) {
    throw new InputTypeError(
      `Cannot read ${source}: shares.policies are 0 for every policy without matrix units, expected one that is not`,
    );
  }
  return model;
}

/** Rates of a file: WinRS kernels that it does not know are as much faster or slower than another device's as all of them together. */
function ratesOf({ rates }: Partial<DeviceModel>, base: DeviceModel): DeviceModel["rates"] {
  if (rates?.winrs === undefined || rates.winrsOverall === undefined) return rates ?? base.rates;
  const share = rates.winrsOverall / base.rates.winrsOverall;
  const others = Object.entries(base.rates.winrs).map(([name, rate]) => [name, share * rate]);
  return { ...rates, winrs: { ...Object.fromEntries(others), ...rates.winrs } };
}

/** The object that a text is in JSON; undefined where it is none. */
function jsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Record<string, unknown>
      : undefined;
  } catch {
    return undefined;
  }
}

/** What tells devices apart. */
export type CalibratedDevice = Pick<DeviceDescription, "backend" | "adapter" | "driver">;

/** A calibration as it was kept. */
export interface Calibration {
  readonly model: DeviceModel;
  /** When it was measured, as ISO 8601 has it. */
  readonly date: string;
}

/** The text of a calibration's file, dated now. */
export function printCalibration(
  { backend, adapter, driver, limits }: DeviceDescription,
  { model, measured, times, notes }: Calibrated,
): string {
  const record = {
    schema: CALIBRATION_SCHEMA,
    kind: "calibration",
    version: VERSION,
    date: new Date().toISOString(),
    backend,
    device: adapter,
    driver,
    limits,
    measured,
    times,
    scaled:
      "all other rates keep their ratio to those that were measured, shares are an H200's (of a CPU's policies lavapipe's)",
    notes,
    model,
  };
  return `${JSON.stringify(record, null, 2)}\n`;
}

/**
 * Reads a calibration of a device.
 *
 * @throws {SyntaxError | TypeError} with the file's name where it is damaged, of another version of the program, or of another
 * device.
 */
export function parseCalibration(
  text: string,
  source: string,
  { backend, adapter, driver }: CalibratedDevice,
): Calibration {
  const json = jsonObject(text);
  if (json?.kind !== "calibration") {
    throw new InputSyntaxError(`Cannot read ${source}: it is no calibration`);
  }
  if (json.schema !== CALIBRATION_SCHEMA || json.version !== VERSION) {
    throw new InputTypeError(`Cannot read ${source}: another version of wgconv wrote it`);
  }
  if (json.backend !== backend || json.device !== adapter || json.driver !== driver) {
    throw new InputTypeError(`Cannot read ${source}: it is of another device or driver`);
  }
  const { date } = json;
  if (typeof date !== "string" || Number.isNaN(Date.parse(date))) {
    throw new InputTypeError(`Cannot read ${source}: it has no date`);
  }
  return { model: parseDeviceModel(json.model, source), date };
}
