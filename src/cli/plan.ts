import { defined } from "../defined.ts";
import type { CommandUnknownOpts } from "#cli-types";
import { predictPlanMs } from "../algorithms/cost/auto.ts";
import { deviceOf } from "../algorithms/device/h200.ts";
import { modelOf } from "../algorithms/device/known.ts";
import { type DeviceModel, deviceText } from "../algorithms/device/model.ts";
import { DEFAULT_LIMITS, type DeviceLimits, type Plan } from "../algorithms/plan.ts";
import { tryPlanConv } from "../algorithms/planner.ts";
import { expectPlanned, isRefusal } from "../algorithms/refusal.ts";
import type { PlanRequest, TuningTable } from "../algorithms/request.ts";
import { InputTypeError } from "../errors.ts";
import { printableCell } from "../printable.ts";
import {
  channelFiles,
  inputFiles,
  openConvFor,
  type OpenedConv,
  operandFlags,
} from "./conv_files.ts";
import { type AnyGpuChoice, GROUPS, OPTION } from "./shared_options.ts";
import { readLimitsFile } from "./limits_file.ts";
import { type ModelChoice, noteIgnored, readSuites, SUITE } from "./suite_option.ts";
import { printer, reporter, terminalColumns } from "./output.ts";
import { allPlans, allTable, planLayers, plannedTable } from "./plan_tables.ts";
import { planningOptions, problemCommand, type ProblemOptions } from "./problem_options.ts";
import {
  readTuning,
  refuseTuning,
  TUNING_OPTION,
  type TuningChoice,
  tuningOf,
} from "./tuning_options.ts";
import { usesUnits } from "../run/subject.ts";
import { oneOf, pathOr } from "./values.ts";
import { givenOptions, refuseOptions, refuseWords } from "./refuse.ts";
import { traceMainloops } from "../kernels/schedule/trace.ts";
import { proveOutputs } from "./outputs.ts";
import { writeText } from "../npy/atomic_write.ts";
import { explainText, planJson, planReport, shaderText } from "./plan_report.ts";

const EXAMPLES = `
A plan needs no GPU. It keeps to the limits that every WebGPU device has, to those of a file (JSON with
WebGPU's names, such as the first line of bench's JSONL), or to this machine's.

Examples:
  wgconv plan --problem mb32ic64ih56oc64kh3ph1
  wgconv plan --model resnet50.onnx --device gpu
  wgconv plan --problem mb32ic64ih56oc64kh3ph1 --all --max-workspace 64MB
  wgconv plan --input x.npy --filter w.npy --padding 1 --device gpu
  wgconv plan --problem mb32ic64ih56oc64kh3ph1 --op bwd-filter --limits h200.json --json
  wgconv plan --problem mb1ic8ih8oc8kh3 --algorithm direct --wgsl
  wgconv plan --problem mb8ic64ih28oc64kh3ph1 --with double-buffer --explain
  wgconv plan --problem mb32ic64ih56oc64kh3ph1 --algorithm winograd1d --tile "F(6,3)" --policy 32x32x8_8x8`;

/** What options print that exclude each other. */
const PRINTED = { all: "a list", json: "JSON", wgsl: "shaders", explain: "trees" } as const;

/** `wgconv plan`: what would run and why. */
export function planCommand() {
  return problemCommand("plan")
    .description("Show which kernel would run, and why. Files are opened for their shapes only.")
    .optionsGroup(GROUPS.common)
    .option("--all", "list what every algorithm would do")
    .option("--wgsl [file]", "print the shaders, or write them to a file")
    .option(
      "--explain",
      "print each mainloop as a tree, before and after each pass of its schedule",
    )
    .option(...OPTION.force)
    .option(...SUITE.model)
    .optionsGroup(GROUPS.model)
    .option(...SUITE.batch)
    .option(...SUITE.inputShape)
    .option(...SUITE.training)
    .optionsGroup(GROUPS.device)
    .option(
      "--device <name>",
      "gpu: plan for this machine, with its limits, and its calibration and tuning unless --device-model is given",
      oneOf(["none", "gpu"] as const),
      "none" as const,
    )
    .option(
      "--limits <what>",
      "those that every WebGPU device has, or of a JSON file; - is stdin",
      pathOr("default"),
      "default",
    )
    .option(...OPTION.anyBackend)
    .option(...OPTION.adapter)
    .optionsGroup(GROUPS.kernel)
    .option(...TUNING_OPTION)
    .addHelpText("after", EXAMPLES)
    .action(async (options, command) => {
      const { args } = command;
      refuseWords("Cannot plan", args, operandFlags(options.op));
      if (options.device === "gpu") {
        const ofOthers = givenOptions(command, ["limits"]);
        refuseOptions("Cannot plan: --device gpu has limits of its own", ofOthers);
      } else {
        const ofThis = givenOptions(command, ["tuning", "backend", "adapter"]);
        refuseOptions("Cannot plan: only --device gpu plans for this machine", ofThis);
      }
      refuseTuning("Cannot plan", options);
      const { json, all, wgsl, explain, force } = options;
      const asked = Object.entries({ ...(all ? { all } : { json }), wgsl, explain })
        .flatMap(([name, value]) => value ? [name as keyof typeof PRINTED] : []);
      if (asked.length > 1) {
        const [first, second] = asked as [keyof typeof PRINTED, keyof typeof PRINTED];
        throw new InputTypeError(
          `Cannot plan: --${second} prints ${PRINTED[second]}, not ${PRINTED[first]}; one must go`,
        );
      }
      const file = typeof wgsl === "string" ? wgsl : undefined;
      await proveOutputs([{ option: "--wgsl", path: file, kind: "file" }], {
        inputs: inputFiles(options),
        force,
      });
      if (options.model !== undefined) return await planModel(options, command);
      using subject = await openConvFor("Cannot plan", options);
      const device = options.device === "gpu"
        ? await thisDevice(options)
        : { limits: readLimitsFile(options.limits) };
      const request = planRequest(subject, options, device);
      const out = printer("stdout");
      if (all) {
        const rows = allPlans(request);
        out.line(options.json ? JSON.stringify(rows) : allTable(rows, terminalColumns("stdout")));
        if (!options.json && rows.some(({ predicted_ms }) => predicted_ms !== undefined)) {
          out.line(`predicted on ${predictedOn(deviceOf(request), options, device)}`);
        }
        const refused = rows.every(({ reason }) => reason !== undefined);
        if (refused && rows.some(({ reason }) => /the device's/.test(reason!))) noteLimits(device);
        return;
      }
      const [planned, trace] = explain
        ? traceMainloops(() => planOrNote(request))
        : [planOrNote(request)];
      const predictedMs = predictPlanMs(request, planned);
      const plan = predictedMs === undefined ? planned : {
        ...planned,
        predictedMs,
        predictedDevice: deviceOf(request).name,
      };
      if (file !== undefined) {
        await writeText(file, `${shaderText(plan)}\n`);
      } else if (wgsl) {
        out.line(shaderText(plan));
      } else if (trace !== undefined) {
        out.line(explainText(plan, trace));
      } else {
        out.line(
          options.json
            ? planJson(subject, options, plan)
            : planReport(subject, options, plan, predictedOn(deviceOf(request), options, device)),
        );
      }
    });
}

/** Prints what would run of every layer of the models. */
async function planModel(options: PlanModelOptions, command: CommandUnknownOpts): Promise<void> {
  const { problem, input, filter, gradOutput, all, wgsl, explain, model = [], ...rest } = options;
  refuseOptions("Cannot plan: --model says the problems", {
    problem,
    input,
    filter,
    gradOutput,
    ...Object.fromEntries(channelFiles(options)),
    all,
    wgsl,
    explain,
  });
  const suites = await readSuites({ ...rest, model }, command, true);
  const device: ThisDevice = options.device === "gpu"
    ? await thisDevice(options)
    : { limits: readLimitsFile(options.limits) };
  const { limits, matrixUnits, workgroupsInFlight, model: measured, adapter, tuning } = device;
  const own = planningOptions(options);
  const planning = {
    limits,
    algorithm: options.algorithm,
    ...own,
    ...defined({ matrixUnits, tuning }),
    device: modelOf(workgroupsInFlight, own.device ?? measured, adapter),
  };
  const { op, dtype, outDtype, layout } = options;
  const layers = planLayers(suites, { op, dtype, outDtype, layout, planning });
  noteIgnored(suites);
  const out = printer("stdout");
  if (options.json) return layers.forEach((layer) => out.line(JSON.stringify(layer)));
  out.line(plannedTable(layers, terminalColumns("stdout")));
  out.line(`predicted on ${predictedOn(planning.device, options, device)}`);
}

/** Options of planning models. */
interface PlanModelOptions
  extends ProblemOptions, Pick<AnyGpuChoice, "backend" | "adapter">, ModelChoice {
  readonly model?: readonly string[] | undefined;
  readonly device: "none" | "gpu";
  readonly limits: string;
  readonly tuning?: string | undefined;
  readonly all?: boolean | undefined;
  readonly wgsl?: string | true | undefined;
  readonly explain?: boolean | undefined;
}

function noteLimits({ limits }: Pick<PlanRequest, "limits">): void {
  if (limits !== DEFAULT_LIMITS) return;
  reporter("stderr").line(
    "wgconv: note: these are the limits that every device has; --device gpu takes this machine's, " +
      "--limits those of a file",
  );
}

/**
 * As `planConv`.
 *
 * @throws as that does, having said where limits come from if they are too small.
 */
function planOrNote(request: PlanRequest): Plan {
  const plan = tryPlanConv(request);
  if (isRefusal(plan) && plan.kind === "limit") noteLimits(request);
  return expectPlanned(plan);
}

function planRequest(
  subject: OpenedConv,
  options: ProblemOptions,
  { limits, matrixUnits, workgroupsInFlight, model, adapter, tuning }: ThisDevice,
): PlanRequest {
  const planning = planningOptions(options);
  const { problem, layout, filterLayout, epilogue, integers } = subject;
  return {
    problem,
    dtype: options.dtype,
    ...defined({ outDtype: options.outDtype, integers }),
    layout,
    filterLayout,
    epilogue,
    algorithm: options.algorithm,
    limits,
    ...(matrixUnits && { matrixUnits }),
    ...planning,
    ...(tuning === undefined ? {} : { tuning }),
    device: modelOf(workgroupsInFlight, planning.device ?? model, adapter),
  };
}

/** The device that predicted times are of, and what to do where nobody chose it. */
function predictedOn(
  of: DeviceModel,
  { device, deviceModel }: {
    readonly device: "none" | "gpu";
    readonly deviceModel?: string | undefined;
  },
  { model, adapter = "" }: ThisDevice,
): string {
  const named = deviceText(of);
  if (deviceModel !== undefined) return named;
  if (device !== "gpu") {
    return `${named} (the default; --device gpu plans for this machine, --device-model for another)`;
  }
  return model !== undefined || of.software || adapter.includes(of.name)
    ? named
    : `${named} (this is ${printableCell(adapter)}; wgconv calibrate measures it)`;
}

interface ThisDevice {
  readonly limits: DeviceLimits;
  readonly matrixUnits?: PlanRequest["matrixUnits"];
  readonly workgroupsInFlight?: number | undefined;
  readonly model?: DeviceModel | undefined;
  readonly adapter?: string;
  readonly tuning?: TuningTable | undefined;
}

async function thisDevice(
  options: ProblemOptions & Pick<AnyGpuChoice, "backend" | "adapter"> & TuningChoice,
): Promise<ThisDevice> {
  const { chosenBackend, gpuExecutorOf } = await import("./open_gpu.ts");
  const { openDevice } = await import("../gpu/device.ts");
  const planning = planningOptions(options);
  const onUnits = usesUnits(options.dtype, planning.math);
  const backend = await chosenBackend({ ...options, onUnits });
  using gpu = await openDevice({ backend, adapter: options.adapter, robust: false });
  const { model, device } = gpuExecutorOf(gpu, planning);
  const { limits, matrixUnits, workgroupsInFlight } = gpu;
  return {
    limits,
    ...(matrixUnits && { matrixUnits }),
    workgroupsInFlight,
    model,
    adapter: gpu.info.adapter,
    tuning: options.algorithm === "auto" ? tuningOf(readTuning(options), device) : undefined,
  };
}
