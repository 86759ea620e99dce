import * as v from "valibot";
import { H200 } from "../../algorithms/device/h200.ts";
import { softwareDevice } from "../../algorithms/device/software.ts";
import { type DeviceModel, weighsPolicy } from "../../algorithms/device/model.ts";
import { InputSyntaxError, InputTypeError } from "../../errors.ts";
import { parseJson, schemaFault } from "../../json.ts";
import { TILE_POLICIES } from "../../kernels/policy.ts";
import { readText } from "../../read_text.ts";
import type { DeviceDescription } from "../../report/environment.ts";
import { VERSION } from "../../version.ts";
import type { Calibrated } from "./calibrate.ts";

/** Of calibrations' files: figures of a model that mean something else make it another. */
const CALIBRATION_SCHEMA = 3;

/** Fields that count something. */
const COUNTS = ["multiprocessors", "registers", "threadResults", "sharedBytes"];

/** Figures that may be 0: of what `auto` takes never, and of what costs nothing. */
const MAY_BE_ZERO = ["f16x3", "transform", "loads"];

/** Fields as a value has them, none of them required: positive numbers, objects of such fields, texts, yes and no. */
function schemaLike(value: unknown, former: boolean, name = "", parent = ""): v.GenericSchema {
  if (COUNTS.includes(name)) return v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1e9));
  if (typeof value === "number") {
    const zero = MAY_BE_ZERO.includes(name) || parent === "policies";
    return v.pipe(v.number(), v.minValue(zero ? 0 : 1e-9), v.maxValue(1e12));
  }
  if (typeof value !== "object" || value === null) {
    return typeof value === "boolean" ? v.boolean() : v.string();
  }
  const fields = mapped(value, (field, key) => v.optional(schemaLike(field, former, key, name)));
  return former ? v.object(fields) : v.strictObject(fields);
}

/** The fields of `over` in place of those of `base`, at any depth. */
function merged<T>(base: T, over: unknown): T {
  if (typeof base !== "object" || base === null) return over === undefined ? base : over as T;
  const fields = (over ?? {}) as Record<string, unknown>;
  return mapped(base, (value, name) => merged(value, fields[name])) as T;
}

function mapped<T>(fields: object, each: (value: unknown, name: string) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, each(one, name)]));
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
    const refuse = (what: string) =>
      new InputSyntaxError(`Cannot read ${path}: ${what}expected a JSON object of a device model`);
    parseJson(text, (what, line) => refuse(`line ${line} ${what}, `));
    throw refuse("");
  }
  const { kind, schema, model } = json;
  const isOther = kind === "calibration" ? schema !== CALIBRATION_SCHEMA : schema !== undefined;
  if (isOther) {
    const what = kind === "calibration"
      ? "another version of wgconv wrote it, run wgconv calibrate again"
      : "it is no device model, wgconv calibrate --output writes one";
    throw new InputTypeError(`Cannot read ${path}: ${what}`);
  }
  return kind === "calibration"
    ? parseDeviceModel(model, path, true)
    : parseDeviceModel(json, path);
}

/**
 * The model that a value of JSON is.
 *
 * @param former Whether it may have figures that there are no more, as calibrations wrote all of them: these say nothing.
 * @throws {TypeError} as {@linkcode readDeviceModel}.
 */
export function parseDeviceModel(json: unknown, source: string, former = false): DeviceModel {
  if (typeof json !== "object" || json === null) {
    throw new InputTypeError(`Cannot read ${source}: it has no model of a device`);
  }
  const result = v.safeParse(schemaLike(H200, former), json);
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
  // A model without a name takes its file's: figures that it leaves out are an H200's, but it is none.
  const whole = merged(software ? softwareDevice(2 * multiprocessors) : H200, given);
  const model = { ...whole, name: given.name ?? source };
  if (!TILE_POLICIES.some((policy) => weighsPolicy(model, policy))) {
    throw new InputTypeError(
      `Cannot read ${source}: shares.policies are 0 for every policy without matrix units, expected one that is not`,
    );
  }
  return model;
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
  const date = new Date().toISOString();
  const record = {
    ...{ schema: CALIBRATION_SCHEMA, kind: "calibration", version: VERSION, date },
    ...{ backend, device: adapter, driver, limits, measured, times },
    scaled: "all other rates keep their ratio to those that were measured, shares are an H200's",
    ...{ notes, model },
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
  return { model: parseDeviceModel(json.model, source, true), date };
}
