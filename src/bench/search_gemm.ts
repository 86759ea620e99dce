import { balanceOf, type Cut } from "../algorithms/cut.ts";
import { chooseGemm, cutGemm, mainloopTime } from "../algorithms/gemm/choose.ts";
import { chooseGemv } from "../algorithms/gemm/gemv.ts";
import { tryPlanGemm } from "../algorithms/gemm/plan.ts";
import { expectPlanned, isRefusal } from "../algorithms/refusal.ts";
import type { Balance, Schedule } from "../algorithms/schedule.ts";
import { TILE_POLICY_NAMES } from "../algorithms/choices.ts";
import { GEMV } from "../kernels/policy.ts";
import type { GemmArithmetic, GemmProblem } from "../problem/gemm_problem.ts";
import type { TuningRecord } from "../report/record.ts";
import { caseChecks } from "../run/case_checks.ts";
import type { Executor } from "../run/executor.ts";
import { gemmRequest, gemmSubject } from "../run/gemm_subject.ts";
import { type RanCase, type RunCase, runGroup, type RunOptions } from "./run_group.ts";
import type { HostOperands, Planning } from "../run/subject.ts";
import { tuningRecord } from "./tuning_file.ts";

/** What is asked of a cut. */
type Asked = Pick<Schedule, "splits" | "balance">;

/** A way to run a product. */
interface GemmRival extends RunCase {
  /** What the planner makes of what is asked. */
  readonly cut: { readonly splits: number; readonly balance: Exclude<Balance, "auto"> };
  /** Microseconds that the planner's model says. */
  readonly predicted: number;
  /** Whether the planner would take it. */
  readonly chosen: boolean;
}

/**
 * Every policy that fits the device: with the planner's number of splits for it, twice as many, and none, and with
 * stream-K; of few rows or columns as a matrix times vectors, too. The planner's choice comes first.
 *
 * @throws as `planGemm()`.
 */
export function gemmRivals(
  asked: Planning,
  problem: GemmProblem,
  arithmetic: GemmArithmetic,
): GemmRival[] {
  const { math, gemv } = expectPlanned(chooseGemm(gemmRequest(problem, arithmetic, asked)));
  const planning = math === "f16x3" ? { ...asked, math } : asked;
  // Vectors are multiplied as they are, whatever the main loop does.
  const request = (policy: string, choice: Asked = {}) =>
    gemmRequest(problem, arithmetic, {
      ...(policy === GEMV ? asked : planning),
      schedule: { ...(policy === GEMV ? asked : planning).schedule, policy, ...choice },
    });
  const keyOf = (cut: Cut) => `${cut.policy.name}/${cut.splits}/${cut.head}`;
  const rivals = new Map<string, GemmRival>();
  const addRival = (
    key: string,
    policy: string,
    choice: Asked,
    said: Pick<GemmRival, "cut" | "predicted" | "chosen">,
  ) => {
    if (rivals.has(key) || isRefusal(tryPlanGemm(request(policy, choice)))) return;
    const one = { algorithm: "gemm", policy, tile: "auto", caches: ["hot"] as const };
    rivals.set(key, { ...one, ...choice, ...said });
  };
  const addGemv = (choice: Asked): number => {
    const one = chooseGemv(request(GEMV, choice), () => Infinity);
    if (isRefusal(one) || one === undefined) return 0;
    const { shape: { splits }, time } = one;
    const cut = { splits, balance: splits > 1 ? "split-k" : "none" } as const;
    const chosen = gemv?.shape.splits === splits;
    addRival(`${GEMV}/${splits}`, GEMV, choice, { cut, predicted: time, chosen });
    return splits;
  };
  const best = gemv === undefined
    ? keyOf(expectPlanned(cutGemm(gemmRequest(problem, arithmetic, planning))))
    : undefined;
  const add = (name: string, choice: Asked) => {
    const asked = request(name, choice);
    const cut = cutGemm(asked);
    if (isRefusal(cut)) return;
    const { policy, splits } = cut;
    addRival(keyOf(cut), policy.name, choice, {
      cut: { splits, balance: balanceOf(cut) },
      predicted: mainloopTime(asked, cut),
      chosen: keyOf(cut) === best,
    });
  };
  if (best !== undefined) add(best.split("/")[0]!, {});
  const split = addGemv({});
  if (split > 0) { for (const splits of [2 * split, 1]) addGemv({ splits }); }
  for (const name of TILE_POLICY_NAMES) {
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
  const scale = predictionScale(timed);
  const fastest = timed.toSorted((one, other) => one.ms - other.ms);
  const winner = fastest.find(({ ran: { record: { verdict } } }) => verdict !== "fail");
  return fastest.map((one) => {
    const { ran, rival: { policy, cut, predicted, chosen } } = one;
    const predicted_gflops = subject.traits.flops / (predicted * scale) / 1e6;
    const said = { policy, ...cut, predicted_gflops, chosen, winner: one === winner };
    return tuningRecord(ran, executor.device, said);
  });
}

/** Milliseconds a predicted microsecond, such that the predictions' geometric mean is right. */
function predictionScale(
  timed: readonly { readonly rival: GemmRival; readonly ms: number }[],
): number {
  const logs = timed.map(({ rival, ms }) => Math.log(Math.max(ms, 1e-9) / rival.predicted));
  return Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
}
