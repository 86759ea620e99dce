import { createHash } from "node:crypto";
import { H200 } from "../algorithms/device/h200.ts";
import { KNOWN_GPUS, publishedModel } from "../algorithms/device/known.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import { readDeviceModel } from "../bench/calibrate/model_file.ts";
import { pathOr, readPathOr } from "./values.ts";

export const DEVICE_MODEL_HELP =
  "device to plan for: a file of calibrate --output, h200, or a GPU such as m3 (docs/guides/gpus.md has all)";

const WORDS: Readonly<Record<string, DeviceModel>> = {
  h200: H200,
  ...Object.fromEntries(KNOWN_GPUS.map((gpu) => [gpu.word, publishedModel(gpu)])),
};

export const parseDeviceModel = pathOr(...Object.keys(WORDS));

/** The model that `--device-model` says. */
export function givenModel(path: string | undefined): DeviceModel | undefined {
  if (path === undefined) return undefined;
  return WORDS[path] ?? readPathOr(Object.keys(WORDS), path, readDeviceModel);
}

/** A model in the options of a run: its name, and a hash of its figures. */
export function modelTrait(model: DeviceModel): string {
  const hash = createHash("sha256").update(JSON.stringify(model)).digest("hex");
  return `${model.name} ${hash.slice(0, 8)}`;
}
