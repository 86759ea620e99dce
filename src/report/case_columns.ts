import { printableMessage } from "../printable.ts";
import { caseFigures } from "./case_figures.ts";
import { caseLabel, dtypeText, mathText } from "./case_key.ts";
import { type Ceilings, deviceCeilings } from "./charts/roofline.ts";
import {
  formatBytes,
  formatError,
  formatMilliseconds,
  formatShare,
  significant,
} from "./format.ts";
import { verdictWord } from "./record.ts";
import type { ReadCase } from "./record_schema.ts";
import { medianAbsoluteDeviation } from "./stats.ts";
import { type LiveColumn, type RowOrder, sortRows } from "./table.ts";

/** A case as a table shows it: a check may know more of it than its record says. */
export type ShownCase = ReadCase & {
  readonly regressed?: string | undefined;
};

/** What is shown of a case; columns that share a device's ceilings ask for them. */
export interface CaseColumn extends LiveColumn {
  /** As people read it. */
  readonly cell: (record: ShownCase, ceilings: Ceilings) => string;
  /** What rows are sorted by: numbers as such, `null` last. */
  readonly order: (record: ShownCase, ceilings: Ceilings) => string | number | null;
}

function words(title: string, cell: (record: ShownCase) => string): CaseColumn {
  return { title, cell, order: cell };
}

function figure(
  title: string,
  order: (record: ReadCase, ceilings: Ceilings) => number | null,
  print: (value: number) => string = significant,
  width = 0,
): CaseColumn {
  const cell: CaseColumn["cell"] = (record, ceilings) => {
    const value = order(record, ceilings);
    return value === null ? "-" : print(value);
  };
  return { title, align: "right", width, cell, order };
}

/** Every column of tables of cases, by the name that `--columns` and `--sort` take. */
export const CASE_COLUMNS = {
  problem: words("problem", caseLabel),
  op: words("op", ({ op }) => op),
  dtype: words(
    "dtype",
    (record) =>
      dtypeText(record) + (record.accumulate ? ` in ${record.accumulate}` : "") + mathText(record),
  ),
  layout: words("layout", ({ layout }) => layout || "-"),
  cache: words("cache", ({ cache }) => cache ?? "-"),
  data: words("data", ({ fill }) => fill ?? "-"),
  series: words(
    "made by",
    (record) =>
      [record.provider, algorithmText(record), record.cache === "cold" ? record.cache : ""]
        .filter((word) => word !== "").join(" "),
  ),
  algorithm: words("algorithm", algorithmText),
  kernel: words("kernel", ({ kernel, algorithm }) => kernel ?? (algorithm || "-")),
  time: figure("time", (record) => record.time_ms?.median ?? null, formatMilliseconds, 8),
  noise: figure("noise", noiseOf, formatShare, 6),
  gflops: figure("GFLOP/s", (record) => caseFigures(record).gflops, significant, 8),
  // Of small problems on a busy CPU 0.0001234.
  gbs: figure("GB/s", bandwidthOf, significant, 9),
  peak: figure("of peak", (record, { peak }) => share(arithmeticOf(record), peak), formatShare),
  bandwidth: figure(
    "of bandwidth",
    (record, { bandwidth }) => share(bandwidthOf(record), bandwidth),
    formatShare,
  ),
  workspace: figure("workspace", ({ workspace_bytes }) => workspace_bytes, formatBytes),
  mare: figure("MARE", ({ accuracy }) => accuracy?.mare ?? null, formatError, 7),
  l2: figure("relative L2", ({ accuracy }) => accuracy?.rel_l2 ?? null, formatError),
  bound: figure("bound", ({ accuracy }) => accuracy?.max_bound_ratio ?? null, significant, 6),
  verdict: words(
    "verdict",
    ({ verdict, regressed }) =>
      regressed !== undefined ? "regressed" : verdict === "none" ? "-" : verdict,
  ),
  message: words("message", ({ message, regressed }) => regressed ?? message ?? "-"),
} as const satisfies Readonly<Record<string, CaseColumn>>;

export type CaseColumnName = keyof typeof CASE_COLUMNS;

export const CASE_COLUMN_NAMES = Object.keys(CASE_COLUMNS) as CaseColumnName[];

/** What was asked for and, where `auto` chose, what it took: `auto: winograd2d F(4x4,3x3)`. */
function algorithmText({ requested, algorithm, policy, tile, pair, segments }: ReadCase): string {
  const counted = segments === undefined ? undefined : `Z=${segments}`;
  const choices = [policy, tile, pair, counted].filter((choice) => choice !== undefined);
  return [requested === undefined ? algorithm : `${requested}: ${algorithm}`, ...choices].join(" ");
}

/** Median absolute deviation of the samples, as a share of their median; `null` of a single sample. */
export function noiseOf({ time_ms: time }: ReadCase): number | null {
  if (time === null || time.samples.length < 2 || time.median <= 0) return null;
  return (time.mad ?? medianAbsoluteDeviation(time.samples)) / time.median;
}

function bandwidthOf(record: ReadCase): number | null {
  const { bytes } = caseFigures(record);
  const { time_ms: time } = record;
  return bytes === null || time === null || time.median === 0 ? null : bytes / time.median / 1e6;
}

/** GFLOP/s of the multiplications that the kernels perform; of the direct algorithm's where they are not known. */
function arithmeticOf(record: ReadCase): number | null {
  const { multiplications, time_ms: time } = record;
  if (multiplications === null) return caseFigures(record).gflops;
  return time === null || time.median === 0 ? null : 2 * multiplications / time.median / 1e6;
}

function share(value: number | null, most: number | undefined): number | null {
  return value === null || most === undefined ? null : value / most;
}

/** The ceilings of the device that a record names, where they are known. */
export function recordCeilings({ device, dtype }: ReadCase): Ceilings {
  return deviceCeilings(device, dtype);
}

export type CaseOrder = RowOrder<CaseColumnName>;

/** Cases sorted by a column; what has no value comes last. */
export function sortCases<C extends ShownCase>(
  cases: readonly C[],
  { column, descending }: CaseOrder,
  ceilings: (record: ReadCase) => Ceilings = recordCeilings,
): C[] {
  const { order } = CASE_COLUMNS[column];
  return sortRows(cases, (record) => order(record, ceilings(record)), descending);
}

/** Why a case did not pass, or has no verdict though it was to have one, in a line; undefined where it is as it should be. */
export function whyNot(record: ReadCase): string | undefined {
  const { verdict, op, problem, message, time_ms, accuracy } = record;
  // What ran and was not to be checked has a time, and no accuracy.
  const asAsked = time_ms !== null && accuracy === null;
  if (verdict === "pass" || (verdict === "none" && (message === undefined || asAsked))) {
    return undefined;
  }
  const said = message ?? "not said why";
  return printableMessage(`${verdictWord(verdict)}: ${op} ${problem}: ${said}`);
}
