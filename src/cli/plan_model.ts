import { planTime } from "../algorithms/cost/auto.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import { benchGroups, productGroups } from "../bench/bench_plan.ts";
import type { ConvDType, ConvOutDType, Operation } from "../problem/conv_problem.ts";
import { occurrences } from "../problem/occurrences.ts";
import { caseLabel } from "../report/case_key.ts";
import { formatMilliseconds, formatShare } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import type { Planning, Subject } from "../run/subject.ts";
import type { Layout } from "../tensor/layout.ts";
import type { ReadSuites } from "./suite_option.ts";

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
