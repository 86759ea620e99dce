import * as v from "valibot";
import { ALGORITHM_NAMES } from "../algorithms/request.ts";
import { problemClass, type TunedChoice, type TuningTable } from "../algorithms/tuning.ts";
import { OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";

/** What is read back of a tuning record of a convolution. */
const TunedSchema = v.object({
  schema: v.literal(1),
  kind: v.literal("tuning"),
  backend: v.string(),
  device: v.string(),
  driver: v.string(),
  problem: v.string(),
  op: v.picklist(OPERATIONS),
  dtype: v.picklist(["f32"]),
  layout: v.picklist(LAYOUTS),
  filter_layout: v.picklist(FILTER_LAYOUTS),
  algorithm: v.picklist(ALGORITHM_NAMES),
  policy: v.optional(v.string()),
  tile: v.optional(v.string()),
  pair: v.optional(v.string()),
  kernels: v.array(v.string()),
  winner: v.boolean(),
  verdict: v.string(),
});

type Tuned = v.InferOutput<typeof TunedSchema>;

/** A line of a tuning file: what it says, and its text. */
export interface TuningLine {
  readonly text: string;
  readonly tuned: Tuned;
}

/** What tells devices apart. */
export interface TunedDevice {
  readonly backend: string;
  readonly adapter: string;
  readonly driver: string;
}

/**
 * Reads a tuning file. Lines that are no tuning of a convolution are left out.
 *
 * @throws {SyntaxError} with file and line, where a line is no JSON or a record is malformed.
 */
export function parseTuning(text: string, source: string): TuningLine[] {
  return text.split("\n").flatMap((line, index) => {
    if (line.trim() === "") return [];
    const place = `${source}:${index + 1}`;
    let value: { readonly kind?: unknown; readonly op?: unknown } | null;
    try {
      value = JSON.parse(line);
    } catch {
      throw new SyntaxError(`Cannot read the tuning: ${place}: the line is no JSON`);
    }
    if (value?.kind !== "tuning" || value.op === "gemm") return [];
    const result = v.safeParse(TunedSchema, value);
    if (result.success) {
      expectProblem(result.output, place);
      return [{ text: line, tuned: result.output }];
    }
    const issue = result.issues[0];
    throw new SyntaxError(
      `Cannot read the tuning: ${place}: ${v.getDotPath(issue) ?? "the record"} is ` +
        `${issue.received}, expected ${issue.expected}`,
    );
  });
}

/** @throws {SyntaxError} with file and line, where a tuning is of no problem. */
function expectProblem({ problem, op }: Tuned, place: string): void {
  try {
    parseDescriptor(problem, op);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    const [reason] = error.message.split("\n");
    throw new SyntaxError(`Cannot read the tuning: ${place}: the problem: ${reason}`);
  }
}

/** The winners that were measured, and found exact, on a device. */
export function tuningTable(lines: readonly TuningLine[], device: TunedDevice): TuningTable {
  const table = new Map<string, TunedChoice>();
  for (const { tuned } of lines) {
    if (!isOf(tuned, device) || !tuned.winner || tuned.verdict !== "pass") continue;
    const { algorithm, policy, tile, pair, kernels } = tuned;
    table.set(classOf(tuned), {
      problem: parseDescriptor(tuned.problem, tuned.op),
      algorithm,
      ...(policy === undefined ? {} : { policy }),
      ...(tile === undefined ? {} : { tile }),
      ...(pair === undefined ? {} : { pair }),
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
  const last = lines.at(-1)?.tuned;
  if (last === undefined || lines.some(({ tuned }) => isOf(tuned, device))) return undefined;
  const name = (adapter: string, driver: string, backend: string) =>
    `${adapter}${driver === "" ? "" : `, driver ${driver}`} (${backend})`;
  return `it is of ${name(last.device, last.driver, last.backend)}, ` +
    `this is ${name(device.adapter, device.driver, device.backend)}`;
}

/** Old lines and new ones, which take the place of those of the same device and class of problems. */
export function mergeTuning(
  old: readonly TuningLine[],
  added: readonly TuningLine[],
): TuningLine[] {
  const key = ({ tuned }: TuningLine) =>
    [tuned.backend, tuned.device, tuned.driver, classOf(tuned)].join("|");
  const replaced = new Set(added.map(key));
  return [...old.filter((line) => !replaced.has(key(line))), ...added];
}

/** The text of a tuning file. */
export function printTuning(lines: readonly TuningLine[]): string {
  return lines.map(({ text }) => `${text}\n`).join("");
}

function isOf({ backend, device, driver }: Tuned, is: TunedDevice): boolean {
  return backend === is.backend && device === is.adapter && driver === is.driver;
}

function classOf({ problem, op, dtype, layout, filter_layout: filterLayout }: Tuned): string {
  return problemClass({ problem: parseDescriptor(problem, op), dtype, layout, filterLayout });
}
