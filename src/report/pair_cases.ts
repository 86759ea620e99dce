import {
  canonicalProblem,
  caseKey,
  dtypeText,
  latestCases,
  questionKey,
  settingKey,
} from "./case_key.ts";
import type { ReadCase } from "./record_schema.ts";
import { usableTime } from "./speed_change.ts";
import { counted } from "./format.ts";

/** A case of the base and what it is compared with. */
export interface CasePair {
  readonly base: ReadCase;
  readonly next: ReadCase;
}

interface Pairing {
  readonly pairs: readonly CasePair[];
  /** What has no like on the other side, with what it differs in. */
  readonly onlyBase: readonly ReadCase[];
  readonly onlyNext: readonly ReadCase[];
  readonly uncompared: readonly Uncompared[];
  readonly replaced: number;
}

/**
 * `algorithm`: each case with its like (problem, operation, dtype, epilogue, provider, layout, algorithm; and
 * kernel, where a side has several of one case). `best`: the fastest right record of each side for each
 * problem, operation, dtype and epilogue, whoever made it.
 */
export type PairBy = "best" | "algorithm";

/**
 * Pairs the cases of two runs, in the base's order. Where each side is of one provider, the two are taken for one: tags of
 * runs, such as `before` and `after`.
 */
export function pairCases(
  base: readonly ReadCase[],
  next: readonly ReadCase[],
  by: PairBy,
): Pairing {
  const a = latestCases(base);
  const b = latestCases(next);
  const found = by === "best"
    ? match(fastest(a.cases), fastest(b.cases), questionKey)
    : matchCases(a.cases, b.cases);
  const order = new Map(base.map((record, index) => [record, index]));
  const pairs = [...found.pairs].sort((x, y) => order.get(x.base)! - order.get(y.base)!);
  const uncompared = [
    ...uncomparedOf("base", base, next, { ...found, kept: a.cases, by }),
    ...uncomparedOf("new run", next, base, { ...found, kept: b.cases, by }),
  ];
  return { ...found, pairs, uncompared, replaced: a.replaced + b.replaced };
}

/** Whether the sides have a case in common, providers apart: runs of one program with tags of their own. */
export function haveCasesInCommon(base: readonly ReadCase[], next: readonly ReadCase[]): boolean {
  const keyOf = (record: ReadCase) =>
    (record.requested ?? record.algorithm) === "" ? [] : [caseKey(anyone(record))];
  const keys = new Set(base.flatMap(keyOf));
  return oneProviderEach(base, next) && next.flatMap(keyOf).some((key) => keys.has(key));
}

function oneProviderEach(...sides: readonly (readonly ReadCase[])[]): boolean {
  return sides.every((side) => new Set(side.map(({ provider }) => provider)).size === 1);
}

function anyone(record: ReadCase): ReadCase {
  return { ...record, provider: "" };
}

function uncomparedOf(
  side: Uncompared["side"],
  own: readonly ReadCase[],
  others: readonly ReadCase[],
  { pairs, onlyBase, onlyNext, kept, by }:
    & Omit<Pairing, "replaced" | "uncompared">
    & { readonly kept: readonly ReadCase[]; readonly by: PairBy },
): Uncompared[] {
  const paired = new Set(pairs.map((pair) => side === "base" ? pair.base : pair.next));
  const latest = new Set(kept);
  const alone = new Set(side === "base" ? onlyBase : onlyNext);
  const reasonOf = (record: ReadCase): string => {
    if (!latest.has(record)) return "a later record of the same case replaces it";
    if (alone.has(record)) return unlikeness(record, others);
    if (by === "algorithm") return "the same side has another record of the case";
    if (record.verdict === "fail") return "failed the check";
    return usableTime(record) === null
      ? "has no time"
      : "the same side has a faster record of the problem (--by best)";
  };
  return own.filter((record) => !paired.has(record))
    .map((record) => ({ side, record, reason: reasonOf(record) }));
}

/** The fastest of the records that answer the same question, of the right ones if there are any. */
function fastest(cases: readonly ReadCase[]): ReadCase[] {
  const groups = Map.groupBy(cases, questionKey);
  const time = (record: ReadCase) => usableTime(record)?.median ?? Infinity;
  return [...groups.values()].map((group) =>
    group.reduce((best, record) => time(record) < time(best) ? record : best)
  );
}

function matchCases(
  base: readonly ReadCase[],
  next: readonly ReadCase[],
): Omit<Pairing, "replaced" | "uncompared"> {
  const plain = oneProviderEach(base, next) ? anyone : (record: ReadCase) => record;
  const keyOf = (record: ReadCase) => caseKey(plain(record));
  const several = new Set(
    [base, next].flatMap((side) =>
      [...Map.groupBy(side, keyOf)].filter(([, group]) => group.length > 1).map(([key]) => key)
    ),
  );
  const withKernel = (record: ReadCase) => {
    const key = keyOf(record);
    return several.has(key) ? `${key}|${record.kernel}` : key;
  };
  const exact = match(base, next, withKernel);
  // The planner may choose another algorithm than before: what is alone in its setting on both sides meets too.
  const setting = (record: ReadCase) => settingKey(plain(record));
  const loose = match(alone(exact.onlyBase), alone(exact.onlyNext), setting);
  const met = new Set(loose.pairs.flatMap((pair) => [pair.base, pair.next]));
  const unmet = (cases: readonly ReadCase[]) => cases.filter((record) => !met.has(record));
  return {
    pairs: [...exact.pairs, ...loose.pairs],
    onlyBase: unmet(exact.onlyBase),
    onlyNext: unmet(exact.onlyNext),
  };
}

function alone(cases: readonly ReadCase[]): ReadCase[] {
  return [...Map.groupBy(cases, settingKey).values()].filter((group) => group.length === 1).flat();
}

/** Pairs by a key; of several records with one key on a side the last counts. */
function match(
  base: readonly ReadCase[],
  next: readonly ReadCase[],
  key: (record: ReadCase) => string,
): Omit<Pairing, "replaced" | "uncompared"> {
  const right = new Map(next.map((record) => [key(record), record]));
  const left = new Map(base.map((record) => [key(record), record]));
  const pairs = [...left].flatMap(([name, record]) => {
    const found = right.get(name);
    return found ? [{ base: record, next: found }] : [];
  });
  return {
    pairs,
    onlyBase: base.filter((record) => !right.has(key(record))),
    onlyNext: next.filter((record) => !left.has(key(record))),
  };
}

/** Why cases are not compared. */

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
function unlikeness(record: ReadCase, others: readonly ReadCase[]): string {
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
  return `${own.length} of ${counted(total, "case")} of the ${side} ` +
    `${own.length === 1 ? "is" : "are"} not compared (${reasons.join("; ")})`;
}
