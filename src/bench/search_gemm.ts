import { balanceOf, type Cut } from "../algorithms/cut.ts";
import type { Balance } from "../algorithms/balance.ts";
import { cutGemm } from "../algorithms/gemm/cut.ts";
import { chooseMath } from "../algorithms/gemm/math.ts";
import { tryPlanGemm } from "../algorithms/gemm/plan.ts";
import { expectPlanned, isRefusal } from "../algorithms/refusal.ts";
import { MATRIX_POLICY_NAMES } from "../kernels/matrix_policies.ts";
import { TILE_POLICIES } from "../kernels/policy.ts";
import type { GemmArithmetic } from "../problem/gemm_arithmetic.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import type { TuningRecord } from "../report/record.ts";
import { caseChecks } from "../run/case_checks.ts";
import type { Executor } from "../run/executor.ts";
import { gemmRequest, gemmSubject } from "../run/gemm_subject.ts";
import { type RanCase, type RunCase, runGroup, type RunOptions } from "../run/run_group.ts";
import type { HostOperands, Planning } from "../run/subject.ts";
import { tuningRecord } from "./tuning_record.ts";

/** What is asked of a cut. */
type Asked = Pick<Planning, "splits" | "balance">;

/** A way to run a product. */
export interface GemmRival extends RunCase {
  /** What the planner makes of what is asked. */
  readonly cut: { readonly splits: number; readonly balance: Exclude<Balance, "auto"> };
  /** In the planner's unit. */
  readonly cost: number;
  /** Whether the planner would take it. */
  readonly chosen: boolean;
}

/**
 * Every policy that fits the device: with the planner's number of splits for it, twice as many, and none, and with
 * stream-K. The planner's choice comes first.
 *
 * @throws as `planGemm()`.
 */
export function gemmRivals(
  asked: Planning,
  problem: GemmProblem,
  arithmetic: GemmArithmetic,
): GemmRival[] {
  const math = expectPlanned(chooseMath(gemmRequest(problem, arithmetic, asked)));
  const planning = math === "f16x3" ? { ...asked, math } : asked;
  const request = (policy: string, choice: Asked = {}) =>
    gemmRequest(problem, arithmetic, { ...planning, policy, ...choice });
  const keyOf = (cut: Cut) => `${cut.policy.name}/${cut.splits}/${cut.head}`;
  const best = expectPlanned(cutGemm(gemmRequest(problem, arithmetic, planning)));
  const rivals = new Map<string, GemmRival>();
  const add = (name: string, choice: Asked) => {
    const asked = request(name, choice);
    const cut = cutGemm(asked);
    if (isRefusal(cut)) return;
    const key = keyOf(cut);
    if (rivals.has(key)) return;
    const { policy, splits, cost } = cut;
    const balance = balanceOf(cut);
    if (isRefusal(tryPlanGemm(asked))) return;
    const chosen = key === keyOf(best);
    const one = { algorithm: "gemm", policy: policy.name, tile: "auto", caches: ["hot"] as const };
    rivals.set(key, { ...one, ...choice, cut: { splits, balance }, cost, chosen });
  };
  add(best.policy.name, {});
  for (const name of [...TILE_POLICIES.map(({ name }) => name), ...MATRIX_POLICY_NAMES]) {
    const whole = cutGemm(request(name, { balance: "none" }));
    const split = cutGemm(request(name, { balance: "split-k" }));
    if (isRefusal(whole) || isRefusal(split)) continue;
    const { splits } = split.cost < whole.cost ? split : whole;
    for (const asked of [splits, 2 * splits, 1]) add(name, { splits: asked });
    add(name, { balance: "stream-k" });
  }
  return [...rivals.values()];
}

/** Times rivals in turn, and checks the result of each; fastest first. */
export async function searchGemm(
  executor: Executor,
  problem: GemmProblem,
  arithmetic: GemmArithmetic,
  rivals: readonly GemmRival[],
  operands: HostOperands,
  run: RunOptions,
): Promise<TuningRecord[]> {
  const subject = gemmSubject(problem, arithmetic);
  const mode = run.check === "none" ? "sample" : run.check;
  const checks = caseChecks({ subject, operands, mode, linear: true, seed: run.seed }, false);
  const timed: { readonly ran: RanCase; readonly rival: GemmRival; readonly ms: number }[] = [];
  const onRan = (ran: RanCase) => {
    const rival = rivals.find((one) => one === ran.one)!;
    timed.push({ ran, rival, ms: ran.record.time_ms!.median });
  };
  const data = { operands, ...checks };
  for await (
    const _ of runGroup(executor, run, { subject, cases: rivals }, () => data, { onRan })
  );
  const scale = costScale(timed);
  const fastest = timed.toSorted((one, other) => one.ms - other.ms);
  const winner = fastest.find(({ ran: { record: { verdict } } }) => verdict !== "fail");
  return fastest.map((one) => {
    const { ran, rival: { policy, cut, cost, chosen } } = one;
    const predicted_gflops = subject.traits.flops / (cost * scale) / 1e6;
    const said = { policy, ...cut, predicted_gflops, chosen, winner: one === winner };
    return tuningRecord(ran, executor.device, said);
  });
}

/** Milliseconds a unit of cost, such that the predictions' geometric mean is right. */
function costScale(timed: readonly { readonly rival: GemmRival; readonly ms: number }[]): number {
  const logs = timed.map(({ rival, ms }) => Math.log(Math.max(ms, 1e-9) / rival.cost));
  return Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
}
