import { formatError, significant } from "./format.ts";
import type { ReadCase } from "./record_schema.ts";

/** Whether a record is as exact as another. */
export interface AccuracyChange {
  /**
   * `regression`: the exact rule of {@linkcode accuracyChange}. `failing`: wrong before and wrong now.
   * `worse`: a figure grew by more than half within its limit. `unknown`: nothing to compare.
   */
  readonly verdict: "same" | "worse" | "failing" | "regression" | "unknown";
  readonly reason?: string;
}

/** A figure this many times the base's is worse. */
export const WORSE = 1.5;

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
export function accuracyChange(base: ReadCase, next: ReadCase): AccuracyChange {
  const wrong = ({ verdict }: ReadCase) => verdict === "fail" || verdict === "error";
  if (wrong(next) && !wrong(base)) {
    const message = next.message === undefined ? "" : `: ${next.message}`;
    return { verdict: "regression", reason: `${base.verdict} became ${next.verdict}${message}` };
  }
  if (base.verdict === "pass" && next.verdict === "none" && (next.accuracy?.checked ?? 0) > 0) {
    return {
      verdict: "regression",
      reason: `pass became not checked: ${next.message ?? "no bound is known"}`,
    };
  }
  const same = base.fill === next.fill && base.seed === next.seed &&
    base.loss_scale === next.loss_scale;
  const worse = same ? worseFigures(base, next) : [];
  const beyond = worse.find((figure) => figure.beyond);
  if (beyond) return { verdict: "regression", reason: beyond.text };
  if (wrong(next)) return { verdict: "failing", reason: next.message ?? next.verdict };
  if (worse.length > 0) return { verdict: "worse", reason: worse[0]!.text };
  return { verdict: base.verdict === "none" || next.verdict === "none" ? "unknown" : "same" };
}

function worseFigures(base: ReadCase, next: ReadCase) {
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
