import { EXIT } from "../errors.ts";
import { type AccuracyChange, accuracyChange } from "./accuracy_change.ts";
import { latestCases } from "./case_key.ts";
import { type CasePair, type PairBy, pairCases } from "./pair_cases.ts";
import { type Uncompared, uncomparedLine } from "./uncompared.ts";
import type { ReadCase } from "./record_schema.ts";
import {
  type SpeedChange,
  speedChange,
  type SpeedRule,
  type SpeedVerdict,
} from "./speed_change.ts";

/** One pair's outcome. */
export interface ComparedCase extends CasePair {
  readonly speed: SpeedChange;
  readonly accuracy: AccuracyChange;
  /** Whether it is slower by more than the threshold. */
  readonly regression: boolean;
}

/** Speed-ups of several cases together. */
export interface SpeedSummary {
  /** An operation, or `all`. */
  readonly op: string;
  /** Of base time over new time, over the cases that have both. */
  readonly geomean: number | null;
  readonly timed: number;
  readonly verdicts: Readonly<Record<SpeedVerdict, number>>;
}

/** A result that was right, or righter. */
export interface AccuracyRegression extends CasePair {
  readonly reason: string;
}

/** Two runs compared. */
export interface Comparison {
  readonly by: PairBy;
  readonly rule: SpeedRule;
  readonly cases: readonly ComparedCase[];
  /** In each operation's order of appearance, then all. */
  readonly summaries: readonly SpeedSummary[];
  readonly accuracyRegressions: readonly AccuracyRegression[];
  /** The other wrong results of the new run: wrong in the base too, or not in it. */
  readonly wrong: readonly ReadCase[];
  readonly onlyBase: readonly ReadCase[];
  readonly onlyNext: readonly ReadCase[];
  /** Every record that is compared with none, and why. */
  readonly uncompared: readonly Uncompared[];
  /** How many of each side are not, and why: a line a side. */
  readonly uncomparedLines: readonly string[];
  readonly replaced: number;
  /** 2 where nothing matched, 1 for accuracy (no run with a wrong result is ok), 4 for speed. */
  readonly exitCode: number;
}

/** Compares the cases of two runs, paired as `by` says. Accuracy is compared case by case in any event. */
export function compareRuns(
  base: readonly ReadCase[],
  next: readonly ReadCase[],
  by: PairBy,
  rule: SpeedRule,
): Comparison {
  const { pairs, onlyBase, onlyNext, uncompared, replaced } = pairCases(base, next, by);
  const cases = pairs.map((pair): ComparedCase => {
    const speed = speedChange(pair.base, pair.next, rule);
    return {
      ...pair,
      speed,
      accuracy: accuracyChange(pair.base, pair.next),
      regression: speed.verdict === "SLOWER" && 1 / speed.speedup! - 1 > rule.threshold,
    };
  });
  const ops = [...new Set(cases.map(({ base }) => base.op))];
  const perOp = ops.length < 2
    ? []
    : ops.map((op) => summary(op, cases.filter(({ base }) => base.op === op)));
  const all = by === "best" ? [...pairs, ...pairCases(base, next, "algorithm").pairs] : pairs;
  const accuracyRegressions = accuracyRegressionsOf(all);
  const wrong = latestCases(next).cases.filter((record) =>
    record.verdict === "fail" && accuracyRegressions.every((found) => found.next !== record)
  );
  return {
    by,
    rule,
    cases,
    summaries: [...perOp, summary("all", cases)],
    accuracyRegressions,
    wrong,
    onlyBase,
    onlyNext,
    uncompared,
    uncomparedLines: [
      uncomparedLine("base", uncompared, base.length),
      uncomparedLine("new run", uncompared, next.length),
    ].filter((line) => line !== undefined),
    replaced,
    exitCode: cases.length === 0
      ? EXIT.usage
      : accuracyRegressions.length > 0 || wrong.length > 0
      ? EXIT.accuracy
      : cases.some(({ regression }) => regression)
      ? EXIT.regression
      : EXIT.ok,
  };
}

/** The regressions among pairs, each new record once. */
function accuracyRegressionsOf(pairs: readonly CasePair[]): AccuracyRegression[] {
  const found = new Map<ReadCase, AccuracyRegression>();
  for (const { base, next } of pairs) {
    const { verdict, reason = "" } = accuracyChange(base, next);
    if (verdict === "regression" && !found.has(next)) found.set(next, { base, next, reason });
  }
  return [...found.values()];
}

function summary(op: string, cases: readonly ComparedCase[]): SpeedSummary {
  const verdicts = { SAME: 0, FASTER: 0, SLOWER: 0, AMBIGUOUS: 0 };
  for (const { speed } of cases) verdicts[speed.verdict]++;
  const speedups = cases.flatMap(({ speed }) => speed.speedup ?? []);
  return { op, geomean: geometricMean(speedups), timed: speedups.length, verdicts };
}

/** Geometric mean; `null` of nothing. */
export function geometricMean(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}
