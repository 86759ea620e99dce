import type { DeviceModel } from "../../algorithms/device/model.ts";
import { InputSyntaxError, InputTypeError } from "../../errors.ts";
import { VERSION } from "../../version.ts";
import type { Calibrated } from "./calibrate.ts";
import { CALIBRATION_SCHEMA, jsonObject, parseDeviceModel } from "./model_file.ts";
import type { DeviceDescription } from "../../report/environment.ts";

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
