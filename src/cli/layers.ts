import { Command } from "#cli-types";
import { writeOutput } from "../npy/atomic_write.ts";
import { GROUPS } from "./help_groups.ts";
import {
  BATCH_HELP,
  INPUT_SHAPE_HELP,
  inputShapesOf,
  modelSuite,
  namedValues,
  TRAINING_HELP,
} from "./model_option.ts";
import { FORCE_HELP, proveOutputs } from "./outputs.ts";
import { InputTypeError } from "../errors.ts";
import { dumpModel } from "./layers_dump.ts";
import { SEED_HELP } from "./problem_options.ts";
import { RUNTIME_PROVIDERS } from "../models/layer.ts";
import { gather, oneOf, refuseOptions, wholeNumber } from "./values.ts";

const EXAMPLES = `
A source is a model (.onnx), or a log with lines of ONEDNN_VERBOSE or commands of MIOpenDriver; - is a log
on stdin. The suite has a line for each size, with the first layer's name and how many there are (*N).
bench, tune and plan take the source itself as --model. What is no convolution or product that can run here
is named on stderr.
--dump writes an archive of each layer's operands and result, and a manifest, which verify takes.
Shapes that a model leaves open come from onnxruntime, an npm package of 113 MB that is fetched when it is
first needed (WGCONV_ONNXRUNTIME can name its folder).

Examples:
  wgconv layers resnet50.onnx --batch 8 > resnet50.txt
  wgconv layers detector.onnx --input-shape x=1x3x640x640
  ONEDNN_VERBOSE=1 ./program | wgconv layers - > program.txt
  wgconv layers detector.onnx --input-shape x=1x3x640x640 --dump dump --feed x=page.npy
  wgconv bench --model resnet50.onnx --jsonl resnet50.jsonl`;

/** `wgconv layers`: a network's convolutions and products as a suite. */
export function layersCommand() {
  return new Command("layers")
    .description("List the convolutions and products of a model or a log as a suite.")
    .argument("<source>", "file: .onnx, or a log of oneDNN or MIOpen")
    .optionsGroup(GROUPS.common)
    .option("--batch <n>", BATCH_HELP, wholeNumber(1))
    .option("--input-shape <name=sizes>", INPUT_SHAPE_HELP, gather)
    .option("--training", TRAINING_HELP)
    .option("--output <file>", "where the suite goes; - is stdout", "-")
    .option("--dump <folder>", "run the model by onnxruntime, write each layer's tensors there")
    .option(
      "--feed <name=file>",
      "what --dump feeds an input; made data else; repeatable",
      gather,
    )
    .option(
      "--runtime <name>",
      "on what onnxruntime runs the model for --dump: cpu or webgpu (default cpu)",
      oneOf(RUNTIME_PROVIDERS),
    )
    .option("--seed <n>", SEED_HELP, wholeNumber(0), 1)
    .option("--force", FORCE_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (source, options) => {
      const { batch, inputShape, training, output, force, dump, feed, seed, runtime } = options;
      const model = { batch, inputShapes: inputShapesOf(inputShape), training };
      if (dump !== undefined) {
        if (!/\.onnx$/i.test(source)) {
          throw new InputTypeError(`Cannot dump ${source}: onnxruntime runs .onnx files alone`);
        }
        refuseOptions("Cannot dump: it writes the tensors of a forward pass", { training });
        const feeds = namedValues("--feed", feed ?? [], "x=x.npy", (file) => file);
        return await dumpModel(source, model, {
          ...{ folder: dump, feeds, seed, force },
          runtime: runtime ?? "cpu",
        });
      }
      refuseOptions("Cannot list layers: only --dump runs the model", { feed, runtime });
      await proveOutputs([{ option: "--output", path: output, kind: "file", endings: [".txt"] }], {
        inputs: [source],
        force,
      });
      const { text } = await modelSuite(source, model);
      await writeOutput(output, (write) => write(new TextEncoder().encode(text)));
    });
}
