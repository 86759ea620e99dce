import { rankRivals, requestFor } from "../../src/algorithms/cost/auto.ts";
import type { AlgorithmName, Plan } from "../../src/algorithms/plan.ts";
import { tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal, type Planned } from "../../src/algorithms/refusal.ts";
import { algorithmNames } from "../../src/algorithms/registry.ts";
import type { Kernel } from "../../src/kernels/kernel.ts";
import type { ConvDType, ConvProblem, Operation } from "../../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import type { GemmDType, GemmProblem } from "../../src/problem/gemm_problem.ts";
import { gemmSubject } from "../../src/run/gemm_subject.ts";
import type { Planning } from "../../src/run/subject.ts";
import { filterLayoutFor, type Layout } from "../../src/tensor/layout.ts";

/** What is planned: the cross product of problems and every list. */
export interface Asked {
  readonly problems: readonly ConvProblem[];
  readonly ops: readonly Operation[];
  readonly layouts: readonly Layout[];
  readonly dtypes: readonly ConvDType[];
  /** `rivals`: all that `auto` may take. */
  readonly algorithms: readonly (AlgorithmName | "auto" | "rivals")[];
  /** The planner's choice where absent. */
  readonly tile?: string | undefined;
  readonly pair?: string | undefined;
}

/** A kernel of plans. */
export interface PlannedKernel {
  readonly kernel: Kernel;
  /** How many of the plans run it. */
  plans: number;
  /** Whether it does the products of one. */
  products: boolean;
  /** Whether `auto` takes it, or might on another device or with another limit. */
  auto: boolean;
}

/** The distinct kernels of plans, in the order in which they come up. */
export class KernelList {
  readonly kernels = new Map<string, PlannedKernel>();
  /** Plans that were refused, by reason. */
  readonly refused = new Map<string, number>();

  /** Adds what a plan runs; `auto` says whether `auto` may take it. */
  add(plan: Planned<Plan>, auto: boolean): void {
    if (isRefusal(plan)) {
      this.refused.set(plan.text, (this.refused.get(plan.text) ?? 0) + 1);
      return;
    }
    const multiplying = new Set(
      plan.passes.filter((pass) => pass.multiplications > 0).map((pass) => pass.kernel.name),
    );
    const kernels = new Map(plan.passes.map(({ kernel }) => [kernel.name, kernel]));
    for (const kernel of kernels.values()) {
      const known = this.kernels.get(kernel.name) ??
        { kernel, plans: 0, products: false, auto: false };
      known.plans++;
      known.products ||= multiplying.has(kernel.name);
      known.auto ||= auto;
      this.kernels.set(kernel.name, known);
    }
  }
}

/** The kernels of convolutions' plans. */
export function convKernels(asked: Asked, planning: Planning): KernelList {
  const list = new KernelList();
  const { tile, pair } = asked;
  const { schedule = {} } = planning;
  const forced = [...Object.values(schedule), tile, pair].some((choice) => choice !== undefined);
  for (const shape of asked.problems) {
    for (const op of asked.ops) {
      for (const layout of asked.layouts) {
        for (const dtype of asked.dtypes) {
          const request = {
            ...planning,
            ...(tile === undefined ? {} : { tile }),
            ...(pair === undefined ? {} : { pair }),
            problem: { ...shape, op },
            dtype,
            layout,
            filterLayout: filterLayoutFor(layout),
            epilogue: NO_EPILOGUE,
            algorithm: "auto",
          } as const;
          const rivals = rankRivals(request).filter(({ reason }) => reason === undefined);
          for (const algorithm of asked.algorithms) {
            if (algorithm === "rivals") {
              for (const rival of rivals) {
                list.add(tryPlanConv(requestFor(request, rival)), !forced);
              }
              continue;
            }
            const weighed = algorithm === "auto" ||
              rivals.some((rival) => rival.algorithm === algorithm);
            list.add(tryPlanConv({ ...request, algorithm }), weighed && !forced);
          }
        }
      }
    }
  }
  return list;
}

/** The kernels of products' plans. */
export function gemmKernels(
  problems: readonly GemmProblem[],
  dtypes: readonly GemmDType[],
  planning: Planning,
): KernelList {
  const list = new KernelList();
  for (const problem of problems) {
    for (const dtype of dtypes) {
      list.add(
        gemmSubject(problem, { dtype }).planner.plan(planning),
        planning.schedule?.policy === undefined,
      );
    }
  }
  return list;
}

/** What `--algorithm` may say. */
export function algorithmWords(): string[] {
  return ["auto", "rivals", ...algorithmNames()];
}
