import { caseKey, latestCases, questionKey, settingKey } from "./case_key.ts";
import type { ReadCase } from "./record_schema.ts";
import { usableTime } from "./speed_change.ts";

/** A case of the base and what it is compared with. */
export interface CasePair {
  readonly base: ReadCase;
  readonly next: ReadCase;
}

/** What {@linkcode pairCases} finds. */
export interface Pairing {
  readonly pairs: readonly CasePair[];
  readonly onlyBase: readonly ReadCase[];
  readonly onlyNext: readonly ReadCase[];
  /** Records that a later one of the same case took the place of. */
  readonly replaced: number;
}

/**
 * `algorithm`: each case with its like (problem, operation, dtype, epilogue, provider, layout, algorithm; and
 * kernel, where a side has several of one case). `best`: the fastest right record of each side for each
 * problem, operation, dtype and epilogue, whoever made it.
 */
export type PairBy = "best" | "algorithm";

/** Pairs the cases of two runs, in the base's order. */
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
  return { ...found, pairs, replaced: a.replaced + b.replaced };
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
): Omit<Pairing, "replaced"> {
  const several = new Set(
    [base, next].flatMap((side) =>
      [...Map.groupBy(side, caseKey)].filter(([, group]) => group.length > 1).map(([key]) => key)
    ),
  );
  const withKernel = (record: ReadCase) => {
    const key = caseKey(record);
    return several.has(key) ? `${key}|${record.kernel}` : key;
  };
  const exact = match(base, next, withKernel);
  // The planner may choose another algorithm than before: what is alone in its setting on both sides meets too.
  const loose = match(alone(exact.onlyBase), alone(exact.onlyNext), settingKey);
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
): Omit<Pairing, "replaced"> {
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
