import { EXIT } from "../errors.ts";
import { latestCases } from "./case_key.ts";
import { formatError, significant } from "./format.ts";
import { sumOf, timesOf } from "./network.ts";
import {
  type CasePair,
  type PairBy,
  pairCases,
  type Uncompared,
  uncomparedLine,
} from "./pair_cases.ts";
import type { ReadCase } from "./record_schema.ts";
import { geometricMean } from "./stats.ts";
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
  readonly regression: boolean;
}

/** Speed-ups of several cases together. */
interface SpeedSummary {
  /** An operation, or `all`. */
  readonly op: string;
  /** Of base time over new time, over the cases that have both. */
  readonly geomean: number | null;
  /** Of all base times over all new times, each as often as a network has its layer. */
  readonly total: number | null;
  readonly timed: number;
  readonly verdicts: Readonly<Record<SpeedVerdict, number>>;
}

/** A result that was right, or righter. */
interface AccuracyRegression extends CasePair {
  readonly reason: string;
}

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
  const timed = cases.filter(({ speed }) => speed.speedup !== null);
  const sum = (which: "base" | "next") =>
    sumOf(
      timed,
      (pair) => Math.max(timesOf(pair.base), timesOf(pair.next)) * pair[which].time_ms!.median,
    );
  const total = timed.length === 0 ? null : sum("base") / sum("next");
  return { op, geomean: geometricMean(speedups), total, timed: speedups.length, verdicts };
}

/** What a record says of its accuracy. */
export interface Checked
  extends Pick<ReadCase, "verdict" | "message" | "fill" | "seed" | "loss_scale"> {
  readonly accuracy: Partial<NonNullable<ReadCase["accuracy"]>> | null;
}

/** Whether a record's result is wrong, or is none. */
export function isWrong({ verdict }: Pick<ReadCase, "verdict">): boolean {
  return verdict === "fail" || verdict === "error";
}

/** Whether a record is as exact as another. */
interface AccuracyChange {
  /**
   * `regression`: the exact rule of {@linkcode accuracyChange}. `failing`: wrong before and wrong now.
   * `worse`: a figure grew by more than half within its limit. `unknown`: nothing to compare.
   */
  readonly verdict: "same" | "worse" | "failing" | "regression" | "unknown";
  readonly reason?: string;
}

/** A figure this many times the base's is worse. */
const WORSE = 1.5;

const FIGURES = [
  { what: "bound ratio", value: "max_bound_ratio", limit: "bound_limit", print: significant },
  { what: "relative L2", value: "rel_l2", limit: "rel_l2_limit", print: formatError },
] as const;

/**
 * Compares two records' accuracy. A regression is
 *
 * - a verdict `fail` or `error` where the base's is neither,
 * - a verdict `none` of a result that was looked at, as one of NaN alone is, where the base's is `pass`, or
 * - on the same data (fill, seed and loss scale), a bound ratio or relative L2 error above 1.5 times the base's that is
 *   also beyond the limit: the stricter of the two records', so that a looser limit hides nothing.
 */
export function accuracyChange(base: Checked, next: Checked): AccuracyChange {
  if (isWrong(next) && !isWrong(base)) {
    const message = next.message === undefined ? "" : `: ${next.message}`;
    return { verdict: "regression", reason: `${base.verdict} became ${next.verdict}${message}` };
  }
  if (base.verdict === "pass" && next.verdict === "none" && (next.accuracy?.checked ?? 0) > 0) {
    return {
      verdict: "regression",
      reason: `pass became not checked: ${next.message ?? "no bound is known"}`,
    };
  }
  const worse = haveSameData(base, next) && !isWrong(base) ? worseFigures(base, next) : [];
  const beyond = worse.find((figure) => figure.beyond);
  if (beyond) return { verdict: "regression", reason: beyond.text };
  if (isWrong(next)) return { verdict: "failing", reason: next.message ?? next.verdict };
  if (worse.length > 0) return { verdict: "worse", reason: worse[0]!.text };
  return { verdict: base.verdict === "none" || next.verdict === "none" ? "unknown" : "same" };
}

/** Whether two records' errors are of the same data. */
export function haveSameData(base: Checked, next: Checked): boolean {
  return base.fill === next.fill && base.seed === next.seed && base.loss_scale === next.loss_scale;
}

function worseFigures(base: Checked, next: Checked) {
  return FIGURES.flatMap(({ what, value, limit, print }) => {
    const [was, is] = [base.accuracy?.[value], next.accuracy?.[value]];
    if (typeof was !== "number" || typeof is !== "number" || is <= was * WORSE) return [];
    const limits = [base.accuracy?.[limit], next.accuracy?.[limit]]
      .filter((one) => typeof one === "number");
    const allowed = limits.length > 0 ? Math.min(...limits) : Infinity;
    const text = `${what} ${print(is)}, was ${print(was)}` +
      (Number.isFinite(allowed) ? `, ${print(allowed)} allowed` : "");
    return [{ beyond: is > allowed, text }];
  });
}
