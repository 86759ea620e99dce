import { EXIT } from "../errors.ts";
import {
  CASE_COLUMN_NAMES,
  type CaseColumnName,
  type CaseOrder,
  noiseOf,
  type ShownCase,
  sortCases,
} from "../report/case_columns.ts";
import { caseTable, type CaseTableOptions, type ComingCase } from "../report/case_table.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { slowdown } from "../report/speed_change.ts";
import type { RowOrder } from "../report/table.ts";
import { ExitCode } from "./failure.ts";
import { type Printer, reporter } from "./output.ts";
import { type ChoiceParser, oneOf, parseShard, someOf } from "./values.ts";

/** Makes a parser of a column that rows are sorted by. */
export function sortParser<C extends string>(
  names: readonly C[],
): ChoiceParser<RowOrder<C>> {
  const column = oneOf(names);
  const parse = (text: string) => {
    const descending = text.startsWith("-");
    return { column: column(descending ? text.slice(1) : text), descending };
  };
  return Object.assign(parse, { choices: names, list: false });
}

/** What commands take that write tables and records, as `option()` has it. */
export const TABLE = {
  jsonl: [
    "--jsonl <file>",
    "write a record per case to this file; - is stdout, the table then goes to stderr",
  ],
  json: ["--json", "same as --jsonl -"],
  resume: ["--resume", "continue the --jsonl file of an interrupted run"],
  shard: ["--shard <i/n>", "only part i of n, from 1: for several machines", parseShard],
  columns: [
    "--columns <list>",
    `columns of the table: ${CASE_COLUMN_NAMES.join(", ")}`,
    someOf<CaseColumnName>(CASE_COLUMN_NAMES),
  ],
  sort: [
    "--sort <column>",
    "column to sort by; -time for the largest first",
    sortParser<CaseColumnName>(CASE_COLUMN_NAMES),
  ],
  wide: ["--wide", "show every column, even if the table is wider than the terminal"],
} as const;

/** Part `index` of `count`, from 1: every `count`th. */
interface Shard {
  readonly index: number;
  readonly count: number;
}

/** A part of all, or all of it where none is asked for. */
export function shardOf<T>(all: readonly T[], shard: Shard | undefined): readonly T[] {
  return shard === undefined
    ? all
    : all.filter((_, place) => place % shard.count === shard.index - 1);
}

/**
 * Ends a command whose part of a suite had nothing to run, since there are more parts than problems.
 *
 * @throws {ExitCode} of success in that case.
 */
export function endEmptyPart(shard: Shard | undefined, ran: number): void {
  if (shard === undefined || ran > 0) return;
  reporter("stderr").message(
    `wgconv: note: part ${shard.index} of ${shard.count} has no problem to run`,
  );
  throw new ExitCode(EXIT.ok);
}

export interface TableOptions {
  readonly columns?: readonly CaseColumnName[] | undefined;
  readonly sort?: CaseOrder | undefined;
  readonly wide?: boolean | undefined;
}

const NAMED = 5;

/** Rows of a table of cases: each printed as it is known, or all at the end where they are sorted. */
interface CaseRows {
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
      `${noisy.length} of ${timed.length} cases ${
        noisy.length === 1 ? "is" : "are"
      } noisy: samples vary by more than ${share}; add --runs, or close other programs`,
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
