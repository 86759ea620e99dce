import { givenOptions, refuseOnCpu, refuseOptions, refuseWords } from "./values.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { proveRoom } from "../npy/write.ts";
import { isUnproved } from "../report/record.ts";
import { defaultFill } from "../run/operands.ts";
import { convSubject } from "../run/conv_subject.ts";
import { timeline } from "../run/timeline.ts";
import { inputFiles, openConv, operandFlags } from "./conv_files.ts";
import { convOptions } from "./conv_options.ts";
import { convManifest } from "./conv_manifest.ts";
import { convFiles, filesOfPattern } from "./conv_many.ts";
import { computeConv } from "./conv_stream.ts";
import { commandWrites } from "./failure.ts";
import { formData, formShape } from "./result_form.ts";
import { refuseBesideKernel, useOwnKernels } from "./own_kernel.ts";
import { printCase } from "./print_case.ts";
import { proveOutputs } from "./outputs.ts";
import { planningOptions, refuseLossScale } from "./problem_options.ts";
import { printTimings } from "./timings.ts";
import { isHeld, readAhead } from "./read_ahead.ts";
import { readTuning, refuseTuning, tuningFile } from "./tuning_options.ts";
import { writeBeside } from "./write_beside.ts";

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
        const { input, filter, gradOutput, bias, problem, output } = options;
        refuseOptions("Cannot convolve: --manifest names the files", {
          ...{ input, filter, "grad-output": gradOutput, bias, problem, output },
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
