import { OUTDATED_TUNING } from "../algorithms/cost/tuned.ts";
import type { Plan } from "../algorithms/plan.ts";
import type { TuningTable } from "../algorithms/request.ts";
import {
  mergeTuning,
  otherDevice,
  parseTuning,
  printTuning,
  readTuningText,
  type TunedDevice,
  tuningTable,
  type TuningText,
} from "../bench/tuning_file.ts";
import { InputTypeError } from "../errors.ts";
import { readText } from "../read_text.ts";
import { cachePath } from "./kept_files.ts";
import { oneSentence } from "./failure.ts";
import { reporter } from "./output.ts";
import { pathOr } from "./values.ts";
import { counted } from "../report/format.ts";

/** `--tuning`, as `option()` has it. */
export const TUNING_OPTION = [
  "--tuning <file>",
  "results of wgconv tune that auto uses: a file, or none; default the user's",
  pathOr("none"),
] as const;

/** A tuning file and what it holds. */
export interface Tuning extends TuningText {
  readonly path: string;
}

/** Where a user's tuning is kept; undefined where there is no such place, or it may not be known. */
export function tuningPath(): string | undefined {
  return cachePath("tuning.jsonl");
}

/** The file that `--tuning` or its default names. */
export function tuningFile(option: string | undefined): string | undefined {
  return option === "none" ? undefined : option ?? tuningPath();
}

/** Where figures of a device come from. */
export interface TuningChoice {
  readonly tuning?: string | undefined;
  readonly deviceModel?: string | undefined;
  /** Seconds in which more may be learned: a file that is not there is then made. */
  readonly tuneBudget?: number | undefined;
}

/** What `--tuning` says; where it says nothing, `none` beside a device model, which may be another device's. */
export function saidTuning({ tuning, deviceModel }: TuningChoice): string | undefined {
  return tuning ?? (deviceModel === undefined ? undefined : "none");
}

/**
 * Refuses a tuning that nothing asks for.
 *
 * @throws {TypeError} that begins with `doing`.
 */
export function refuseTuning(
  doing: string,
  { tuning, algorithm }: TuningChoice & { readonly algorithm: string | readonly string[] },
): void {
  if (tuning === undefined || tuning === "none" || [algorithm].flat().includes("auto")) return;
  throw new InputTypeError(
    `${doing}: --tuning says what auto takes, and --algorithm does not ask for it; one must go`,
  );
}

/**
 * Reads the tuning that `--tuning` names, or the user's own where there is one. `none` is none, and so is the user's own beside a
 * device model, which may be another device's. It is a cache: where it, or a line of it, cannot be read, a note says so and there is
 * none.
 *
 * @throws {Deno.errors.NotFound} where the named file is not there.
 * @throws {SyntaxError} with file and line, where it is malformed.
 */
export function readTuning(choice: TuningChoice): Tuning | undefined {
  const option = saidTuning(choice);
  const path = tuningFile(option);
  if (path === undefined) return undefined;
  const note = reporter("stderr");
  try {
    const read = option === undefined ? readTuningText : parseTuning;
    const tuning = { path, ...read(readText(path), path) };
    if (tuning.damage !== undefined) {
      const { line, what } = tuning.damage;
      note.message(
        `ignoring what is damaged of ${path}, as line ${line}: ${what}; what is measured next takes ` +
          "its place, and deleting the file is safe",
      );
    }
    if (tuning.foreign > 0) {
      note.message(
        `ignoring ${counted(tuning.foreign, "line")} of ${path}: of another version of wgconv`,
      );
    }
    return tuning;
  } catch (error) {
    const absent = [Deno.errors.NotFound, Deno.errors.NotADirectory];
    const isAbsent = absent.some((kind) => error instanceof kind);
    if (option !== undefined && !(isAbsent && choice.tuneBudget)) throw error;
    if (!isAbsent) {
      note.message(`ignoring the user's tuning: ${oneSentence(error)}; deleting it is safe`);
    }
    return undefined;
  }
}

/** A tuning file's text with more records, in the user's own, which is a cache, without the lines that are damaged. */
export function withRecords(text: string, records: readonly object[], path: string): string {
  const added = records.map((record) => JSON.stringify(record)).join("\n");
  const { lines } = readTuningText(text);
  const old = path === tuningPath() ? lines.filter(({ damage }) => damage === undefined) : lines;
  return printTuning(mergeTuning(old, readTuningText(added).lines));
}

/** The winners on a device. A tuning of other devices is left aside with a word on stderr. */
export function tuningOf(tuning: Tuning | undefined, device: TunedDevice): TuningTable | undefined {
  if (tuning === undefined) return undefined;
  const reason = otherDevice(tuning.lines, device);
  if (reason !== undefined) reporter("stderr").message(`ignoring ${tuning.path}: ${reason}`);
  return tuningTable(tuning.lines, device);
}

/** Whether a tuning had something for a plan that it could not take: the kernels have changed since. */
export function isOutdated({ notes }: Plan): boolean {
  return notes.includes(OUTDATED_TUNING);
}

/** Says for how many cases a tuning was outdated, where it was. */
export function noteOutdated(tuning: Tuning | undefined, cases: number): void {
  if (tuning === undefined || cases === 0) return;
  reporter("stderr").message(
    `ignoring the tuning of ${counted(cases, "case")} in ${tuning.path}: ` +
      "its kernels have changed, run wgconv tune again",
  );
}
