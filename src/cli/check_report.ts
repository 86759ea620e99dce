import { join } from "node:path";
import baselineText from "../../fixtures/baseline.json" with { type: "text" };
import { type Baseline, baselineDiff, parseBaseline, printBaseline } from "../bench/baseline.ts";
import {
  type CheckPlan,
  type CheckResult,
  type CheckStatus,
  updatedBaseline,
} from "../bench/check_suite.ts";
import { failureFile, failureTensors, reproLine } from "../bench/failures.ts";
import { InputTypeError } from "../errors.ts";
import type { Backend } from "../gpu/provider.ts";
import { refuseWrite } from "../npy/atomic_write.ts";
import { writeNpz } from "../npy/mod.ts";
import { printableMessage } from "../printable.ts";
import { readText } from "../read_text.ts";
import type { ShownCase } from "../report/case_columns.ts";
import { counted } from "../report/format.ts";
import type { JUnitCase } from "../report/junit.ts";
import { defaultFill } from "../run/operands.ts";
import type { FillKind } from "../tensor/fill.ts";
import { VERSION } from "../version.ts";
import { mergeFile } from "./kept_files.ts";

const SHOWN = 3;

/**
 * What is said of a case that did not pass: why, its worst elements, how to run it again.
 *
 * @param each Whether a case that did pass is named too.
 */
export function resultLines(
  result: CheckResult,
  backend: Backend,
  saved: string | undefined,
  each = false,
): string[] {
  const { key, status, reasons, record } = result;
  if (passed(result)) return each ? [printableMessage(`${status}: ${key}`)] : [];
  const worst = (record.accuracy?.worst ?? []).slice(0, SHOWN).map(({ index, got, ref }) =>
    `  [${index}]: got ${got}, reference ${ref}, off by ${(got - ref).toExponential(2)}`
  );
  return [
    printableMessage(`${status}: ${key}`),
    ...reasons.map((reason) => `  ${printableMessage(reason)}`),
    ...(worst.length === 0 ? [] : ["  worst elements:", ...worst.map((line) => `  ${line}`)]),
    `  repeat: ${reproLine(record, backend)}`,
    ...(saved === undefined ? [] : [`  saved: ${saved}`]),
  ];
}

/** What did not pass and why, in one line; undefined of what did, and of what an `updating` check takes as it is now. */
export function failedLine(result: CheckResult, updating: boolean): string | undefined {
  const { key, status, reasons } = result;
  const accepted = passed(result) || (updating && status === "regressed");
  return accepted ? undefined : `${status}: ${key}: ${reasons.join("; ")}`;
}

/** A case as its row of the table shows it: a record knows nothing of the baseline. */
export function shownCase({ status, reasons, record }: CheckResult): ShownCase {
  return status === "regressed" ? { ...record, regressed: reasons.join("; ") } : record;
}

/** Whether a case is as exact as it has to be: of an empty result there is nothing that could be wrong. */
function passed({ status }: CheckResult): boolean {
  return status === "pass" || status === "new" || status === "empty";
}

/**
 * Saves the tensors of a case that did not pass, where they are wanted.
 *
 * @returns The file.
 */
export async function saveFailure(
  { key, status, ran }: CheckResult,
  folder: string | undefined,
): Promise<string | undefined> {
  const failed = status === "fail" || status === "regressed";
  if (folder === undefined || !failed || ran === undefined) return undefined;
  await Deno.mkdir(folder, { recursive: true }).catch((error) => refuseWrite(folder, error));
  const path = join(folder, failureFile(key));
  await writeNpz(path, failureTensors(ran));
  return path;
}

/** Results and missing cases as tests of a CI system. */
export function junitCases(
  results: readonly CheckResult[],
  missing: readonly string[],
): JUnitCase[] {
  const named = (key: string) => {
    const [op, layout, dtype, algorithm, ...rest] = key.split(" ");
    return { group: `wgconv.${op}.${algorithm}`, name: [layout, dtype, ...rest].join(" ") };
  };
  return [
    ...results.map((result): JUnitCase => {
      const { key, status, reasons, seconds } = result;
      const message = reasons.join("; ");
      const text = resultLines(result, "wgpu", undefined).join("\n");
      return {
        ...named(key),
        seconds,
        ...(passed(result)
          ? {}
          : { problem: { kind: status === "error" ? "error" : "failure", message, text } }),
      };
    }),
    ...missing.map((key): JUnitCase => ({
      ...named(key),
      seconds: 0,
      problem: { kind: "failure", message: "it is in the baseline, but did not run" },
    })),
  ];
}

const WORDS: Readonly<Record<CheckStatus, string>> = {
  pass: "passed",
  new: "new",
  regressed: "less exact than the baseline",
  fail: "failed",
  error: "did not run",
  empty: "not checked: the result is empty",
};

/** The last line: how many cases came out how. */
export function summaryLine(
  results: readonly CheckResult[],
  missing: readonly string[],
  adapter: string,
): string {
  const counts = (Object.keys(WORDS) as CheckStatus[])
    .map((status) =>
      [results.filter((one) => one.status === status).length, WORDS[status]] as const
    )
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  if (missing.length > 0) counts.push(`${missing.length} missing`);
  const where = adapter === "" ? "" : ` on ${adapter}`;
  return `${counted(results.length, "case")}${where}: ${counts.join(", ") || "nothing ran"}`;
}

interface BaselineOptions {
  readonly baseline?: string | undefined;
  readonly suite?: readonly string[] | undefined;
  readonly update?: boolean | undefined;
  readonly fill?: FillKind | undefined;
  readonly seed: number;
  readonly force?: boolean | undefined;
}

/** The baseline to hold results against: the one that is named, or the one of the suite that is built in. */
export function readBaseline(options: BaselineOptions): Baseline | undefined {
  const { baseline: path, suite, update, fill = defaultFill("f32"), seed } = options;
  if (update && (path === undefined || path === "none")) {
    throw new InputTypeError("Cannot update the baseline: --baseline says which file");
  }
  if (path === "none") return undefined;
  if (path === undefined) {
    const own = suite === undefined && fill === "uniform01" && seed === 1;
    return own ? parseBaseline(baselineText, "baseline.json") : undefined;
  }
  let text: string;
  try {
    text = readText(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    if (update) return undefined;
    error.message += ", --update writes it";
    throw error;
  }
  return update && text === "" ? undefined : baselineOf(text, path, options);
}

/**
 * A baseline that the data of a check can be held against, or that may be updated from it.
 *
 * @throws {TypeError} where it is of other data.
 */
function baselineOf(text: string, path: string, options: BaselineOptions): Baseline | undefined {
  const { update, fill = defaultFill("f32"), seed, force } = options;
  const baseline = parseBaseline(text, path);
  if (baseline.fill === fill && baseline.seed === seed) return baseline;
  if (update && force) return undefined;
  throw new InputTypeError(
    `Cannot check: the baseline ${path} was made with ${baseline.fill} data and seed ${baseline.seed}, ` +
      `not with ${fill} data and seed ${seed}${update ? ", --force replaces it" : ""}`,
  );
}

/** Merges what was found into the baseline as it is now: another check may have updated it since. */
export async function updateBaseline(
  options: BaselineOptions,
  plan: CheckPlan,
  results: readonly CheckResult[],
  adapter: string,
  line: (text: string) => void,
): Promise<void> {
  const path = options.baseline!;
  let said: string[] = [];
  await mergeFile(path, (text) => {
    const before = text === "" ? undefined : baselineOf(text, path, options);
    const after = updatedBaseline(plan, before, results, { version: VERSION, adapter });
    const changes = baselineDiff(before, after);
    const count = Object.keys(after.cases).length;
    said = [...changes, `${path}: ${counted(count, "case")}, ${changes.length} changed`];
    return printBaseline(after);
  });
  said.forEach(line);
}
