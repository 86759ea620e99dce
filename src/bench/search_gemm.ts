import { balanceOf, type Cut } from "../algorithms/cut.ts";
import type { Balance } from "../algorithms/balance.ts";
import { cutGemm, tryPlanGemm } from "../algorithms/gemm/plan.ts";
import type { Plan } from "../algorithms/plan.ts";
import { expectPlanned, isRefusal } from "../algorithms/refusal.ts";
import type { GpuDevice } from "../gpu/device.ts";
import {
  createPlanBuffers,
  execute,
  type PlanBuffers,
  type PreparedPlan,
  preparePlan,
} from "../gpu/execute.ts";
import type { MainLoopVariant } from "../kernels/main_loop_variant.ts";
import { TILE_POLICIES } from "../kernels/policy.ts";
import { gemmFlops, type GemmProblem } from "../problem/gemm_problem.ts";
import type { TimeRecord, TuningRecord } from "../report/record.ts";
import { type GemmChoice, gemmRequest, gemmSetup } from "../run/gemm_case.ts";
import { checkGemm, type GemmReference } from "../run/gemm_check.ts";
import type { GemmArithmetic } from "../problem/gemm_arithmetic.ts";
import { type GemmData, gemmReads, gemmResult } from "../run/gemm_operands.ts";
import { fetchResult, uploadOperands } from "../run/gpu_case.ts";
import type { ResultProjection } from "../run/projected.ts";
import { protocolRepeats, timeRecord, type TimingProtocol, warmUp } from "../run/timing.ts";

/** What results are checked against. */
export interface SearchReference {
  readonly outputs: GemmReference;
  readonly projection?: ResultProjection | undefined;
}

/** A way to run a product. */
export interface Candidate {
  readonly policy: string;
  readonly splits: number;
  readonly balance: Exclude<Balance, "auto">;
  /** In the planner's unit. */
  readonly cost: number;
  /** Whether the planner would take it. */
  readonly chosen: boolean;
  readonly plan: Plan;
}

/**
 * Every policy that fits the device: with the planner's number of splits for it, twice as many, and none, and with
 * stream-K. The planner's choice comes first.
 *
 * @throws as `planGemm()`.
 */
export function gemmCandidates(
  gpu: GpuDevice,
  problem: GemmProblem,
  arithmetic: GemmArithmetic,
  variant?: MainLoopVariant,
): Candidate[] {
  const request = (policy: string, choice: Pick<GemmChoice, "splits" | "balance"> = {}) =>
    gemmRequest(gpu, problem, arithmetic, {
      policy,
      ...choice,
      ...(variant === undefined ? {} : { variant }),
    });
  const keyOf = (cut: Cut) => `${cut.policy.name}/${cut.splits}/${cut.head}`;
  const best = expectPlanned(cutGemm(request("auto")));
  const candidates = new Map<string, Candidate>();
  const add = (name: string, choice: Pick<GemmChoice, "splits" | "balance">) => {
    const asked = request(name, choice);
    const cut = cutGemm(asked);
    if (isRefusal(cut)) return;
    const key = keyOf(cut);
    if (candidates.has(key)) return;
    const { policy, splits, cost } = cut;
    const balance = balanceOf(cut);
    const plan = tryPlanGemm(asked);
    if (isRefusal(plan)) return;
    const chosen = key === keyOf(best);
    candidates.set(key, { policy: policy.name, splits, balance, cost, chosen, plan });
  };
  add(best.policy.name, {});
  for (const { name } of TILE_POLICIES) {
    const whole = cutGemm(request(name, { balance: "none" }));
    const split = cutGemm(request(name, { balance: "split-k" }));
    if (isRefusal(whole) || isRefusal(split)) continue;
    const { splits } = split.cost < whole.cost ? split : whole;
    for (const asked of [splits, 2 * splits, 1]) add(name, { splits: asked });
    add(name, { balance: "stream-k" });
  }
  return [...candidates.values()];
}

/**
 * Times candidates in turn, a sample of each after the other, so that a change of clocks meets all alike,
 * and checks the result of each. They share operands and output; fastest first.
 */
export async function searchGemm(
  gpu: GpuDevice,
  problem: GemmProblem,
  arithmetic: GemmArithmetic,
  candidates: readonly Candidate[],
  operands: GemmData,
  reference: SearchReference | undefined,
  protocol: TimingProtocol,
  onProgress: (fraction: number) => void = () => {},
): Promise<TuningRecord[]> {
  using resources = new DisposableStack();
  const rivals = await prepareAll(gpu, problem, candidates, operands, resources);
  const device = gpu.info.adapter;
  const { op, dtype, problem: text } = gemmSetup(problem, arithmetic);
  const runs = [];
  for (const [place, { candidate, prepared, buffers }] of rivals.entries()) {
    // Another's result must not stand for this one's.
    const encoder = gpu.device.createCommandEncoder();
    encoder.clearBuffer(buffers.get("output"));
    gpu.device.queue.submit([encoder.finish()]);
    const first = await execute(gpu, prepared, { warmup: 1 });
    const result = await fetchResult(gpu, buffers, gemmResult(problem, arithmetic.dtype));
    const sums = candidate.plan.arithmetic;
    const sampled = reference && checkGemm(reference.outputs, result, sums);
    const checked = sampled
      ? await reference.projection?.check(sampled, { result, arithmetic: sums }) ?? sampled
      : { verdict: "none" as const };
    const estimateNs = Math.max(1, first.samplesNs[0]!);
    runs.push({ candidate, prepared, checked, estimateNs, samplesNs: [] as number[], clock: "" });
    onProgress((place + 1) / (2 * rivals.length));
  }
  for (let sample = 0; sample < protocol.samples; sample++) {
    for (const run of runs) {
      const { estimateNs } = run;
      const repeats = protocolRepeats(protocol, estimateNs / 1e6);
      // Waiting for the last sample let the clocks fall.
      if (sample === 0) await warmUp(gpu, [run.prepared], estimateNs);
      const timed = await execute(gpu, run.prepared, { repeats, warmup: repeats, estimateNs });
      run.samplesNs.push(...timed.samplesNs);
      run.clock = timed.clock;
    }
    onProgress(0.5 + (sample + 1) / (2 * protocol.samples));
  }
  const flops = gemmFlops(problem);
  const measured = runs.map(({ candidate, checked, samplesNs, clock, estimateNs }) => {
    const repeats = protocolRepeats(protocol, estimateNs / 1e6);
    return { candidate, checked, time: timeRecord(samplesNs, repeats, clock) };
  });
  const scale = costScale(measured);
  return measured.toSorted((one, other) => one.time.median - other.time.median)
    .map(({ candidate, checked, time }) => ({
      schema: 1,
      kind: "tuning",
      problem: text,
      op,
      device,
      dtype,
      kernel: candidate.plan.kernel,
      policy: candidate.policy,
      splits: candidate.splits,
      balance: candidate.balance,
      time_ms: time,
      gflops: flops / time.median / 1e6,
      predicted_gflops: flops / (candidate.cost * scale) / 1e6,
      chosen: candidate.chosen,
      verdict: checked.verdict,
      ...("message" in checked && checked.message ? { message: checked.message } : {}),
    }));
}

/** Milliseconds a unit of cost, such that the predictions' geometric mean is right. */
function costScale(
  measured: readonly { candidate: Candidate; time: TimeRecord }[],
): number {
  const logs = measured.map(({ candidate, time }) =>
    Math.log(Math.max(time.median, 1e-9) / candidate.cost)
  );
  return Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
}

/** A candidate on the device. */
interface Rival {
  readonly candidate: Candidate;
  readonly buffers: PlanBuffers;
  readonly prepared: PreparedPlan;
}

async function prepareAll(
  gpu: GpuDevice,
  problem: GemmProblem,
  candidates: readonly Candidate[],
  operands: GemmData,
  resources: DisposableStack,
): Promise<Rival[]> {
  const rivals: Rival[] = [];
  let shared: Record<string, GPUBuffer> | undefined;
  for (const candidate of candidates) {
    const buffers = resources.use(createPlanBuffers(gpu, candidate.plan, shared));
    if (shared === undefined) {
      await uploadOperands(gpu, buffers, operands);
      const roles = [...gemmReads(problem), "output" as const];
      shared = Object.fromEntries(roles.map((role) => [role, buffers.get(role)]));
    }
    const prepared = resources.use(await preparePlan(gpu, candidate.plan, buffers));
    rivals.push({ candidate, buffers, prepared });
  }
  return rivals;
}
