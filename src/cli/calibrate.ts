import { Command } from "#cli-types";
import { H200 } from "../algorithms/device/h200.ts";
import type { DeviceModel } from "../algorithms/device/model.ts";
import { calibrate, type Calibrated } from "../bench/calibrate/calibrate.ts";
import { type CalibratedDevice, printCalibration } from "../bench/calibrate/model_file.ts";
import { InputTypeError } from "../errors.ts";
import { writeText } from "../npy/atomic_write.ts";
import { formatDuration } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import { gpuExecutor } from "../run/executor.ts";
import { timePlans } from "../run/time_plans.ts";
import { calibrationPath } from "./calibration.ts";
import { commandWrites, oneSentence } from "./failure.ts";
import { mergeFile } from "./kept_files.ts";
import { openGpu } from "./open_gpu.ts";
import { printer, progress, reporter } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { OPTION } from "./shared_options.ts";

const EXAMPLES = `
auto predicts the time of each kernel from a model of the device. Without a calibration the model of an H100 or
H200 is measured, that of another GPU comes from published figures (docs/guides/gpus.md). calibrate measures a
model in seconds and keeps it for the device and its driver in the user's cache folder
($XDG_CACHE_HOME/wgconv/devices), where auto finds it. In other commands, --device-model replaces it. Results of
wgconv tune precede every model.
Run nothing else on the device meanwhile.

Examples:
  wgconv calibrate
  wgconv calibrate --output mine.json
  wgconv plan --problem mb32ic64ih56oc64kh3ph1 --device-model mine.json
  wgconv devices                   which devices are calibrated`;

/** A calibration is made of short samples: there are many of them. A CPU is slower, and says less. */
const PROTOCOL = {
  samples: 9,
  fillMs: 4,
  spread: 0.01,
  warmUpMs: { first: 250, next: 40 },
};
const SOFTWARE_PROTOCOL = { samples: 5, fillMs: 1 };
const MOST_NOTES = 5;

/** `wgconv calibrate`: measures what `auto` predicts times by. */
export function calibrateCommand() {
  return new Command("calibrate")
    .description("Measure this GPU, so that auto predicts its times.")
    .option(...OPTION.backend)
    .option(...OPTION.adapter)
    .option("--output <file>", "write the model to this file too, for --device-model")
    .option(...OPTION.force)
    .option(...OPTION.json)
    .addHelpText("after", EXAMPLES)
    .action(async (options) => {
      const start = performance.now();
      using gpu = await openGpu(options);
      const { device } = gpuExecutor(gpu);
      const path = await keptPath(device, options.output !== undefined);
      await proveOutputs([
        { option: "the calibration", path, kind: "merged" },
        { option: "--output", path: options.output, kind: "file", endings: [".json"] },
      ], { force: options.force });
      const shown = progress();
      const { limits, matrixUnits, workgroupsInFlight } = gpu;
      const protocol = gpu.info.software ? SOFTWARE_PROTOCOL : PROTOCOL;
      let count = 0;
      const found = await gpu.guard(() =>
        calibrate(device.adapter, {
          limits,
          matrixUnits,
          workgroupsInFlight,
          time: async (plans) => {
            const times = await timePlans(gpu, plans, protocol, (done) =>
              shown.update(`${count + done} measurements`));
            count += plans.length;
            return times;
          },
        })
      );
      shown.done();
      const text = printCalibration(device, found);
      const writes = commandWrites();
      const { output } = options;
      if (output !== undefined) {
        await writes.attempt(() => writeText(output, text));
      }
      if (path !== undefined) await writes.attempt(() => mergeFile(path, () => text));
      const out = reporter("stdout");
      if (options.json) {
        printer("stdout").line(JSON.stringify(JSON.parse(text)));
      } else {
        out.message(`device      ${device.adapter} (${options.backend})`);
        out.line(figuresTable(found));
        const seconds = formatDuration(performance.now() - start);
        out.message(`measured    ${found.measured.length} kinds of figures in ${seconds}`);
        if (path !== undefined) out.message(`kept        ${path}`);
        if (output !== undefined) out.message(`copy        ${output}, for --device-model`);
      }
      const note = reporter("stderr");
      found.notes.slice(0, MOST_NOTES).forEach((line) => note.message(`note: ${line}`));
      const more = found.notes.length - MOST_NOTES;
      if (more > 0) note.message(`note: ${more} more are in the calibration's notes`);
      writes.conclude(0);
    });
}

/**
 * Where a calibration is to be kept; undefined, with a note where that can be told, where it is written elsewhere too and the
 * cache directory takes none.
 *
 * @throws {TypeError} where there is no cache directory, and nowhere else to write.
 */
async function keptPath(device: CalibratedDevice, elsewhere: boolean): Promise<string | undefined> {
  const path = calibrationPath(device);
  if (path === undefined) {
    if (elsewhere) return undefined;
    throw new InputTypeError("Cannot calibrate: there is no cache folder, give --output");
  }
  if (!elsewhere) return path;
  try {
    await proveOutputs([{ option: "the calibration", path, kind: "merged" }]);
    return path;
  } catch (error) {
    reporter("stderr").message(`not kept for auto: ${oneSentence(error)}`);
    return undefined;
  }
}

const SHOWN: readonly (readonly [string, string])[] = [
  ["rates.stream", "TB/s"],
  ["times.dispatch", "us"],
  ["rates.packed", "TFLOP/s"],
  ["rates.gathered", "TFLOP/s"],
  ["rates.correlated.along", "TFLOP/s"],
  ["rates.sliced.two", "TFLOP/s"],
  ["rates.winrs.a8n3r6", "TFLOP/s"],
  ["rates.depthwise.along", "TFLOP/s"],
  ["rates.direct", "TFLOP/s"],
  ["rates.dot4", "TOPS"],
];

function figuresTable({ model }: Calibrated): string {
  const row = (name: string, unit: string, value: number, known: number) => [
    name,
    `${Number(value.toPrecision(3))}`,
    unit,
    (value / known).toPrecision(3),
  ];
  const rows = SHOWN.map(([name, unit]) => {
    const of = (one: DeviceModel) =>
      name.split(".").reduce<unknown>((value, field) => (value as never)[field], one) as number;
    return row(name, unit, of(model), of(H200));
  });
  return textTable([
    { title: "figure" },
    { title: "value", align: "right" },
    { title: "unit" },
    { title: "of an H200's", align: "right" },
  ], [row("multiprocessors", "", model.multiprocessors, H200.multiprocessors), ...rows]);
}
