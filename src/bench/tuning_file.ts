import * as v from "valibot";
import { kernelNames, problemClass, productClass } from "../algorithms/cost/tuned.ts";
import { algorithmNames } from "../algorithms/registry.ts";
import { BALANCES } from "../algorithms/schedule.ts";
import type { TunedChoice, TuningTable } from "../algorithms/request.ts";
import { defined } from "../defined.ts";
import { InputSyntaxError, isInputError } from "../errors.ts";
import { schemaFault } from "../json.ts";
import { CONV_DTYPES, CONV_OUT_DTYPES, OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { GEMM_DTYPES } from "../problem/gemm_problem.ts";
import { parseGemm } from "../problem/gemm_suite.ts";
import type { DeviceDescription } from "../report/environment.ts";
import type { TuningRecord } from "../report/record.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";
import { VERSION } from "../version.ts";
import type { RanCase } from "./run_group.ts";

/** What is read back of a tuning record of a convolution. */
const count = v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1)));
const text = v.optional(v.string());

/** What is read back of any tuning record. */
const TUNED = {
  schema: v.literal(1),
  kind: v.literal("tuning"),
  backend: v.string(),
  device: v.string(),
  driver: v.string(),
  problem: v.string(),
  policy: text,
  multiprocessors: count,
  budget_ms: v.optional(v.number()),
  kernels: v.array(v.string()),
  winner: v.boolean(),
  verdict: v.string(),
};

/** Of a convolution. */
const TunedConvSchema = v.object({
  ...TUNED,
  op: v.picklist(OPERATIONS),
  dtype: v.picklist(CONV_DTYPES),
  out_dtype: v.optional(v.picklist(CONV_OUT_DTYPES)),
  layout: v.picklist(LAYOUTS),
  filter_layout: v.picklist(FILTER_LAYOUTS),
  algorithm: v.lazy(() => v.picklist(algorithmNames())),
  tile: text,
  pair: text,
  segments: count,
});

/** Of a product. */
const TunedProductSchema = v.object({
  ...TUNED,
  op: v.literal("gemm"),
  dtype: v.picklist(GEMM_DTYPES),
  out_dtype: v.optional(v.picklist(["f32", "f16", "bf16"])),
  accumulate: v.optional(v.picklist(["f32", "f16"])),
  epilogue: text,
  algorithm: v.literal("gemm"),
  splits: count,
  balance: v.optional(v.picklist(BALANCES)),
});

const TunedSchema = v.variant("op", [TunedConvSchema, TunedProductSchema]);
type Tuned = v.InferOutput<typeof TunedSchema>;

/** A line of a tuning file: its text, and what it says where it is a tuning. */
interface TuningLine {
  readonly text: string;
  readonly tuned?: Tuned;
  /** What is wrong where it is neither a record nor a comment, as a clause. */
  readonly damage?: string;
}

/** What a tuning file holds. */
export interface TuningText {
  readonly lines: readonly TuningLine[];
  /** Records that another version of the program wrote and this one cannot use. */
  readonly foreign: number;
  /** The first line that is damaged, by its number. */
  readonly damage?: { readonly line: number; readonly what: string };
}

/** What tells devices apart. */
export interface TunedDevice {
  readonly backend: string;
  readonly adapter: string;
  readonly driver: string;
}

/** Reads every line of a tuning file; those that are no tuning are kept as they are. */
export function readTuningText(text: string): TuningText {
  const lines: TuningLine[] = [];
  let foreign = 0;
  for (const line of text === "" ? [] : text.replace(/\n$/, "").split("\n")) {
    const read = readLine(line);
    if (read === FOREIGN) foreign++;
    const said = typeof read === "string"
      ? { damage: read }
      : typeof read === "object"
      ? { tuned: read }
      : {};
    lines.push({ text: line, ...said });
  }
  const first = lines.findIndex(({ damage }) => damage !== undefined);
  if (first < 0) return { lines, foreign };
  return { lines, foreign, damage: { line: first + 1, what: lines[first]!.damage! } };
}

const FOREIGN = Symbol("a record of another version");

/** What a line says; undefined where it is none of ours, and a clause where it is damaged. */
function readLine(line: string): Tuned | typeof FOREIGN | string | undefined {
  if (/^\s*(#|\/\/|$)/.test(line)) return undefined;
  let value: { readonly [field in "schema" | "kind" | "op" | "version" | "epilogue"]?: unknown };
  try {
    value = JSON.parse(line);
  } catch {
    return "the line is no JSON";
  }
  if (typeof value?.kind !== "string") return "the line is no record";
  // What follows a product's sums is no part of what is remembered of it.
  if (value.kind !== "tuning" || value.op === "gemm" && value.epilogue) return undefined;
  if (value.schema !== 1) return FOREIGN;
  const clause = (what: string) => value.version === VERSION || !value.version ? what : FOREIGN;
  const result = v.safeParse(TunedSchema, value);
  if (!result.success) {
    return clause(schemaFault(result.issues[0], "the record").what);
  }
  try {
    problemOf(result.output);
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
  throw new InputSyntaxError(
    `Cannot read the tuning: ${source}:${line}: ${what}; without the line it can be read`,
  );
}

/** The winners that were measured on a device: what was checked and found exact, and what `auto` timed by itself. */
export function tuningTable(lines: readonly TuningLine[], device: TunedDevice): TuningTable {
  const table = new Map<string, TunedChoice>();
  for (const tuned of tunedOf(lines)) {
    const { verdict, budget_ms: unchecked } = tuned;
    const right = verdict === "pass" || verdict === "none" && unchecked !== undefined;
    if (!isOf(tuned, device) || !tuned.winner || !right) continue;
    const { algorithm, policy, multiprocessors, kernels } = tuned;
    const own = tuned.op === "gemm"
      ? defined({ splits: tuned.splits, balance: tuned.balance })
      : defined({ tile: tuned.tile, pair: tuned.pair, segments: tuned.segments });
    table.set(classOf(tuned), {
      problem: problemOf(tuned),
      algorithm,
      ...defined({ policy, multiprocessors }),
      ...own,
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

function problemOf({ op, problem }: Tuned): TunedChoice["problem"] {
  return op === "gemm" ? parseGemm(problem) : parseDescriptor(problem, op);
}

function classOf(tuned: Tuned): string {
  if (tuned.op === "gemm") {
    const { dtype, accumulate, out_dtype: outDtype } = tuned;
    const problem = parseGemm(tuned.problem);
    return productClass({ problem, dtype, ...defined({ accumulate, outDtype }) });
  }
  const { problem, op, dtype, out_dtype: outDtype, layout, filter_layout: filterLayout } = tuned;
  return problemClass({
    problem: parseDescriptor(problem, op),
    dtype,
    ...defined({ outDtype }),
    layout,
    filterLayout,
  });
}

/** What a tuning says of a case beside what it ran as. */
type Said =
  & Pick<TuningRecord, "chosen" | "winner">
  & Partial<
    Pick<
      TuningRecord,
      "policy" | "splits" | "balance" | "predicted_gflops" | "multiprocessors" | "budget_ms"
    >
  >;

/** The tuning record of a case that was timed. */
export function tuningRecord(
  { record, plan, group }: Pick<RanCase, "record" | "plan" | "group">,
  { backend, adapter, driver }: DeviceDescription,
  { chosen, winner, ...said }: Said,
): TuningRecord {
  const { problem, op, dtype, outDtype, accumulate, layout, filterLayout, epilogue } =
    group.subject.traits;
  const { algorithm, policy, tile, pair, segments, message } = record;
  return {
    schema: 1,
    kind: "tuning",
    version: VERSION,
    backend,
    device: adapter,
    driver,
    problem,
    op,
    dtype,
    ...(outDtype === undefined ? {} : { out_dtype: outDtype }),
    ...(accumulate === undefined ? {} : { accumulate }),
    layout,
    ...(filterLayout === undefined ? {} : { filter_layout: filterLayout }),
    ...(epilogue === undefined ? {} : { epilogue }),
    algorithm,
    ...(policy === undefined ? {} : { policy }),
    ...(tile === undefined ? {} : { tile }),
    ...(pair === undefined ? {} : { pair }),
    ...(segments === undefined ? {} : { segments }),
    ...said,
    kernel: record.kernel!,
    kernels: kernelNames(plan!),
    time_ms: record.time_ms!,
    gflops: record.gflops!,
    workspace_bytes: record.workspace_bytes!,
    max_bound_ratio: record.accuracy?.max_bound_ratio ?? null,
    chosen,
    winner,
    verdict: record.verdict,
    ...(message === undefined ? {} : { message }),
  };
}
