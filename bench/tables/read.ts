/** The records of bench/results as tables and charts read them. */
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import type { Operation } from "../../src/problem/conv_problem.ts";
import { parseGemm, printGemm } from "../../src/problem/gemm_suite.ts";
import { geometricMean } from "../../src/report/stats.ts";
import { parseRecords } from "../../src/report/read_records.ts";
import type { ReadCase } from "../../src/report/record_schema.ts";
import { type Column, markdownTable } from "../../src/report/table.ts";

const RESULTS = new URL("../results/", import.meta.url);

/** The cases of a file such as `h200/gemm.jsonl`. */
export function readRecords(name: string): readonly ReadCase[] {
  return parseRecords(Deno.readTextFileSync(new URL(name, RESULTS)), name).cases;
}

/** Those that are timed; failed ones do not count. */
export function readCases(name: string): ReadCase[] {
  return readRecords(name).filter(({ verdict, time_ms }) => verdict !== "fail" && time_ms !== null);
}

/** `Conv2N32`, `4096 4096 4096 t n`; peers write the same problems in other words. */
export function nameOf({ op, problem }: ReadCase): string {
  return op === "gemm"
    ? printGemm(parseGemm(problem))
    : parseDescriptor(problem, op as Operation).name ?? problem;
}

/** Milliseconds; NaN of none. */
export function timeOf(one: ReadCase | undefined): number {
  return one?.time_ms?.median ?? NaN;
}

/** TFLOP/s; NaN of none. */
export function rateOf(one: ReadCase | undefined): number {
  return (one?.gflops ?? NaN) / 1000;
}

/** The fastest of those that match; undefined of none. */
export function fastest(
  cases: readonly ReadCase[],
  matches: (one: ReadCase) => boolean = () => true,
): ReadCase | undefined {
  return cases.filter(matches).toSorted((one, other) => timeOf(one) - timeOf(other))[0];
}

/** A problem that both sides have, each by its fastest case. */
export interface Pair {
  readonly name: string;
  readonly op: string;
  readonly ours: ReadCase;
  readonly peer: ReadCase;
  /** The peer's time over ours. */
  readonly ratio: number;
}

/** The problems that a file of ours and one of a peer share. */
export function pairsOf(ours: readonly ReadCase[], peers: readonly ReadCase[]): Pair[] {
  const keyOf = (one: ReadCase) => `${nameOf(one)}, ${one.op}`;
  const byKey = Map.groupBy(peers, keyOf);
  return [...Map.groupBy(ours, keyOf)].flatMap(([key, cases]) => {
    const [own, peer] = [fastest(cases), fastest(byKey.get(key) ?? [])];
    if (own === undefined || peer === undefined) return [];
    const ratio = timeOf(peer) / timeOf(own);
    return [{ name: nameOf(own), op: own.op, ours: own, peer, ratio }];
  });
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
