import { CASE_COLUMN_NAMES, type CaseColumnName, type CaseOrder } from "../report/case_columns.ts";
import type { RowOrder } from "../report/table.ts";
import { type ChoiceParser, oneOf, someOf } from "./values.ts";

export const COLUMNS_HELP = `columns of the table: ${CASE_COLUMN_NAMES.join(", ")}`;

export const parseColumns = someOf<CaseColumnName>(CASE_COLUMN_NAMES);

export const parseSort = sortParser<CaseColumnName>(CASE_COLUMN_NAMES);

export const SORT_HELP = "column to sort by; -time for the largest first";

export const WIDE_HELP = "show every column, even if the table is wider than the terminal";

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

export const JSONL_HELP =
  "write a record per case to this file; - is stdout, the table then goes to stderr";

export const RESUME_HELP = "continue the --jsonl file of an interrupted run";

export const SHARD_HELP = "only part i of n, from 1: for several machines";

export interface TableOptions {
  readonly columns?: readonly CaseColumnName[] | undefined;
  readonly sort?: CaseOrder | undefined;
  readonly wide?: boolean | undefined;
}
