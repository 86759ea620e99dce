import { printable } from "../printable.ts";
import { caseReport } from "../report/case_report.ts";
import { significant } from "../report/format.ts";
import type { CaseRecord } from "../report/record.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { textTable } from "../report/table.ts";
import type { Timings } from "../run/timeline.ts";
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

/** `--timings`, as `option()` has it. */
export const TIMINGS_OPTION = [
  "--timings",
  "print how long each part of the run took, in ms",
] as const;

/** Prints where the time went, where that was asked for; aside where the result goes to stdout. */
export function printTimings(
  measured: Timings,
  { timings, json, output }: {
    readonly timings?: boolean | undefined;
    readonly json?: boolean | undefined;
    readonly output?: string | undefined;
  },
): void {
  if (!timings) return;
  const out = printer(output === "-" ? "stderr" : "stdout");
  if (json) return out.line(JSON.stringify({ schema: 1, kind: "timings", ...measured }));
  timingsTable(measured).split("\n").forEach((line) => out.line(line));
}

/** The parts as a table, in ms since the program's start. */
function timingsTable({ parts, overlap_ms, other_ms, total_ms }: Timings): string {
  return textTable(
    [
      { title: "part" },
      { title: "from ms", align: "right" },
      { title: "ms", align: "right" },
      { title: "alone ms", align: "right" },
    ],
    [
      ...parts.map(({ part, start_ms, ms, alone_ms }) => [
        part,
        significant(start_ms),
        significant(ms),
        significant(alone_ms),
      ]),
      ["several at once", "", "", significant(overlap_ms)],
      ["between parts", "", "", significant(other_ms)],
      ["all", "", "", significant(total_ms)],
    ],
  );
}
