import { createHash } from "node:crypto";
import { dirname } from "node:path";
import {
  type CalibratedDevice,
  type Calibration,
  parseCalibration,
} from "../bench/calibrate/model_file.ts";
import { gpuModel, isMeasured } from "../algorithms/device/known.ts";
import { deviceText } from "../algorithms/device/model.ts";
import { readText } from "../read_text.ts";
import { cachePath, statOf } from "./kept_files.ts";
import { oneSentence } from "./failure.ts";
import { isQuiet, reporter } from "./output.ts";

/** How much of a device was measured: all, or what its rates scale by. */
type Extent = "all" | "size";

/** Where a device's calibration is kept; undefined where there is no cache directory. */
export function calibrationPath(
  device: CalibratedDevice,
  extent: Extent = "all",
): string | undefined {
  return cachePath("devices", `${fileName(device)}${extent === "size" ? ".size" : ""}.json`);
}

/** A device as the name of a file: what people know it by, and a hash of all that tells it from others. */
function fileName({ backend, adapter, driver }: CalibratedDevice): string {
  const hash = createHash("sha256").update(JSON.stringify([backend, adapter, driver]));
  const name = adapter.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);
  return `${name}-${hash.digest("hex").slice(0, 8)}`;
}

/** Files of which it was said that they cannot be used. */
const told = new Set<string>();

/** The calibration that is kept of a device, if any; one that cannot be used costs a note, once. */
export function keptCalibration(
  device: CalibratedDevice,
  extent: Extent = "all",
): Calibration | undefined {
  const path = calibrationPath(device, extent);
  if (path === undefined) return undefined;
  try {
    return parseCalibration(readText(path), path, device);
  } catch (error) {
    const absent = [Deno.errors.NotFound, Deno.errors.NotADirectory];
    if (!absent.some((kind) => error instanceof kind) && !told.has(path)) {
      told.add(path);
      reporter("stderr").message(
        `ignoring the calibration: ${oneSentence(error)}${
          extent === "size" ? "; deleting it is safe" : "; run wgconv calibrate again"
        }`,
      );
    }
    return undefined;
  }
}

/** Says once of a GPU that was not measured whose figures count, and that calibrating it pays. */
export function noteUncalibrated(device: CalibratedDevice & { readonly software: boolean }): void {
  if (
    isQuiet() || device.software ||
    !isNews(device, cachePath("devices", `${fileName(device)}.noted`))
  ) return;
  reporter("stderr").message(
    `wgconv: note: auto plans for ${device.adapter} as for ` +
      `${deviceText(gpuModel(device.adapter))}; wgconv calibrate measures it in seconds`,
  );
}

/**
 * Whether a device is one whose figures are not measured, and nobody has been told; always where that cannot be noted.
 *
 * @param said The file that notes it.
 */
export function isNews({ adapter }: Pick<CalibratedDevice, "adapter">, said: string | undefined) {
  return !isMeasured(adapter) && (said === undefined || markOnce(said));
}

function unsizedPath(device: CalibratedDevice): string | undefined {
  return cachePath("devices", `${fileName(device)}.unsized`);
}

/** Whether it is known that a device's size cannot be measured. */
export function isUnsized(device: CalibratedDevice): boolean {
  const path = unsizedPath(device);
  return path !== undefined && statOf(path) !== undefined;
}

/** Notes that a device's size cannot be measured. Whether that is news, as far as it can be noted. */
export function markUnsized(device: CalibratedDevice): boolean {
  const path = unsizedPath(device);
  return path === undefined || markOnce(path);
}

function markOnce(path: string): boolean {
  try {
    Deno.mkdirSync(dirname(path), { recursive: true });
    Deno.openSync(path, { write: true, createNew: true }).close();
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.AlreadyExists);
  }
}
