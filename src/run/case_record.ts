import type { Plan } from "../algorithms/plan.ts";
import { planMemory } from "../algorithms/tensors.ts";
import { defined } from "../defined.ts";
import type {
  AccuracyRecord,
  CaseRecord,
  ProjectionRecord,
  StreamRecord,
  TimeRecord,
  Verdict,
} from "../report/record.ts";

/** What a case computes; fields as in {@linkcode CaseRecord}. */
export interface CaseTraits {
  readonly problem: string;
  readonly op: string;
  readonly flops: number;
  readonly dtype: string;
  readonly outDtype?: string;
  readonly layout: string;
  readonly filterLayout?: string;
  readonly accumulate?: string;
  readonly epilogue?: string;
}

/** What is known of a case before it runs. */
export interface CaseSetup extends CaseTraits {
  /** As asked for; the plan's own name takes its place. */
  readonly algorithm: string;
  /** Policy, tile, pair of kernels and segments that were asked for, where they are not the planner's choice. */
  readonly policy?: string;
  readonly tile?: string;
  readonly pair?: string;
  readonly segments?: number;
  readonly cache?: "hot" | "cold";
  /** `wgconv` where absent. */
  readonly provider?: string;
  /** Of others' results: what they claim to be computed in, and what explains them. */
  readonly claimed?: {
    readonly math?: string;
    readonly arithmetic: string;
    readonly diagnosis?: string;
  };
  readonly device: string;
  /** Fill and seed of made data. */
  readonly made?: { readonly fill: string; readonly seed: number };
  /** What the output's gradient was multiplied by. */
  readonly lossScale?: number;
}

interface CaseOutcome {
  readonly plan?: Plan | undefined;
  readonly time?: TimeRecord;
  readonly accuracy?: AccuracyRecord;
  readonly projection?: ProjectionRecord;
  readonly stream?: StreamRecord;
  readonly verdict: Verdict;
  readonly message?: string;
}

/** The record of a case. */
export function caseRecord(setup: CaseSetup, outcome: CaseOutcome): CaseRecord {
  const {
    flops,
    made,
    filterLayout,
    outDtype,
    accumulate,
    epilogue,
    policy,
    tile,
    pair,
    segments,
    cache,
  } = setup;
  const { plan, time, accuracy, projection, stream, verdict, message } = outcome;
  return {
    schema: 1,
    kind: "case",
    provider: setup.provider ?? "wgconv",
    problem: setup.problem,
    op: setup.op,
    algorithm: plan?.algorithm ?? setup.algorithm,
    ...(plan && plan.algorithm !== setup.algorithm ? { requested: setup.algorithm } : {}),
    ...defined({ policy, tile, pair, segments }),
    ...(plan?.measured ? { choice: "measured" } as const : {}),
    ...defined({ cache }),
    kernel: plan?.kernel ?? null,
    device: setup.device,
    dtype: setup.dtype,
    ...defined({ out_dtype: outDtype, accumulate }),
    ...(plan?.arithmetic.math === undefined ? {} : { math: plan.arithmetic.math }),
    ...setup.claimed,
    layout: setup.layout,
    ...defined({ filter_layout: filterLayout, epilogue }),
    time_ms: time ?? null,
    gflops: time && time.median > 0 ? flops / time.median / 1e6 : null,
    flops,
    multiplications: plan?.multiplications ?? null,
    workspace_bytes: plan?.workspaceBytes ?? null,
    memory_bytes: plan ? planMemory(plan, setup.op) : null,
    accuracy: accuracy ?? null,
    ...defined({ projection, stream }),
    verdict,
    ...(message === undefined ? {} : { message }),
    ...(made ?? {}),
    ...(setup.lossScale === undefined ? {} : { loss_scale: setup.lossScale }),
  };
}
