import { byFacet, distinct, type Point } from "./charts/points.ts";
import { geometricMean } from "./stats.ts";
import type { ReadCase } from "./record_schema.ts";
import { haveCasesInCommon, type PairBy, pairCases } from "./pair_cases.ts";
import {
  type Interval,
  speedChange,
  type SpeedVerdict,
  USUAL_MARGIN,
  USUAL_THRESHOLD,
} from "./speed_change.ts";

/** One case of two providers. */
export interface CaseSpeedup {
  readonly label: string;
  readonly ratio: number;
  /** Where the ratio lies for the noise of both; the ratio alone where one has no samples. */
  readonly noise: Interval;
  readonly change: Lowercase<SpeedVerdict>;
}

/** Cases that a provider and a baseline share, of one facet. */
export interface Speedups {
  /** `wgconv`, or `wgconv f16x3` of what was not multiplied as it is. */
  readonly provider: string;
  readonly baseline: string;
  readonly facet: string;
  /** Whether cases are paired with their like, or the best of each maker. */
  readonly by: PairBy;
  readonly cases: readonly CaseSpeedup[];
}

/** Each provider's throughput over each baseline's, case by case. None where they have no case in common. */
export function speedupsOf(points: readonly Point[], baselines: readonly string[]): Speedups[] {
  const others = distinct(points.map(({ record }) => makerOf(record)))
    .filter((provider) => !baselines.includes(provider));
  return baselines.flatMap((baseline) =>
    facetsWithBaseline(points, baseline).flatMap(([facet, all]) =>
      others.flatMap((provider) => {
        const { by, cases } = casesOf(all, provider, baseline);
        return cases.length === 0 ? [] : [{ provider, baseline, facet, by, cases }];
      })
    )
  );
}

/** What speed-ups are over unless asked for: the peers of wgconv, or else the first of several providers. */
export function usualBaselines(points: readonly Point[]): string[] {
  const providers = distinct(points.map(({ record }) => makerOf(record)));
  const peers = providers.filter((provider) => !provider.startsWith("wgconv"));
  if (peers.length > 0 && peers.length < providers.length) return peers;
  return providers.length > 1 ? [providers[0]!] : [];
}

/** Makers of cases: what is compared first, its peers behind it. */
export function usualMakers(cases: readonly ReadCase[]): string[] {
  const makers = distinct(cases.map(makerOf));
  const own = makers.filter((maker) => maker.startsWith("wgconv"));
  return own.length === 0 ? makers : [...own, ...makers.filter((maker) => !own.includes(maker))];
}

/** Speed-ups in a few words: `1.77 x, 2 of 75 slower`, `1.1 x, 0 of 4 slower, 1 ambiguous`. */
export function speedupText(cases: readonly CaseSpeedup[]): string {
  const slower = cases.filter(({ change }) => change === "slower").length;
  const ambiguous = cases.filter(({ change }) => change === "ambiguous").length;
  const mean = geometricMean(cases.map(({ ratio }) => ratio))!;
  return `${mean.toPrecision(3)} x, ${slower} of ${cases.length} slower` +
    (ambiguous === 0 ? "" : `, ${ambiguous} ambiguous`);
}

/** What the geometric mean of speed-ups is over. */
export function pairedText(speedups: readonly Speedups[]): string {
  return speedups.every(({ by }) => by === "best") ? "of the best of each" : "of like cases";
}

/** Facets, those of a device with the baseline's records that do not name one. */
function facetsWithBaseline(points: readonly Point[], baseline: string): [string, Point[]][] {
  const ofNoDevice = points.filter(({ record }) =>
    makerOf(record) === baseline && record.device === ""
  );
  return byFacet(points).map(([facet, own]) => {
    const borrowed = ofNoDevice.filter((point) =>
      point.facet !== facet && facet.startsWith(`${point.facet},`)
    );
    return [facet, [...own, ...borrowed]];
  });
}

/** The cases that two makers share: like with like where one is a tagged run of the other, else the best of each. */
function casesOf(
  points: readonly Point[],
  provider: string,
  baseline: string,
): Pick<Speedups, "by" | "cases"> {
  const rightOf = (maker: string) =>
    points.filter((point) => point.right && makerOf(point.record) === maker);
  const pointOf = new Map(points.map((point) => [point.record, point]));
  const [base, next] = [baseline, provider].map((maker) =>
    rightOf(maker).map(({ record }) => record)
  );
  const by = haveCasesInCommon(base!, next!) ? "algorithm" : "best";
  const cases = pairCases(base!, next!, by).pairs.flatMap((pair): CaseSpeedup[] => {
    const [theirs, ours] = [pointOf.get(pair.base)!, pointOf.get(pair.next)!];
    if (ours.gflops === null || theirs.gflops === null) return [];
    const ratio = ours.gflops / theirs.gflops;
    const [a, b] = [ours.noise, theirs.noise];
    const noise: Interval = a === null || b === null ? [ratio, ratio] : [a[0] / b[1], a[1] / b[0]];
    const { verdict } = speedChange(theirs.record, ours.record, USUAL_RULE);
    const change = verdict.toLowerCase() as Lowercase<SpeedVerdict>;
    return [{ label: ours.label, ratio, noise, change }];
  });
  return { by, cases };
}

/** Who computed; another way to multiply is a rival of its own. */
export function makerOf({ provider, math }: Point["record"]): string {
  return math === undefined ? provider : `${provider} ${math}`;
}

const USUAL_RULE = { threshold: USUAL_THRESHOLD, margin: USUAL_MARGIN };
