import { expectPlanned, isRefusal, type Refusal } from "../algorithms/refusal.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { proveRoom } from "../npy/write.ts";
import { printableMessage } from "../printable.ts";
import type { CaseColumnName } from "../report/case_columns.ts";
import { isUnproved } from "../report/record.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { recordTable } from "../report/case_table.ts";
import { textTable } from "../report/table.ts";
import { convSubject } from "../run/conv_subject.ts";
import { cpuExecutor } from "../run/executor.ts";
import { usesUnits } from "../run/subject.ts";
import { defaultFill } from "../run/operands.ts";
import { timeline } from "../run/timeline.ts";
import { compute } from "./compute.ts";
import {
  channelFiles,
  formData,
  formShape,
  inputFiles,
  openConv,
  operandFlags,
} from "./conv_files.ts";
import { convFiles, filesOfPattern } from "./conv_many.ts";
import { type ConvOptions, convOptions } from "./conv_options.ts";
import { computeConv } from "./conv_stream.ts";
import { openLayer, readManifest } from "./dump_manifest.ts";
import { commandWrites } from "./failure.ts";
import { openGpuExecutor } from "./open_gpu.ts";
import { printer, reporter, terminalColumns } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { refuseBesideKernel, useOwnKernels } from "./own_kernel.ts";
import { printCase, printTimings, sayFailedCase } from "./print_case.ts";
import { planningOptions, refuseLossScale } from "./problem_options.ts";
import { isHeld, readAhead, writeBeside } from "./overlap.ts";
import { readTuning, refuseTuning, tuningFile } from "./tuning_options.ts";
import { givenOptions, refuseOnCpu, refuseOptions, refuseWords } from "./refuse.ts";

/** What a manifest says of each layer, or has no place for, as attributes. */
const SAID_BY_LAYERS = [
  ...["op", "layout", "filterLayout", "stride", "padding", "dilation", "groups", "activation"],
  ...["inputSize", "filterSize", "fill", "as", "outDtype", "scale", "lossScale"],
  ...["inputZeroPoint", "filterZeroPoint", "outputZeroPoint", "chunk", "resume", "timings"],
];

/** `wgconv conv`: one convolution or gradient, checked and timed. */
export function convCommand() {
  return convOptions()
    .action(async (given, command) => {
      if (given.kernel !== undefined) refuseBesideKernel("Cannot convolve", given.algorithm);
      using own = useOwnKernels(given.kernel === undefined ? [] : [given.kernel]);
      const options = { ...given, algorithm: own.names[0] ?? given.algorithm };
      const { during, timings } = timeline();
      refuseWords("Cannot convolve", command.args, operandFlags(options.op));
      if (options.device === "cpu") refuseOnCpu("Cannot convolve", command, ["runs"]);
      refuseLossScale("Cannot convolve", options.lossScale, [options.op]);
      refuseTuning("Cannot convolve", options);
      if (options.manifest !== undefined) {
        const { input, filter, gradOutput, problem, output } = options;
        refuseOptions("Cannot convolve: --manifest names the files", {
          ...{ input, filter, "grad-output": gradOutput, problem, output },
          ...Object.fromEntries(channelFiles(options)),
        });
        const said = givenOptions(command, SAID_BY_LAYERS);
        refuseOptions("Cannot convolve: --manifest says what the layers are", said);
        return await convManifest(options.manifest, options);
      }
      const many = await filesOfPattern(options);
      if (many !== undefined) {
        refuseOptions("Cannot convolve many files", { timings: options.timings });
        return await convFiles(many, options);
      }
      if (options.resume) {
        throw new InputTypeError(
          "Cannot resume: --resume needs many files, as in --input 'frames/*.npy'",
        );
      }
      const writes = commandWrites();
      using opened = await during("files", async () => {
        await proveOutputs([{ option: "--output", path: options.output, kind: "npy" }], {
          inputs: [...inputFiles(options), tuningFile(options.tuning)],
          force: options.force,
        });
        return await openConv(options);
      });
      const { output, algorithm, device, seed, lossScale } = options;
      const { dtype, outDtype, fill = defaultFill(dtype) } = options;
      const asked = { ...opened, dtype, outDtype };
      const subject = convSubject(asked);
      const { form } = opened;
      const shape = formShape(form, subject.result.shape);
      if (output !== undefined) await proveRoom(output, { ...subject.result, shape });
      const held = options.chunk === undefined && isHeld(subject, options);
      const files = held ? readAhead(subject, opened.files, { during }) : opened.files;
      const { computed: { record }, written } = await writeBeside(
        { path: output, ...subject.result, shape, force: options.force },
        during,
        (onResult) =>
          computeConv(asked, {
            subject,
            source: {
              files,
              fill,
              seed,
              ...(lossScale === undefined ? {} : { lossScale }),
            },
            algorithm,
            planning: { ...planningOptions(options), algorithm },
            tuned: algorithm === "auto" && device === "gpu" ? readTuning(options) : undefined,
            onResult: (result) => onResult(formData(form, subject.result, result)),
            during,
          }, options),
      );
      printCase(record, options);
      await writes.attempt(async () => await written);
      printTimings(timings(), options);
      writes.conclude(isUnproved(record) ? EXIT.accuracy : EXIT.ok);
    });
}

const DOING = "Cannot convolve";
const COLUMNS: readonly CaseColumnName[] = [
  ...["problem", "op", "dtype", "algorithm", "time", "mare", "l2", "bound", "verdict"] as const,
];

/**
 * Computes every layer of a manifest on its own activations: a row each, or a record with --json. Products run beside the
 * convolutions. Layers that cannot be planned as asked are named on stderr.
 *
 * @throws {ExitCode} 1 where a result failed. {RangeError | UnsupportedError} where no layer can be planned.
 */
async function convManifest(path: string, options: ConvOptions): Promise<void> {
  const { dtype, seed, json, device, backend, adapter, fill = defaultFill(dtype) } = options;
  if (dtype === "i8") {
    throw new InputTypeError(`${DOING}: the layers of ${path} are not of int8, --dtype i8 must go`);
  }
  const { manifest: { layers }, folder } = readManifest(path);
  if (layers.length === 0) throw new InputTypeError(`${DOING}: ${path} has no layer`);
  const writes = commandWrites();
  const planning = planningOptions(options);
  const features = dtype === "f16" ? ["shader-f16"] : [];
  using executor = device === "cpu" ? cpuExecutor() : await openGpuExecutor(
    { backend, adapter, onUnits: usesUnits(dtype, planning.math) },
    features,
    planning,
    options,
  );
  const tuned = options.algorithm === "auto" && device === "gpu" ? readTuning(options) : undefined;
  const cases: ReadCase[] = [];
  const refusals: Refusal[] = [];
  for (const layer of layers) {
    using opened = await openLayer(layer, folder, dtype, DOING);
    const { subject, files } = opened;
    const isProduct = "gemm" in subject.asked;
    const own = isProduct ? planning : { ...planning, algorithm: options.algorithm };
    const planned = executor.plan(subject, own);
    if (isRefusal(planned)) {
      refusals.push(planned);
      reporter("stderr").message(
        printableMessage(`wgconv: not computed: ${layer.name}: ${planned.text}`),
      );
      continue;
    }
    const { record } = await compute({
      subject,
      source: { files, fill, seed },
      algorithm: isProduct ? "gemm" : options.algorithm,
      planning: own,
      tuned,
      executor,
    }, options);
    cases.push(record);
    sayFailedCase(record);
    if (json) printer("stdout").line(JSON.stringify(record));
  }
  if (refusals.length === layers.length) expectPlanned(refusals[0]!);
  if (!json) {
    const { columns, rows } = recordTable(cases, COLUMNS);
    reporter("stdout").line(textTable(columns, rows, undefined, terminalColumns("stdout")));
  }
  writes.conclude(cases.some(isUnproved) ? EXIT.accuracy : EXIT.ok);
}
