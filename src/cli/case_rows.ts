import { noiseOf, type ShownCase, sortCases } from "../report/case_columns.ts";
import { caseTable, type CaseTableOptions, type ComingCase } from "../report/case_table.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { slowdown } from "../report/speed_change.ts";
import type { Printer } from "./output.ts";
import type { TableOptions } from "./table_options.ts";

const NAMED = 5;

/** Rows of a table of cases: each printed as it is known, or all at the end where they are sorted. */
export interface CaseRows {
  add(record: ShownCase): void;
  end(): void;
}

/** Begins the table. */
export function caseRows(
  coming: readonly ComingCase[],
  { columns, sort, wide }: TableOptions,
  out: Printer,
  { ceilings, ...options }: Omit<CaseTableOptions, "columns" | "wide">,
): CaseRows {
  const row = caseTable(coming, { ...options, columns, wide, ceilings });
  const print = (record: ShownCase) => out.painted(row(record));
  if (sort === undefined) return { add: print, end: () => {} };
  const cases: ShownCase[] = [];
  return {
    add: (record) => void cases.push(record),
    end: () => sortCases(cases, sort, ceilings).forEach(print),
  };
}

/**
 * What is to be known of the times of a run: how many did not settle, and whose rates dropped while they were sampled.
 *
 * @param spread The noise below which a case has enough samples; nothing is said of it where absent.
 */
export function timingNotes(cases: readonly ReadCase[], spread: number | undefined): string[] {
  const timed = cases.filter((record) => noiseOf(record) !== null);
  const noisy = timed.filter((record) => noiseOf(record)! > (spread ?? Infinity));
  const slower = timed.flatMap((record) => {
    const drop = slowdown(record.time_ms!.samples);
    return drop === undefined ? [] : [{ record, drop }];
  });
  const share = `${Number((100 * (spread ?? 0)).toPrecision(4))} %`;
  return [
    ...(noisy.length === 0 ? [] : [
      `${noisy.length} of ${timed.length} cases are noisy: samples vary by more than ${share}; add --runs, or close other programs`,
    ]),
    ...(slower.length === 0 ? [] : [
      `${slower.length} of ${timed.length} cases slowed down during timing ` +
      "(throttled clocks, or another program): " +
      slower.slice(0, NAMED).map(({ record: { op, problem, algorithm }, drop }) =>
        `${op} ${problem} ${algorithm} by ${(100 * drop).toFixed(1)} %`
      ).join(", ") + (slower.length > NAMED ? ", ..." : ""),
    ]),
  ];
}
