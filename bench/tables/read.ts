/** Records of bench/results as bench/tables.ts reads them. */
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import type { ConvProblem, Operation } from "../../src/problem/conv_problem.ts";
import { geometricMean } from "../../src/report/comparison.ts";
import type { MemoryRecord } from "../../src/report/record.ts";
import { type Column, markdownTable } from "../../src/report/table.ts";

/** Where names of files begin, unless they say `../` and another day. */
export const RESULTS = new URL("../results/h200-2026-11-20/", import.meta.url);

/** A measured case, as far as tables read it. Times in ms, rates in GFLOP/s of direct flops. */
export interface Case {
  readonly kind: string;
  readonly provider: string;
  readonly problem: string;
  readonly op: Operation | "gemm";
  readonly dtype: string;
  readonly layout?: string;
  readonly algorithm?: string;
  /** What was asked for, where that is another. */
  readonly requested?: string;
  /** A tile policy that was forced. */
  readonly policy?: string;
  readonly tile?: string;
  readonly kernel?: string;
  readonly verdict?: string;
  readonly gflops: number;
  readonly multiplications?: number;
  readonly time_ms: { readonly median: number };
  readonly workspace_bytes?: number;
  readonly memory_bytes?: MemoryRecord;
}

/** The lines of a file of results; none where it does not exist. */
export function lines(name: string): string[] {
  try {
    return Deno.readTextFileSync(new URL(name, RESULTS)).split("\n").filter((one) => one !== "");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** The cases of a file of JSON lines; failed ones do not count. */
export function readCases(name: string): Case[] {
  return lines(name).map((line): Case => JSON.parse(line))
    .filter(({ kind, verdict, time_ms }) =>
      kind === "case" && verdict !== "fail" && time_ms != null
    );
}

/** The problem of a convolution's record. */
export function problemOf({ problem, op }: Case): ConvProblem {
  return parseDescriptor(problem, op === "gemm" ? "fwd" : op);
}

/** `Conv2N32` */
export function nameOf(one: Case): string {
  return problemOf(one).name ?? one.problem;
}

/** The fastest; undefined of none. */
export function fastest(cases: readonly Case[]): Case | undefined {
  return cases.toSorted((one, other) => one.time_ms.median - other.time_ms.median)[0];
}

/** TFLOP/s of a case; NaN without one. */
export function rateOf(one: Case | undefined): number {
  return one === undefined ? NaN : one.gflops / 1000;
}

/** A figure as a cell; `-` where there is none. */
export function cell(value: number, digits = 1): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "-";
}

/** Geometric mean of the figures that there are. */
export function mean(values: readonly number[]): number {
  return geometricMean(values.filter(Number.isFinite)) ?? NaN;
}

/** A table; titles that end with `<` stand left. */
export function tableOf(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const columns = titles.map((title): Column =>
    title.endsWith("<") ? { title: title.slice(0, -1) } : { title, align: "right" }
  );
  return markdownTable(columns, rows);
}

/** A table of figures with geometric means below; the first column is a name. */
export function meanTable(
  titles: readonly string[],
  rows: readonly (readonly [string, ...number[]])[],
  digits: readonly number[] = [],
): string {
  const figures = (values: readonly number[]) =>
    values.map((value, i) => cell(value, digits[i] ?? 1));
  const columns = titles.slice(1).map((_, i) => mean(rows.map((row) => row[i + 1] as number)));
  return tableOf([`${titles[0]}<`, ...titles.slice(1)], [
    ...rows.map(([name, ...values]) => [name, ...figures(values)]),
    ["geomean", ...figures(columns)],
  ]);
}

/** Markdown tables in the output of a benchmark: the cells of the heading, and of each row. */
export function textTables(name: string): { heading: string[]; rows: string[][] }[] {
  const cellsOf = (line: string) => line.split("|").slice(1, -1).map((one) => one.trim());
  const tables: { heading: string[]; rows: string[][] }[] = [];
  const all = lines(name);
  all.forEach((line, at) => {
    if (!line.startsWith("|")) return;
    if (/^\| -/.test(all[at + 1] ?? "")) tables.push({ heading: cellsOf(line), rows: [] });
    else if (!/^\| -/.test(line)) tables.at(-1)?.rows.push(cellsOf(line));
  });
  return tables;
}

/** A line of what bench/variants.ts printed. */
export interface Variant {
  readonly where: string;
  readonly tflops: number;
  readonly microseconds: number;
  readonly variant: string;
}

/** What bench/variants.ts printed, in order. */
export function readVariants(name: string): Variant[] {
  let where = "";
  return lines(name).flatMap((line) => {
    const found = /^\s+([\d.]+) TFLOP\/s\s+([\d.]+) us\s+\S+\s+\d+ MiB\s+(\S+)/.exec(line);
    if (found === null) {
      if (/^\S+ \S+ \S+$/.test(line)) where = line;
      return [];
    }
    const [, tflops, microseconds, variant = ""] = found;
    return [{ where, tflops: Number(tflops), microseconds: Number(microseconds), variant }];
  });
}
