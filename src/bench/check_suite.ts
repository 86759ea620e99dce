import type { DeviceModel } from "../algorithms/device/model.ts";
import { DEFAULT_LIMITS } from "../algorithms/plan.ts";
import { type CaseRecord, isUnproved } from "../report/record.ts";
import type { Executor } from "../run/executor.ts";
import { defaultFill } from "../run/operands.ts";
import { type Baseline, baselineCase, baselineKey, regressions } from "./baseline.ts";
import { benchGroups, type BenchPlan } from "./bench_plan.ts";
import type { Pattern } from "./pattern.ts";
import type { RanCase, RunHooks } from "./run_group.ts";
import { runSuite } from "./run_suite.ts";

/**
 * The device that a check plans for, whatever runs it: 32 multiprocessors with the figures that an H200 had when the baseline
 * was made. They are its own so that figures fitted anew, which cut products otherwise, change nothing of what a check
 * compares; who changes one updates the baseline.
 */
export const CHECK_DEVICE: DeviceModel = {
  name: "check",
  software: true,
  slowCompiler: true,
  multiprocessors: 32,
  registers: 65_536,
  threadResults: 256,
  warps: { busy: 12, power: 1.6, loop: { busy: 12, power: 1.6 }, onUnits: 8 },
  sharedBytes: 49_152,
  rates: {
    packed: 52,
    gathered: 46.5,
    correlated: { along: 44, across: 39 },
    sliced: { one: 37, oneWide: 35, two: 24.7 },
    slicedStore: { lines: 2.1, scattered: 0.44 },
    dot4: 96,
    planned: 42,
    direct: 5,
    depthwise: { along: 30, across: 20 },
    few: 31,
    fewGradient: 42,
    depthwiseGradient: { along: 30, across: 20 },
    stream: 4.5,
    filterStream: 2.3,
    winrs: {
      a2n1r1: 33.8,
      a4n2r3: 54.2,
      a4n3r2: 52.3,
      a8n3r6: 73.1,
      a8n4r5: 82.5,
      a8n5r4: 81.8,
      a8n6r3: 81.5,
      a8n7r2: 59.0,
      a16n5r12: 101.9,
      a16n6r11: 114.5,
      a16n7r10: 127.3,
      a16n8r9: 133.1,
      a16n9r8: 125.5,
    },
    winrsOverall: 80,
    winrsBuckets: 4,
  },
  times: { dispatch: 2.9, winrsKernel: 4, transform: 0, loads: 0 },
  shares: {
    policies: {
      tiny: 0.25,
      sliver: 0.3,
      flat: 0.6,
      narrow: 0.6,
      short: 0,
      slim: 0,
      block: 0,
      small: 0.86,
      wide: 0.96,
      tall: 1,
      broad: 0.93,
      large: 1.03,
      huge: 1.12,
    },
    gemv: { products: 0.38, apart: 0.36, draw: 2.1, short: 0.91 },
    words: 0.5,
    bytes: {},
    storedAcross: 0.92,
    dealtUnevenly: 0.6,
    tapRows: {},
    tapRings: {},
    dealtUnevenlyOnUnits: 0.6,
    packing: { single: 0.1, across: 0.08, narrow: 0 },
    strewn: 0.9,
    linear: 0.9,
    singleLoads: 1,
    depthwiseTaps: 10,
    fewLoad: 1.5,
    fewWarps: 5,
    fewSources: 0.19,
    gradientLoad: 8,
    gradientFar: 18,
    halfGroups: 1,
    single: 1,
    largeTransforms: 1,
    windows: { along: 0.8, across: 0.66 },
    matrices: { along: 0.7, across: 0.42 },
    depthRows: {},
    gatheredRows: {},
    halfTiles: 1,
    gathered: {},
    narrowLoads: 1,
    singleHalves: { gathered: 1, correlated: 1 },
    singles: {},
    fewHalves: { one: 1, four: 1 },
    gatheredWords: { lying: 1, linear: 1, packed: 1, one: 1 },
    f16x3: 0,
    halves: {},
    flushed: { kept: 0.5, spilled: 0.2, halves: 0.6 },
    sliced: {
      rowStores: { fours: 1, cut: 1, own: 1 },
      thin: 0.25,
      spilled: 0.2,
      policies: { lines: {}, images: {}, scattered: {} },
      few: { lines: {}, images: {}, scattered: {} },
    },
    winrsAcross: { large: 1.5, small: 1 },
    winrsImages: { large: 1.25, small: 1.18 },
    winrsHalf: 0.8,
    winrsUnits: {},
    winrsUneven: 0.05,
    winrsParts: 0.9,
  },
  costs: { element: 16, dispatch: 75e6, fill: 2, store: 0, storeAgain: 0, unitStore: 0 },
};

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
