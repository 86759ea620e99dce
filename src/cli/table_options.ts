import { CASE_COLUMN_NAMES, type CaseColumnName, type CaseOrder } from "../report/case_columns.ts";
import { oneOf, someOf } from "./values.ts";

/** What `--columns` says. */
export const COLUMNS_HELP = `columns of the table: ${CASE_COLUMN_NAMES.join(", ")}`;

/** Reads `--columns`. */
export const parseColumns = someOf<CaseColumnName>(CASE_COLUMN_NAMES);

/** What `--sort` says. */
export const SORT_HELP = "a column that rows are sorted by, -time for the largest first";

const column = oneOf<CaseColumnName>(CASE_COLUMN_NAMES);

/** Reads `--sort`: `time`, `-time`. */
export const parseSort = Object.assign((text: string): CaseOrder => {
  const descending = text.startsWith("-");
  return { column: column(descending ? text.slice(1) : text), descending };
}, { choices: CASE_COLUMN_NAMES, list: false });

/** How a table of cases is asked for. */
export interface TableOptions {
  readonly columns?: readonly CaseColumnName[] | undefined;
  readonly sort?: CaseOrder | undefined;
}
