import { variantTrait } from "../algorithms/choices.ts";
import { planTime, predictPlanMs, rivalName } from "../algorithms/cost/auto.ts";
import { deviceOf } from "../algorithms/device/h200.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import type { AlgorithmName, Plan } from "../algorithms/plan.ts";
import { supportedAlgorithms, tryPlanConv } from "../algorithms/planner.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import type { PlanRequest } from "../algorithms/request.ts";
import { type PlanMemory, planMemory } from "../algorithms/tensors.ts";
import { benchGroups, productGroups } from "../bench/bench_plan.ts";
import { defined } from "../defined.ts";
import type { ConvDType, ConvOutDType, Operation } from "../problem/conv_problem.ts";
import { caseLabel } from "../report/case_key.ts";
import { formatBytes, formatCount, formatMilliseconds, formatShare } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import type { Planning, Subject } from "../run/subject.ts";
import type { Layout } from "../tensor/layout.ts";
import type { ReadSuites } from "./suite_option.ts";
import { occurrences } from "../problem/occurrences.ts";

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

/** How a network's layers are planned. */
interface ModelPlanning {
  readonly op: Operation;
  readonly dtype: ConvDType;
  readonly outDtype?: ConvOutDType | undefined;
  readonly layout: Layout;
  readonly planning: Planning & { readonly device: DeviceModel };
}

/** What would run of a layer. */
interface PlannedLayer {
  readonly problem: string;
  readonly op: string;
  readonly dtype: string;
  /** How often the network has it. */
  readonly count: number;
  readonly algorithm?: string;
  readonly kernel?: string;
  /** Of one. */
  readonly predicted_ms?: number;
  /** Why nothing would. */
  readonly reason?: string;
}

/** Plans every layer of networks. */
export function planLayers(
  { problems, products }: Pick<ReadSuites, "problems" | "products">,
  { op, dtype, outDtype, layout, planning }: ModelPlanning,
): PlannedLayer[] {
  const bench = {
    problems,
    ops: [op],
    dtypes: [dtype],
    outDtype,
    layouts: [layout],
    algorithms: ["auto" as const],
    policies: ["auto"],
    tiles: ["auto"],
    caches: ["hot" as const],
    protocol: { samples: 1, fillMs: 0 },
    check: "none" as const,
    seed: 1,
  };
  return [...benchGroups(bench), ...productGroups(bench, products)]
    .map(({ subject }) => planLayer(subject, planning));
}

function planLayer(subject: Subject, planning: ModelPlanning["planning"]): PlannedLayer {
  const { problem, op, dtype } = subject.traits;
  const layer = { problem, op, dtype, count: occurrences(/n"([^"]*)"$/.exec(problem)?.[1]) };
  const plan = subject.planner.plan(planning);
  if (isRefusal(plan)) return { ...layer, reason: plan.text };
  const { algorithm, kernel, predictedMs } = plan;
  const predicted_ms = predictedMs ?? planTime(plan, planning.device) / 1e3;
  return { ...layer, algorithm, kernel, predicted_ms };
}

/** {@linkcode planLayers} as a table, with each layer's share of the predicted time, and its sum. */
export function plannedTable(layers: readonly PlannedLayer[], room: number | undefined): string {
  const timeOf = ({ count, predicted_ms = 0 }: PlannedLayer) => count * predicted_ms;
  const total = layers.reduce((sum, layer) => sum + timeOf(layer), 0);
  const table = textTable(
    [
      { title: "layer" },
      { title: "op" },
      { title: "dtype" },
      { title: "times", align: "right" },
      { title: "algorithm" },
      { title: "kernel", spare: 1 },
      { title: "predicted", align: "right" },
      { title: "share", align: "right" },
    ],
    layers.map((layer) => [
      caseLabel(layer),
      layer.op,
      layer.dtype,
      String(layer.count),
      layer.algorithm ?? "-",
      layer.kernel ?? layer.reason ?? "",
      layer.predicted_ms === undefined ? "-" : formatMilliseconds(timeOf(layer)),
      layer.predicted_ms === undefined ? "-" : formatShare(timeOf(layer) / total),
    ]),
    undefined,
    room,
  );
  return `${table}\ntotal ${formatMilliseconds(total)}`;
}
