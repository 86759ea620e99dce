import { join } from "#path";
import type { TuningTable } from "../algorithms/tuning.ts";
import {
  otherDevice,
  parseTuning,
  type TunedDevice,
  type TuningLine,
  tuningTable,
} from "../bench/tuning_file.ts";
import type { GpuDevice } from "../gpu/device.ts";
import { printer } from "./output.ts";
import { readText } from "./records.ts";

/** A tuning file and what it holds. */
export interface Tuning {
  readonly path: string;
  readonly lines: readonly TuningLine[];
}

/** Where a user's tuning is kept; undefined where there is no such place, or it may not be known. */
export function tuningPath(): string | undefined {
  const folder = Deno.build.os === "windows"
    ? variable("LOCALAPPDATA")
    : variable("XDG_CACHE_HOME") ?? under(variable("HOME"), ".cache");
  return under(folder, join("wgconv", "tuning.jsonl"));
}

function variable(name: string): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable: name });
  return state === "granted" ? Deno.env.get(name) || undefined : undefined;
}

function under(folder: string | undefined, path: string): string | undefined {
  return folder === undefined ? undefined : join(folder, path);
}

/** The file that `--tuning` or its default names. */
export function tuningFile(option: string | undefined): string | undefined {
  return option === "none" ? undefined : option ?? tuningPath();
}

/**
 * Reads the tuning that `--tuning` names, or the user's own where there is one. `none` is none.
 *
 * @throws {Deno.errors.NotFound} where the named file is not there.
 * @throws {SyntaxError} with file and line, where it is malformed.
 */
export async function readTuning(option: string | undefined): Promise<Tuning | undefined> {
  if (option === "none") return undefined;
  const path = option ?? tuningPath();
  if (path === undefined) return undefined;
  try {
    return { path, lines: parseTuning(await readText(path), path) };
  } catch (error) {
    if (option === undefined && error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** The winners on a device. A tuning of other devices is left aside with a word on stderr. */
export function tuningOf(tuning: Tuning | undefined, gpu: GpuDevice): TuningTable | undefined {
  if (tuning === undefined) return undefined;
  const device = deviceOf(gpu);
  const reason = otherDevice(tuning.lines, device);
  if (reason !== undefined) printer("stderr").line(`ignoring ${tuning.path}: ${reason}`);
  return tuningTable(tuning.lines, device);
}

function deviceOf({ info }: GpuDevice): TunedDevice {
  return { backend: info.backend, adapter: info.adapter, driver: info.driver ?? "" };
}
