import { printable } from "../printable.ts";
import { caseReport } from "../report/case_report.ts";
import type { CaseRecord } from "../report/record.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { printer, reporter, sayFailed, verdictPainter } from "./output.ts";

/** Prints a case: a line a fact, or the record itself; aside where the result goes to stdout. */
export function printCase(
  record: CaseRecord,
  { json, output }: { readonly json?: boolean | undefined; readonly output?: string | undefined },
): void {
  sayFailedCase(record);
  const target = output === "-" ? "stderr" : "stdout";
  if (json) return printer(target).line(JSON.stringify(record));
  const paint = verdictPainter(target);
  reporter(target).painted(
    printable(caseReport(record))
      .replace(/^(verdict +)([a-z]+)/m, (_, label, word) => `${label}${paint(word)}`),
  );
}

/** As {@linkcode sayFailed}, of a case that failed or did not run to its end. */
export function sayFailedCase(
  { verdict, op, problem, algorithm, message = "not said why" }: ReadCase | CaseRecord,
): void {
  if (verdict !== "fail" && verdict !== "error") return;
  sayFailed(`${verdict}: ${[op, problem, algorithm].join(" ").trimEnd()}: ${message}`);
}
