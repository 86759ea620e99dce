import { createHash } from "node:crypto";
import { H200 } from "../algorithms/device/h200.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import { readDeviceModel } from "../bench/calibrate/model_file.ts";
import { pathOr, readPathOr } from "./values.ts";

export const DEVICE_MODEL_HELP =
  "model to predict times by: a file of calibrate --output, or h200 (NVIDIA)";

const H200_WORD = "h200";

export const parseDeviceModel = pathOr(H200_WORD);

/** The model that `--device-model` says. */
export function givenModel(path: string | undefined): DeviceModel | undefined {
  if (path === undefined) return undefined;
  return path === H200_WORD ? H200 : readPathOr(H200_WORD, path, readDeviceModel);
}

/** A model in the options of a run: its name, and a hash of its figures. */
export function modelTrait(model: DeviceModel): string {
  const hash = createHash("sha256").update(JSON.stringify(model)).digest("hex");
  return `${model.name} ${hash.slice(0, 8)}`;
}
