/** Why cases are not compared. */
import { canonicalProblem, dtypeText } from "./case_key.ts";
import type { ReadCase } from "./record_schema.ts";

export interface Uncompared {
  readonly side: "base" | "new run";
  readonly record: ReadCase;
  readonly reason: string;
}

/** What tells cases apart beside their problem, the largest differences first. */
const TRAITS: readonly (readonly [what: string, of: (record: ReadCase) => unknown])[] = [
  ["operation", ({ op }) => op],
  ["dtype", dtypeText],
  ["epilogue", ({ epilogue = "" }) => epilogue],
  ["accumulation", ({ accumulate = "" }) => accumulate],
  ["math", ({ math = "" }) => math],
  ["layout", ({ layout, filter_layout = "" }) => `${layout} ${filter_layout}`],
  ["cache", ({ cache = "hot" }) => cache],
  ["algorithm", ({ requested, algorithm }) => requested ?? algorithm],
  ["policy", ({ policy = "" }) => policy],
  ["tile", ({ tile = "" }) => tile],
  ["pair", ({ pair = "" }) => pair],
  ["segments", ({ segments = "" }) => segments],
  ["provider", ({ provider }) => provider],
  ["kernel", ({ kernel = "" }) => kernel],
];

/** What a record differs in from the other side's: that of its nearest record there. */
export function unlikeness(record: ReadCase, others: readonly ReadCase[]): string {
  const problem = canonicalProblem(record);
  const same = others.filter((other) => canonicalProblem(other) === problem);
  if (same.length === 0) return "the other side does not have the problem";
  const differences = same.map((other) =>
    TRAITS.filter(([, of]) => of(record) !== of(other)).map(([what]) => what)
  );
  const least = differences.reduce((a, b) => b.length < a.length ? b : a);
  // A provider's algorithm and kernel are its own.
  const named = least.length > 1 ? least.filter((what) => what !== "kernel") : least;
  return named.length === 0
    ? "its counterpart is compared with another case"
    : `the other side has the problem in another ${named.join(" and ")}`;
}

/** `18 of 24 cases of the base are not compared: 12 ..., 6 ...`; undefined where all are. */
export function uncomparedLine(
  side: Uncompared["side"],
  all: readonly Uncompared[],
  total: number,
): string | undefined {
  const own = all.filter((one) => one.side === side);
  if (own.length === 0) return undefined;
  const reasons = [...Map.groupBy(own, ({ reason }) => reason)]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([reason, { length }]) => `${length}: ${reason}`);
  return `${own.length} of ${total} ${total === 1 ? "case" : "cases"} of the ${side} ` +
    `${own.length === 1 ? "is" : "are"} not compared (${reasons.join("; ")})`;
}
