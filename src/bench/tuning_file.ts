import { problemClass } from "../algorithms/cost/auto.ts";
import { algorithmNames } from "../algorithms/registry.ts";
import type { TunedChoice, TuningTable } from "../algorithms/request.ts";
import { InputSyntaxError, isInputError } from "../errors.ts";
import { schemaFault } from "../json.ts";
import { CONV_DTYPES, CONV_OUT_DTYPES, OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";
import { VERSION } from "../version.ts";
import * as v from "valibot";

/** What is read back of a tuning record of a convolution. */
const TunedSchema = v.object({
  schema: v.literal(1),
  kind: v.literal("tuning"),
  backend: v.string(),
  device: v.string(),
  driver: v.string(),
  problem: v.string(),
  op: v.picklist(OPERATIONS),
  dtype: v.picklist(CONV_DTYPES),
  out_dtype: v.optional(v.picklist(CONV_OUT_DTYPES)),
  layout: v.picklist(LAYOUTS),
  filter_layout: v.picklist(FILTER_LAYOUTS),
  algorithm: v.lazy(() => v.picklist(algorithmNames())),
  policy: v.optional(v.string()),
  tile: v.optional(v.string()),
  pair: v.optional(v.string()),
  segments: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1))),
  kernels: v.array(v.string()),
  winner: v.boolean(),
  verdict: v.string(),
});

type Tuned = v.InferOutput<typeof TunedSchema>;

/** A line of a tuning file: its text, and what it says where it is a tuning of a convolution. */
interface TuningLine {
  readonly text: string;
  readonly tuned?: Tuned;
}

/** What a tuning file holds. */
export interface TuningText {
  readonly lines: readonly TuningLine[];
  /** Records that another version of the program wrote and this one cannot use. */
  readonly foreign: number;
  /** The first line that is neither a record nor a comment: its number and what is wrong, as a clause. */
  readonly damage?: { readonly line: number; readonly what: string };
}

/** What tells devices apart. */
export interface TunedDevice {
  readonly backend: string;
  readonly adapter: string;
  readonly driver: string;
}

/** Reads every line of a tuning file; those that are no tuning of a convolution are kept as they are. */
export function readTuningText(text: string): TuningText {
  const lines: TuningLine[] = [];
  let foreign = 0;
  let damage: TuningText["damage"];
  for (const line of text === "" ? [] : text.replace(/\n$/, "").split("\n")) {
    const read = readLine(line);
    lines.push({ text: line, ...(typeof read === "object" ? { tuned: read } : {}) });
    if (read === FOREIGN) foreign++;
    else if (typeof read === "string") damage ??= { line: lines.length, what: read };
  }
  return { lines, foreign, ...(damage === undefined ? {} : { damage }) };
}

const FOREIGN = Symbol("a record of another version");

/** What a line says; undefined where it is none of ours, and a clause where it is damaged. */
function readLine(line: string): Tuned | typeof FOREIGN | string | undefined {
  if (/^\s*(#|\/\/|$)/.test(line)) return undefined;
  let value: { readonly [field in "schema" | "kind" | "op" | "version"]?: unknown };
  try {
    value = JSON.parse(line);
  } catch {
    return "the line is no JSON";
  }
  if (typeof value?.kind !== "string") return "the line is no record";
  if (value.kind !== "tuning" || value.op === "gemm") return undefined;
  if (value.schema !== 1) return FOREIGN;
  const clause = (what: string) => value.version === VERSION || !value.version ? what : FOREIGN;
  const result = v.safeParse(TunedSchema, value);
  if (!result.success) {
    return clause(schemaFault(result.issues[0], "the record").what);
  }
  try {
    parseDescriptor(result.output.problem, result.output.op);
    return result.output;
  } catch (error) {
    if (!isInputError(error)) throw error;
    return clause(`the problem: ${error.message.split("\n")[0]}`);
  }
}

/**
 * Reads a tuning file for the planner.
 *
 * @throws {SyntaxError} with file and line, where it is damaged.
 */
export function parseTuning(text: string, source: string): TuningText {
  const read = readTuningText(text);
  if (read.damage === undefined) return read;
  const { line, what } = read.damage;
  throw new InputSyntaxError(`Cannot read the tuning: ${source}:${line}: ${what}`);
}

/** The winners that were measured, and found exact, on a device. */
export function tuningTable(lines: readonly TuningLine[], device: TunedDevice): TuningTable {
  const table = new Map<string, TunedChoice>();
  for (const tuned of tunedOf(lines)) {
    if (!isOf(tuned, device) || !tuned.winner || tuned.verdict !== "pass") continue;
    const { algorithm, policy, tile, pair, segments, kernels } = tuned;
    table.set(classOf(tuned), {
      problem: parseDescriptor(tuned.problem, tuned.op),
      algorithm,
      ...(policy === undefined ? {} : { policy }),
      ...(tile === undefined ? {} : { tile }),
      ...(pair === undefined ? {} : { pair }),
      ...(segments === undefined ? {} : { segments }),
      kernels,
    });
  }
  return table;
}

/** Why a tuning says nothing of a device, as a clause; undefined where it does, or is empty. */
export function otherDevice(
  lines: readonly TuningLine[],
  device: TunedDevice,
): string | undefined {
  const all = tunedOf(lines);
  const last = all.at(-1);
  if (last === undefined || all.some((tuned) => isOf(tuned, device))) return undefined;
  const name = (adapter: string, driver: string, backend: string) =>
    `${adapter}${driver === "" ? "" : `, driver ${driver}`} (${backend})`;
  return `it is of ${name(last.device, last.driver, last.backend)}, ` +
    `this is ${name(device.adapter, device.driver, device.backend)}`;
}

/** Old lines and new ones, which take the place of tunings of the same device and class of problems, of nothing else. */
export function mergeTuning(
  old: readonly TuningLine[],
  added: readonly TuningLine[],
): TuningLine[] {
  const key = (tuned: Tuned) =>
    [tuned.backend, tuned.device, tuned.driver, classOf(tuned)].join("|");
  const replaced = new Set(tunedOf(added).map(key));
  return [...old.filter(({ tuned }) => tuned === undefined || !replaced.has(key(tuned))), ...added];
}

/** The text of a tuning file. */
export function printTuning(lines: readonly TuningLine[]): string {
  return lines.map(({ text }) => `${text}\n`).join("");
}

/** The classes of problems that have a winner, on all devices. */
export function countWinners(lines: readonly TuningLine[]): number {
  return tunedOf(lines).filter(({ winner }) => winner).length;
}

function tunedOf(lines: readonly TuningLine[]): Tuned[] {
  return lines.flatMap(({ tuned }) => tuned ?? []);
}

function isOf({ backend, device, driver }: Tuned, is: TunedDevice): boolean {
  return backend === is.backend && device === is.adapter && driver === is.driver;
}

function classOf(
  { problem, op, dtype, out_dtype: outDtype, layout, filter_layout: filterLayout }: Tuned,
): string {
  return problemClass({
    problem: parseDescriptor(problem, op),
    dtype,
    ...(outDtype === undefined ? {} : { outDtype }),
    layout,
    filterLayout,
  });
}
