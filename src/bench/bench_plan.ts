import type { AlgorithmName } from "../algorithms/plan.ts";
import type { ConvDType, ConvOutDType, Operation } from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { type GemmArithmetic, type GemmProblem, isShort } from "../problem/gemm_problem.ts";
import type { ReadCase } from "../report/record_schema.ts";
import type { CaseTraits } from "../run/case_record.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { RunCase, RunGroup, RunOptions } from "./run_group.ts";
import { featuresOf, type Subject } from "../run/subject.ts";
import { filterLayoutFor, type Layout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { SuiteProblem, SuiteProduct } from "./suite.ts";
import type { CacheState } from "../run/runner.ts";

/** What a run over convolutions covers: the cross product of problems and of every list. */
export interface BenchPlan extends RunOptions {
  /** A problem's own `run` takes the place of `ops`, `dtypes` and `layouts`. */
  readonly problems: readonly SuiteProblem[];
  readonly ops: readonly Operation[];
  readonly dtypes: readonly ConvDType[];
  /** Of results; the operands' where absent. */
  readonly outDtype?: ConvOutDType | undefined;
  /** What sums are multiplied by where results are int8. */
  readonly scale?: number | undefined;
  readonly layouts: readonly Layout[];
  readonly algorithms: readonly (AlgorithmName | "auto")[];
  /** Tile policies; `auto` is the planner's choice. */
  readonly policies: readonly string[];
  /** Winograd tiles; `auto` is the planner's choice. */
  readonly tiles: readonly string[];
  readonly caches: readonly CacheState[];
}

/** The groups of a run over convolutions, in order. A problem that is there twice is run once. */
export function benchGroups(bench: BenchPlan): RunGroup[] {
  const cases = bench.algorithms.flatMap((algorithm) =>
    bench.policies.flatMap((policy) =>
      bench.tiles.map((tile) => ({ algorithm, policy, tile, caches: bench.caches }))
    )
  );
  const types = bench.dtypes.map((dtype) => ({ dtype, outDtype: bench.outDtype }));
  const subjects = bench.problems.flatMap(({ run = {}, ...problem }) =>
    (run.types ?? types).flatMap(({ dtype, outDtype }) =>
      (run.layouts ?? bench.layouts).flatMap((layout) =>
        (run.ops ?? bench.ops).map((op) =>
          convSubject({
            problem: { ...problem, op },
            layout,
            filterLayout: filterLayoutFor(layout),
            dtype,
            outDtype,
            ...(bench.scale === undefined
              ? {}
              : { epilogue: { ...NO_EPILOGUE, scale: bench.scale } }),
          })
        )
      )
    )
  );
  return distinct(subjects).map((subject) => ({ subject, cases }));
}

/** The groups of a run over products, as `benchGroups()` makes them. */
export function gemmGroups(
  problems: readonly GemmProblem[],
  arithmetic: GemmArithmetic,
  caches: readonly CacheState[],
): RunGroup[] {
  const cases = [{ algorithm: "gemm", policy: "auto", tile: "auto", caches }];
  return distinct(problems.map((problem) => gemmSubject(problem, arithmetic)))
    .map((subject) => ({ subject, cases }));
}

/** The groups of a network's products beside its convolutions, in the types of the run or their own. */
export function productGroups(
  { dtypes, outDtype, caches }: Pick<BenchPlan, "dtypes" | "outDtype" | "caches">,
  products: readonly SuiteProduct[],
): RunGroup[] {
  const types = dtypes.map((dtype) => ({ dtype, outDtype }));
  return products.flatMap(({ run, ...problem }) =>
    (run?.types ?? types).flatMap((type) => {
      const out = isShort(type.dtype) && type.outDtype === "f32" ? type.outDtype : undefined;
      return gemmGroups([problem], { dtype: type.dtype, accumulate: "f32", outDtype: out }, caches);
    })
  );
}

/** The groups as the CPU runs them: it has one way, and no caches to speak of. */
export function referenceGroups(groups: readonly RunGroup[]): RunGroup[] {
  const cases = [{
    algorithm: "reference",
    policy: "auto",
    tile: "auto",
    caches: ["hot"] as const,
  }];
  return groups.map(({ subject }) => ({ subject, cases }));
}

/** Features that a device needs for all groups of a run. */
export function groupFeatures(groups: readonly RunGroup[]): string[] {
  return [...new Set(groups.flatMap(({ subject }) => featuresOf(subject)))];
}

/** Subjects without those that have been before. */
function distinct(subjects: readonly Subject[]): Subject[] {
  const byId = new Map<string, Subject>();
  for (const subject of subjects) {
    const id = subjectId({ ...subject.traits, outDtype: subject.traits.outDtype });
    if (!byId.has(id)) byId.set(id, subject);
  }
  return [...byId.values()];
}

/** Records that groups make. */
export function recordCount(groups: readonly RunGroup[]): number {
  const each = groups.flatMap(({ cases }) => cases.map(({ caches }) => caches.length));
  return each.reduce((sum, count) => sum + count, 0);
}

/** What tells what is computed from all else of a run. */
function subjectId(
  { problem, op, layout, dtype, outDtype, accumulate, epilogue }:
    & Pick<CaseTraits, "problem" | "op" | "layout" | "dtype">
    & {
      readonly outDtype: string | undefined;
      readonly accumulate?: string | undefined;
      readonly epilogue?: string | undefined;
    },
): string {
  return [problem, op, layout, dtype, outDtype, accumulate, epilogue].join("|");
}

/** What tells a case from all others of a run. */
export function caseId(
  { subject }: Pick<RunGroup, "subject">,
  { algorithm, policy, tile, pair = "auto", segments }: Omit<RunCase, "caches">,
  cache: CacheState,
): string {
  return [
    subjectId({ ...subject.traits, outDtype: subject.traits.outDtype }),
    algorithm,
    policy,
    tile,
    pair,
    segments ?? "auto",
    cache,
  ]
    .join("|");
}

/** {@linkcode caseId} of the case that a record is of. */
export function recordId(
  record:
    & Pick<
      ReadCase,
      "problem" | "op" | "layout" | "dtype" | "out_dtype" | "accumulate" | "epilogue"
    >
    & Pick<ReadCase, "requested" | "algorithm" | "policy" | "tile" | "pair" | "segments" | "cache">,
): string {
  const { requested, algorithm, policy = "auto", tile = "auto", pair = "auto" } = record;
  const { segments = "auto", cache = "hot" } = record;
  return [
    subjectId({ ...record, outDtype: record.out_dtype }),
    requested ?? algorithm,
    policy,
    tile,
    pair,
    segments,
    cache,
  ].join("|");
}

/** The groups with what is not `done` yet. */
export function remainingGroups(
  groups: readonly RunGroup[],
  done: ReadonlySet<string>,
): RunGroup[] {
  return groups.flatMap((group) => {
    const cases = group.cases.flatMap((one) => {
      const caches = one.caches.filter((cache) => !done.has(caseId(group, one, cache)));
      return caches.length === 0 ? [] : [{ ...one, caches }];
    });
    return cases.length === 0 ? [] : [{ ...group, cases }];
  });
}

/** Whether two subjects' tensors of the same part are the same. */
export function sharesData({ traits: one }: Subject, { traits: other }: Subject): boolean {
  return one.problem === other.problem && one.layout === other.layout && one.dtype === other.dtype;
}

/** Seconds that groups take one after the other: a fit to cases on an H100, warmed up and checked by samples. */
function secondsOf(groups: readonly RunGroup[]): number {
  const made = new Map<string, number>();
  let seconds = 0;
  for (const { subject: { operands, shape, traits }, cases } of groups) {
    let moved = elementCount(shape);
    for (const one of operands) {
      const elements = elementCount(one.shape);
      moved += elements;
      made.set(one.role, elements);
    }
    seconds += cases.length * (1.3 + 1e-8 * moved + 1e-11 * traits.flops);
  }
  return [...made.values()].reduce((sum, elements) => sum + 2e-8 * elements, seconds);
}

/**
 * Part `index` of `count` (from 1) of the groups. The same groups give the same parts everywhere.
 *
 * Parts end together: the largest goes first, each to the part with the least work so far. What shares its data stays
 * together, so that it is made once, unless there is too little of it to go round.
 */
export function shardGroups(
  groups: readonly RunGroup[],
  { index, count }: { readonly index: number; readonly count: number },
): RunGroup[] {
  const bundles: RunGroup[][] = [];
  for (const group of groups) {
    const last = bundles.at(-1);
    if (last !== undefined && sharesData(last[0]!.subject, group.subject)) last.push(group);
    else bundles.push([group]);
  }
  const together = deal(bundles, count);
  const apart = deal(groups.map((group) => [group]), count);
  const mine = new Set((together.longest <= apart.longest ? together : apart).parts[index - 1]);
  return groups.filter((group) => mine.has(group));
}

/** Bundles of groups in `count` parts, and the seconds of the longest one. */
function deal(bundles: readonly (readonly RunGroup[])[], count: number) {
  const work = new Array<number>(count).fill(0);
  const parts = work.map((): RunGroup[] => []);
  const largest = bundles
    .map((bundle) => ({ bundle, seconds: secondsOf(bundle) }))
    .sort((a, b) => b.seconds - a.seconds);
  for (const { bundle, seconds } of largest) {
    const part = work.indexOf(Math.min(...work));
    work[part]! += seconds;
    parts[part]!.push(...bundle);
  }
  return { parts, longest: Math.max(...work) };
}
