import { Command } from "#cli-types";
import { writeOutput } from "../npy/atomic_write.ts";
import { GROUPS } from "./help_groups.ts";
import {
  BATCH_HELP,
  INPUT_SHAPE_HELP,
  modelSuite,
  parseInputShape,
  TRAINING_HELP,
} from "./model_option.ts";
import { FORCE_HELP, proveOutputs } from "./outputs.ts";
import { wholeNumber } from "./values.ts";

const EXAMPLES = `
A source is a model (.onnx), or a log with lines of ONEDNN_VERBOSE or commands of MIOpenDriver; - is a log
on stdin. The suite has a line for each size, with the first layer's name and how many there are (*N).
bench, tune and plan take the source itself as --model. What is no convolution or product that can run here
is named on stderr.
Shapes that a model leaves open come from onnxruntime's inference, a package that is fetched when it is
first needed (WGCONV_ONNXRUNTIME can name its folder).

Examples:
  wgconv layers resnet50.onnx --batch 8 > resnet50.txt
  wgconv layers detector.onnx --input-shape x=1x3x640x640
  ONEDNN_VERBOSE=1 ./program | wgconv layers - > program.txt
  wgconv bench --model resnet50.onnx --jsonl resnet50.jsonl`;

/** `wgconv layers`: a network's convolutions and products as a suite. */
export function layersCommand() {
  return new Command("layers")
    .description("List the convolutions and products of a model or a log as a suite.")
    .argument("<source>", "file: .onnx, or a log of oneDNN or MIOpen")
    .optionsGroup(GROUPS.common)
    .option("--batch <n>", BATCH_HELP, wholeNumber(1))
    .option("--input-shape <name=sizes>", INPUT_SHAPE_HELP, parseInputShape)
    .option("--training", TRAINING_HELP)
    .option("--output <file>", "where the suite goes; - is stdout", "-")
    .option("--force", FORCE_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (source, { batch, inputShape, training, output, force }) => {
      await proveOutputs([{ option: "--output", path: output, kind: "file", endings: [".txt"] }], {
        inputs: [source],
        force,
      });
      const { text } = await modelSuite(source, { batch, inputShapes: inputShape, training });
      await writeOutput(output, (write) => write(new TextEncoder().encode(text)));
    });
}
