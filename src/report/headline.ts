/** What a page says first. */
import type { Point } from "./charts/points.ts";
import { formatGflops } from "./format.ts";
import type { ReadCase } from "./record_schema.ts";
import { pairedText, type Speedups, speedupText } from "./speedups.ts";
import { median } from "./stats.ts";

/** A few words in large, and beside them what they are made of. */
interface Headline {
  readonly large: string;
  readonly small: readonly string[];
}

/** A headline a provider and baseline, or else one of the rates; none where nothing was timed. */
export function headlines(points: readonly Point[], speedups: readonly Speedups[]): Headline[] {
  const pairs = Map.groupBy(
    speedups,
    ({ provider, baseline }) => JSON.stringify([provider, baseline]),
  );
  if (pairs.size > 0) {
    return [...pairs.values()].map((own) => {
      const { provider, baseline } = own[0]!;
      const facets = own.map(({ facet, cases }) => `${facet}: ${speedupText(cases)}`);
      return {
        large: speedupText(own.flatMap(({ cases }) => cases)),
        small: [
          `${provider}'s speed over ${baseline}'s, geometric mean ${pairedText(own)}`,
          ...(own.length > 1 ? facets : []),
        ],
      };
    });
  }
  const rates = points.flatMap(({ right, gflops }) => right && gflops !== null ? [gflops] : []);
  if (rates.length === 0) return [];
  if (rates.length === 1) return [{ large: formatGflops(rates[0]!), small: ["in one case"] }];
  const [least, most] = [Math.min(...rates), Math.max(...rates)].map(formatGflops);
  return [{
    large: formatGflops(median(rates)),
    small: [`in the median of ${rates.length} cases`, `${least} to ${most}`],
  }];
}

/** How many results are right: `150 of 150 checked results pass`. */
export function verdictLine(cases: readonly ReadCase[]): string {
  const count = (verdict: ReadCase["verdict"]) =>
    cases.filter((record) => record.verdict === verdict).length;
  const [pass, fail, error, none] = [count("pass"), count("fail"), count("error"), count("none")];
  return [
    ...(pass + fail === 0 ? [] : [`${pass} of ${pass + fail} checked results pass`]),
    ...(fail === 0 ? [] : [`${fail} fail`]),
    ...(error === 0 ? [] : [`${error} did not run`]),
    ...(none === 0 ? [] : [`${none} without a verdict`]),
  ].join(", ");
}
