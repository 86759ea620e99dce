import { DEFAULT_LIMITS } from "../algorithms/plan.ts";
import { type CaseRecord, isUnproved } from "../report/record.ts";
import { type Baseline, baselineCase, baselineKey, regressions } from "./baseline.ts";
import type { Executor } from "../run/executor.ts";
import { defaultFill } from "../run/operands.ts";
import type { Pattern } from "./pattern.ts";
import type { RanCase, RunHooks } from "./run_group.ts";
import { benchGroups, type BenchPlan } from "./bench_plan.ts";
import { CHECK_DEVICE } from "./check_device.ts";
import { runSuite } from "./run_suite.ts";

/**
 * `pass`; `new`: passes, and the baseline does not have it; `regressed`: passes the gate, but was more exact;
 * `fail`: does not pass the gate; `error`: did not run to its end; `empty`: its result has no elements.
 */
export type CheckStatus = "pass" | "new" | "regressed" | "fail" | "error" | "empty";

/** What became of one case of a check. */
export interface CheckResult {
  readonly key: string;
  readonly status: CheckStatus;
  /** Why it did not pass, as clauses. */
  readonly reasons: readonly string[];
  readonly record: CaseRecord;
  /** Its tensors, where it ran. */
  readonly ran?: RanCase;
  readonly seconds: number;
}

/** Two calls a case: the second one must not spoil what the first left. */
const PROTOCOL = { samples: 1, fillMs: 0 };
/**
 * Plans are made for the limits that every device has and for a device of their own, so that every device runs the same
 * kernels and one baseline serves all.
 */
const PLANNING = { limits: DEFAULT_LIMITS, device: CHECK_DEVICE };

/** What a check covers. */
export type CheckPlan =
  & Pick<BenchPlan, "problems" | "ops" | "layouts" | "algorithms" | "policies" | "tiles">
  & Pick<BenchPlan, "fill" | "seed">
  & {
    /** f32 where absent. */
    readonly dtypes?: BenchPlan["dtypes"];
    /** What the descriptors of its problems have in common; the baseline's others are no concern of the check. */
    readonly filter?: Pattern | undefined;
  };

/** The run that a check is. */
export function checkBench({ filter: _, ...plan }: CheckPlan): BenchPlan {
  return {
    dtypes: ["f32"],
    ...plan,
    caches: ["hot"],
    planning: PLANNING,
    check: "full",
    protocol: PROTOCOL,
  };
}

/**
 * Runs every case and holds it against the gate, and against the baseline where there is one.
 *
 * @param open Opens what computes: at the start, and again after it was lost.
 */
export async function* checkSuite(
  plan: CheckPlan,
  baseline: Baseline | undefined,
  open: () => Promise<Executor>,
  onCase: (index: number, count: number, what: string) => void = () => {},
  hooks: Pick<RunHooks, "alterPlan" | "onSkip"> = {},
): AsyncGenerator<CheckResult, void, undefined> {
  const bench = checkBench(plan);
  let ran: RanCase | undefined;
  let start = performance.now();
  const records = runSuite(bench, benchGroups(bench), open, onCase, {
    ...hooks,
    onRan: (one) => void (ran = one),
  });
  for await (const record of records) {
    const now = performance.now();
    const own = ran?.record === record ? { ran } : {};
    yield { ...verdictOf(record, baseline), record, ...own, seconds: (now - start) / 1000 };
    start = now;
    ran = undefined;
  }
}

function verdictOf(
  record: CaseRecord,
  baseline: Baseline | undefined,
): Pick<CheckResult, "key" | "status" | "reasons"> {
  const key = baselineKey(record);
  const { verdict, accuracy, message } = record;
  if (verdict === "error") return { key, status: "error", reasons: [message ?? "did not run"] };
  if (isUnproved(record)) return { key, status: "fail", reasons: [message ?? "wrong"] };
  if (verdict === "none") return { key, status: "empty", reasons: [message ?? "not checked"] };
  const was = baseline?.cases[key];
  if (accuracy === null || baseline === undefined) return { key, status: "pass", reasons: [] };
  if (was === undefined) return { key, status: "new", reasons: [] };
  const reasons = regressions(accuracy, was);
  return { key, status: reasons.length === 0 ? "pass" : "regressed", reasons };
}

/** The baseline's cases that a check should have run and did not. */
export function missingCases(
  plan: CheckPlan,
  baseline: Baseline,
  results: readonly CheckResult[],
): string[] {
  const ran = new Set(results.map(({ key }) => key));
  return Object.keys(baseline.cases).filter((key) => !ran.has(key) && isCovered(plan, key));
}

/** Whether a baseline's case is among the operations, layouts, algorithms, policies, tiles and names of a check. */
function isCovered(plan: CheckPlan, key: string): boolean {
  const { algorithms, policies, tiles, filter } = plan;
  const runs = plan.problems.map(({ run = {} }) => run);
  const ops = [...plan.ops, ...runs.flatMap((run) => run.ops ?? [])];
  const layouts = [...plan.layouts, ...runs.flatMap((run) => run.layouts ?? [])];
  const dtypes = [
    ...plan.dtypes ?? ["f32"],
    ...runs.flatMap(({ types = [] }) => types.map(({ dtype }) => dtype)),
  ];
  const said = (value: string) => value === "auto" ? "" : ` ${value}`;
  return ops.some((op) =>
    layouts.some((layout) =>
      algorithms.some((algorithm) =>
        policies.some((policy) =>
          tiles.some((tile) => {
            const choice = `${algorithm}${said(policy)}${said(tile)}`;
            return dtypes.some((dtype) => {
              const prefix = `${op} ${layout} ${dtype} ${choice} `;
              const descriptor = key.slice(prefix.length);
              return key.startsWith(prefix) && /^(g\d+)?mb\d/.test(descriptor) &&
                (filter?.test(descriptor) ?? true);
            });
          })
        )
      )
    )
  );
}

/**
 * The baseline that a check's results make: those that pass the gate take the place of the ones before, those that
 * do not leave them; cases that the check did not cover stay, missing ones go.
 */
export function updatedBaseline(
  plan: CheckPlan,
  before: Baseline | undefined,
  results: readonly CheckResult[],
  made: Pick<Baseline, "version" | "adapter">,
): Baseline {
  const cases = { ...before?.cases };
  if (before) { for (const key of missingCases(plan, before, results)) delete cases[key]; }
  for (const { key, status, record: { accuracy } } of results) {
    if (accuracy && status !== "fail" && status !== "error") cases[key] = baselineCase(accuracy);
  }
  const { fill = defaultFill("f32"), seed } = plan;
  return { ...before, schema: 1, kind: "baseline", ...made, fill, seed, cases };
}
