import { predictPlanMs, rivalName } from "../algorithms/cost/auto.ts";
import { deviceOf } from "../algorithms/device/h200.ts";
import type { AlgorithmName, Plan } from "../algorithms/plan.ts";
import { supportedAlgorithms, tryPlanConv } from "../algorithms/planner.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import type { PlanRequest } from "../algorithms/request.ts";
import { type PlanMemory, planMemory } from "../algorithms/tensors.ts";
import { defined } from "../defined.ts";
import { variantTrait } from "../algorithms/choices.ts";
import { formatBytes, formatCount } from "../report/format.ts";
import { textTable } from "../report/table.ts";

/** What one algorithm would do, or why it would not. */
interface Option {
  readonly algorithm: AlgorithmName;
  readonly kernel?: string;
  readonly passes?: number;
  readonly workspace_bytes?: number;
  readonly memory_bytes?: PlanMemory;
  readonly predicted_ms?: number;
  readonly predicted_device?: string;
  readonly multiplications?: number;
  readonly reason?: string;
}

/** Every algorithm, the least memory first; those that cannot last. */
export function allPlans(request: PlanRequest): Option[] {
  const peak = ({ memory_bytes }: Option) => memory_bytes?.peak ?? Infinity;
  return supportedAlgorithms(request).map(({ name, reason }): Option => {
    if (reason !== undefined) return { algorithm: name, reason };
    const named = { ...request, algorithm: name };
    const plan = tryPlanConv(named);
    if (isRefusal(plan)) return { algorithm: name, reason: plan.text };
    const predicted = predictPlanMs(named, plan);
    return {
      algorithm: name,
      kernel: plan.kernel,
      passes: plan.passes.length,
      workspace_bytes: plan.workspaceBytes,
      memory_bytes: planMemory(plan, request.problem.op),
      ...(predicted === undefined
        ? {}
        : { predicted_ms: predicted, predicted_device: deviceOf(request).name }),
      multiplications: plan.multiplications,
    };
  }).toSorted((a, b) => peak(a) === peak(b) ? 0 : peak(a) - peak(b));
}

/** {@linkcode allPlans} as a table. */
export function allTable(rows: readonly Option[], room?: number): string {
  const columns = [
    { title: "algorithm" },
    { title: "kernel", whole: true },
    { title: "passes", align: "right", spare: 2 },
    { title: "memory", align: "right" },
    { title: "workspace", align: "right" },
    { title: "predicted ms", align: "right" },
    { title: "multiplications", align: "right", spare: 1 },
  ] as const;
  return textTable(
    columns,
    rows.map((row) =>
      row.reason === undefined
        ? [
          row.algorithm,
          row.kernel ?? "",
          String(row.passes),
          formatBytes(row.memory_bytes?.peak ?? 0),
          formatBytes(row.workspace_bytes ?? 0),
          row.predicted_ms === undefined ? "-" : row.predicted_ms.toPrecision(3),
          formatCount(row.multiplications ?? 0),
        ]
        : [row.algorithm, row.reason, "-", "-", "-", "-", "-"]
    ),
    undefined,
    room,
  );
}

/** What `auto` weighed against a plan, one line a rival: its time, or why it is none. */
export function rivalLines({ rivals = [] }: Plan): string[] {
  return rivals.slice(1).map((rival) => {
    const time = `${rival.predictedMs?.toPrecision(3)} ms`;
    const last = rival.algorithm === "direct" ? ", taken only where nothing else fits" : "";
    return `${rivalName(rival)}: ${rival.reason ?? time + last}`;
  });
}

/** The same as JSON. */
export function rivalRecords({ rivals, predictedDevice }: Plan) {
  return rivals?.map(({ algorithm, tile, pair, variant, amplification, predictedMs, reason }) => ({
    algorithm,
    ...defined({ tile, pair }),
    ...(variant === undefined ? {} : { variant: variantTrait(variant).slice(1) }),
    amplification,
    ...(predictedMs === undefined
      ? {}
      : { predicted_ms: predictedMs, predicted_device: predictedDevice }),
    ...(reason === undefined ? {} : { reason }),
  }));
}
