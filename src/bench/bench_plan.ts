import type { PlanRequest } from "../algorithms/request.ts";
import type { AlgorithmName } from "../algorithms/names.ts";
import { type ConvProblem, directFlops, type Operation } from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import type { ReadCase } from "../report/record_schema.ts";
import type { FillKind } from "../tensor/fill.ts";
import type { Layout } from "../tensor/layout.ts";
import type { CheckMode } from "../run/coverage.ts";
import type { TimingProtocol } from "../run/timing.ts";

/** Whether calls find their operands in the cache, or cycle through copies. */
export type CacheState = "hot" | "cold";

/** What a run of the bench covers: the cross product of problems and of every list. */
export interface BenchPlan {
  readonly problems: readonly ConvProblem[];
  readonly ops: readonly Operation[];
  readonly dtypes: readonly PlanRequest["dtype"][];
  readonly layouts: readonly Layout[];
  readonly algorithms: readonly (AlgorithmName | "auto")[];
  /** Tile policies; `auto` is the planner's choice. */
  readonly policies: readonly string[];
  /** Winograd tiles; `auto` is the planner's choice. */
  readonly tiles: readonly string[];
  readonly caches: readonly CacheState[];
  /** What else every plan is asked for. */
  readonly planning?: Partial<PlanRequest>;
  readonly check: CheckMode | "none";
  readonly fill: FillKind;
  readonly seed: number;
  readonly protocol: TimingProtocol;
  /** The tag of the records; `wgconv` where absent. */
  readonly provider?: string;
}

/** One way to run a problem, on a cache that is hot, cold or each in turn. */
export interface BenchCase {
  readonly algorithm: AlgorithmName | "auto";
  readonly policy: string;
  readonly tile: string;
  /** Kernels of WinRS; the planner's choice where absent. */
  readonly pair?: string;
  readonly caches: readonly CacheState[];
}

/** Cases that compute the same from the same data: they share it, and are timed in turn. */
export interface BenchGroup {
  readonly problem: ConvProblem;
  readonly dtype: PlanRequest["dtype"];
  readonly layout: Layout;
  readonly cases: readonly BenchCase[];
}

/** The groups of a run, in order. A problem that is there twice is run once. */
export function benchGroups(bench: BenchPlan): BenchGroup[] {
  const cases = bench.algorithms.flatMap((algorithm) =>
    bench.policies.flatMap((policy) =>
      bench.tiles.map((tile) => ({ algorithm, policy, tile, caches: bench.caches }))
    )
  );
  const groups = new Map<string, BenchGroup>();
  for (const problem of bench.problems) {
    for (const dtype of bench.dtypes) {
      for (const layout of bench.layouts) {
        for (const op of bench.ops) {
          const group = { problem: { ...problem, op }, dtype, layout, cases };
          const key = [printDescriptor(problem), dtype, layout, op].join("|");
          if (!groups.has(key)) groups.set(key, group);
        }
      }
    }
  }
  return [...groups.values()];
}

/** Records that groups make. */
export function recordCount(groups: readonly BenchGroup[]): number {
  const each = groups.flatMap(({ cases }) => cases.map(({ caches }) => caches.length));
  return each.reduce((sum, count) => sum + count, 0);
}

/** What tells a case from all others of a run. */
export function caseId(
  { problem, dtype, layout }: Omit<BenchGroup, "cases">,
  { algorithm, policy, tile, pair = "auto" }: Omit<BenchCase, "caches">,
  cache: CacheState,
): string {
  return idOf([
    printDescriptor(problem),
    problem.op,
    layout,
    dtype,
    algorithm,
    policy,
    tile,
    pair,
    cache,
  ]);
}

/** {@linkcode caseId} of the case that a record is of. */
export function recordId(
  record:
    & Pick<ReadCase, "problem" | "op" | "layout" | "dtype" | "requested" | "algorithm">
    & Pick<ReadCase, "policy" | "tile" | "pair" | "cache">,
): string {
  const { problem, op, layout, dtype, requested, algorithm } = record;
  const { policy = "auto", tile = "auto", pair = "auto", cache = "hot" } = record;
  return idOf([problem, op, layout, dtype, requested ?? algorithm, policy, tile, pair, cache]);
}

function idOf(parts: readonly string[]): string {
  return parts.join("|");
}

/** The groups with what is not `done` yet. */
export function remainingGroups(
  groups: readonly BenchGroup[],
  done: ReadonlySet<string>,
): BenchGroup[] {
  return groups.flatMap((group) => {
    const cases = group.cases.flatMap((one) => {
      const caches = one.caches.filter((cache) => !done.has(caseId(group, one, cache)));
      return caches.length === 0 ? [] : [{ ...one, caches }];
    });
    return cases.length === 0 ? [] : [{ ...group, cases }];
  });
}

/**
 * Part `index` of `count` (from 1) of the groups: the largest first, each to the part with the least work so
 * far, so that parts end together. The same groups give the same parts everywhere.
 */
export function shardGroups(
  groups: readonly BenchGroup[],
  { index, count }: { readonly index: number; readonly count: number },
): BenchGroup[] {
  const work = new Array<number>(count).fill(0);
  const costs = groups.map(({ problem, cases }) => (directFlops(problem) + 1) * cases.length);
  const largest = groups.map((_, place) => place).sort((a, b) => costs[b]! - costs[a]! || a - b);
  const mine = new Set<number>();
  for (const place of largest) {
    const part = work.indexOf(Math.min(...work));
    work[part]! += costs[place]!;
    if (part === index - 1) mine.add(place);
  }
  return groups.filter((_, place) => mine.has(place));
}
