import { join } from "node:path";
import type { CheckResult, CheckStatus } from "../bench/check_suite.ts";
import { failureFile, failureTensors, reproLine } from "../bench/failures.ts";
import type { Backend } from "../gpu/provider.ts";
import { refuseWrite } from "../npy/atomic_write.ts";
import { writeNpz } from "../npy/mod.ts";
import { printableMessage } from "../printable.ts";
import type { ShownCase } from "../report/case_columns.ts";
import type { JUnitCase } from "../report/junit.ts";

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
  return `${results.length} ${results.length === 1 ? "case" : "cases"}${where}: ${
    counts.join(", ") || "nothing ran"
  }`;
}
