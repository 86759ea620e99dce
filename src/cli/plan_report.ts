import { rivalLines } from "./plan_tables.ts";
import { defined } from "../defined.ts";
import type { Plan } from "../algorithms/plan.ts";
import { type PlanMemory, planMemory } from "../algorithms/tensors.ts";
import { printableCell } from "../printable.ts";
import {
  type ConvDType,
  type ConvOutDType,
  directFlops,
  resultDtypes,
} from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { dtypeText } from "../report/case_key.ts";
import { formatBytes, formatCount } from "../report/format.ts";
import type { OpenedConv } from "./conv_files.ts";
import { rivalRecords } from "./plan_tables.ts";
import type { ProblemOptions } from "./problem_options.ts";
import { type Trace, traceText } from "../kernels/schedule/trace.ts";
import type { Kernel } from "../kernels/kernel.ts";
import { scheduleText } from "../algorithms/schedule.ts";

/** The kernels of a plan, each once. */
function kernelsOf({ passes }: Plan): Kernel[] {
  return [...new Map(passes.map(({ kernel }) => [kernel.name, kernel])).values()];
}

/** What is said of a plan that runs no kernel. */
const NO_KERNEL = "no kernel: there is nothing to sum";

export function shaderText(plan: Plan): string {
  return kernelsOf(plan).map(({ name, wgsl }) => `// ${name}\n${wgsl}`).join("\n") ||
    `// ${NO_KERNEL}`;
}

export function explainText(plan: Plan, trace: Trace): string {
  return kernelsOf(plan).map(({ name, wgsl }) => {
    const trees = trace.get(wgsl);
    return `${name}\n${trees === undefined ? "no mainloop" : traceText(trees)}\n`;
  }).join("\n") || NO_KERNEL;
}

export function planReport(
  { problem, layout, filterLayout }: OpenedConv,
  { dtype, outDtype }: ProblemOptions,
  plan: Plan,
  device: string,
): string {
  const dtypes = dtypeText({ dtype, out_dtype: isUsual(dtype, outDtype) ? undefined : outDtype });
  const flops = directFlops(problem);
  const ratio = plan.multiplications > 0
    ? ` (${(plan.multiplications / (flops / 2)).toFixed(2)}` +
      " of the direct algorithm's)"
    : "";
  const lines: [string, string][] = [
    ["problem", printableCell(`${problem.op} ${printDescriptor(problem)}`)],
    ["tensors", `${dtypes}, ${layout} with filter ${filterLayout}`],
    ["algorithm", plan.algorithm],
    ["kernel", plan.kernel],
    ...(plan.schedule === undefined
      ? []
      : [["schedule", scheduleText(plan.schedule)] as [string, string]]),
    ["memory", memoryText(planMemory(plan, problem.op))],
    ...(plan.predictedMs === undefined
      ? []
      : [["predicted", `${plan.predictedMs.toPrecision(3)} ms on ${device}`] as [string, string]]),
    ["flops", formatCount(flops)],
    ["multiplies", formatCount(plan.multiplications) + ratio],
    ...plan.buffers.map(({ name, role, bytes }): [string, string] => [
      "buffer",
      `${name}${name === role ? "" : ` (${role})`}, ${formatBytes(bytes)}`,
    ]),
    ...plan.passes.map(({ kernel, grid }): [string, string] => [
      "pass",
      `${kernel.name}, grid ${grid.join("x")}, workgroup ${kernel.workgroupSize.join("x")}, ` +
      `${formatBytes(kernel.workgroupBytes)} shared`,
    ]),
    ...plan.notes.map((note): [string, string] => ["note", note]),
    ...rivalLines(plan).map((line): [string, string] => ["rival", line]),
  ];
  return lines.map(([label, text]) => `${label.padEnd(12)}${text}`).join("\n");
}

/** Whether a result's type is what operands' have where nothing is said. */
function isUsual(dtype: ConvDType, outDtype: ConvOutDType | undefined): boolean {
  return outDtype === undefined || outDtype === resultDtypes(dtype)[0];
}

function memoryText({ inputs, output, workspace, peak }: PlanMemory): string {
  return `${formatBytes(peak)}: inputs ${formatBytes(inputs)}, output ${formatBytes(output)}, ` +
    `workspace ${formatBytes(workspace)}`;
}

export function planJson(
  { problem, layout, filterLayout }: OpenedConv,
  { dtype, outDtype }: ProblemOptions,
  plan: Plan,
): string {
  return JSON.stringify({
    schema: 1,
    kind: "plan",
    problem: printDescriptor(problem),
    op: problem.op,
    dtype,
    ...(isUsual(dtype, outDtype) ? {} : { out_dtype: outDtype }),
    layout,
    filter_layout: filterLayout,
    algorithm: plan.algorithm,
    kernel: plan.kernel,
    ...defined({ schedule: plan.schedule }),
    workspace_bytes: plan.workspaceBytes,
    memory_bytes: planMemory(plan, problem.op),
    ...(plan.predictedMs === undefined
      ? {}
      : { predicted_ms: plan.predictedMs, predicted_device: plan.predictedDevice }),
    flops: directFlops(problem),
    multiplications: plan.multiplications,
    buffers: plan.buffers,
    passes: plan.passes.map(({ kernel, grid, multiplications }) => ({
      kernel: kernel.name,
      grid,
      workgroup_size: kernel.workgroupSize,
      workgroup_bytes: kernel.workgroupBytes,
      features: kernel.features,
      multiplications,
    })),
    notes: plan.notes,
    ...(plan.rivals === undefined ? {} : { rivals: rivalRecords(plan) }),
  });
}
