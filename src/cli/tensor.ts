import { Command } from "#cli-types";
import { FILE_DTYPES, type FileDType } from "../tensor/dtype.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { FILE_FILTER_LAYOUTS, LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import { EXIT } from "../errors.ts";
import { ExitCode } from "./failure.ts";
import { printer, reporter } from "./output.ts";
import { AS_DTYPES, AS_HELP } from "./as_option.ts";
import { FORCE_HELP } from "./outputs.ts";
import { IMAGE_LAYOUTS, PICTURE_LAYOUTS } from "./tensor_picture.ts";
import { parseNumber, parseRange, parseShape } from "./tensor_values.ts";
import { terminalColumns } from "./terminal.ts";
import { oneOf, wholeNumber } from "./values.ts";

const EXAMPLES = `
A path is a .npy file, - for stdin or stdout, or file.npz:member. An archive that a tensor becomes a member
of keeps its others; --force replaces one of the same name.

Examples:
  wgconv tensor make x.npy --shape 1,3,32,32 --fill uniform11 --seed 1
  wgconv tensor info x.npy weights.npz
  wgconv tensor convert weights.npz:conv1 w.npy --from-layout kcrs --to-layout krsc --dtype f32
  wgconv tensor diff y.npy reference.npy
  wgconv tensor show photo.npy photo.png --layout hwc`;

const MAKE_EXAMPLES = `
Fills: uniform01 draws from [0, 1), uniform11 from [-1, 1), normal has mean 0 and deviation 1, integer
draws whole numbers from -8 to 8 (0 to 8 in unsigned dtypes). A seed gives the same bits on every machine.

Examples:
  wgconv tensor make x.npy --shape 1,3,8,8
  wgconv tensor make x.npy --shape 64,56,56,64 --fill normal --dtype f16 --seed 7
  wgconv tensor make a.npz:x --shape 1,3,8,8
  wgconv tensor make - --shape 4,4 --fill integer --dtype i32 | wgconv tensor info -`;

const INFO_EXAMPLES = `
Reads headers alone, so that the size of a file does not matter. With --json one line a tensor.

Examples:
  wgconv tensor info x.npy w.npy
  wgconv tensor info weights.npz
  wgconv tensor info weights.npz:conv1 --json`;

const CONVERT_EXAMPLES = `
The layouts serve one to three spatial axes alike: nchw is ncw and ncdhw too. Filters of TensorFlow and
JAX (HWIO) are rsck; an image without a batch is chw or hwc. Floats round to nearest even; on the way to
integers they lose their fraction, and what does not fit is refused. bf16 is written as ml_dtypes does, <V2:
np.load(...).view(ml_dtypes.bfloat16) has it.

Examples:
  wgconv tensor convert x.npy half.npy --dtype f16
  wgconv tensor convert x.npy brain.npy --dtype bf16
  wgconv tensor convert torch_uint16.npy x.npy --as bf16 --dtype f32
  wgconv tensor convert x.npy y.npy --from-layout nchw --to-layout nhwc
  wgconv tensor convert photo.npy x.npy --from-layout hwc --to-layout chw
  wgconv tensor convert w.npy - --from-layout rsck --to-layout krsc > w_krsc.npy`;

const DIFF_EXAMPLES = `
GOT is compared with REFERENCE in FP64. Exit 1: relative L2 error beyond --max-rel-l2, or NaN or
infinity where the reference has none. Exit 2: the shapes differ.

Examples:
  wgconv tensor diff y.npy reference.npy
  wgconv tensor diff y.npy results.npz:y --max-rel-l2 1e-3 --json`;

const SHOW_EXAMPLES = `
Values from the smallest to the largest become 0 to 255 (u8 stays as it is); --range sets the ends.
One channel makes a grey picture, three a coloured one; of others --channel picks one. Without --layout
channels are taken to be last where there are 1 or 3 of them there.

Examples:
  wgconv tensor show photo.npy photo.png --layout hwc --range 0,1
  wgconv tensor show y.npy y.png --layout nchw --index 2 --channel 5`;

/** `wgconv tensor`: make, describe, convert, compare and picture `.npy` tensors. */
export function tensorCommand() {
  const tensor = new Command("tensor")
    .description("Make, describe, convert, compare and picture .npy tensors.")
    .addHelpText("after", EXAMPLES);
  tensor.addCommand(makeCommand());
  tensor.addCommand(infoCommand());
  tensor.addCommand(convertCommand());
  tensor.addCommand(diffCommand());
  tensor.addCommand(showCommand());
  return tensor;
}

function makeCommand() {
  return new Command("make")
    .description("Make a tensor of seeded values.")
    .argument("<out>", "the .npy file to write, or file.npz:member")
    .requiredOption("--shape <sizes>", "sizes such as 1,3,8,8; scalar for none", parseShape)
    .option("--fill <kind>", FILL_KINDS.join(", "), oneOf(FILL_KINDS), "uniform01" as const)
    .option("--dtype <name>", FILE_DTYPES.join(", "), oneOf(FILE_DTYPES), "f32" as FileDType)
    .option("--seed <n>", "a whole number", wholeNumber(0), 1)
    .option("--force", FORCE_HELP)
    .option("--json", "print a JSON object")
    .addHelpText("after", MAKE_EXAMPLES)
    .action(async (out, options) => {
      const { makeTensor } = await import("./tensor_files.ts");
      report(out, options.json, await makeTensor(out, options));
    });
}

function infoCommand() {
  return new Command("info")
    .description("Show dtype, shape and order of tensors without reading their data.")
    .argument("<file...>", ".npy and .npz files; an archive lists its members")
    .option("--json", "print a JSON object a tensor")
    .addHelpText("after", INFO_EXAMPLES)
    .action(async (files, { json }) => {
      const { describeFiles, infoTable } = await import("./tensor_info.ts");
      const infos = await describeFiles(files);
      const out = printer("stdout");
      if (json) infos.forEach((info) => out.line(JSON.stringify(info)));
      else out.line(infoTable(infos, terminalColumns("stdout")));
    });
}

function convertCommand() {
  const layouts = [...LAYOUTS, ...FILE_FILTER_LAYOUTS, ...IMAGE_LAYOUTS];
  return new Command("convert")
    .description("Convert a tensor's dtype, layout or file format.")
    .argument("<in>", "the tensor to read")
    .argument("<out>", "the .npy file to write, or file.npz:member")
    .option("--dtype <name>", FILE_DTYPES.join(", "), oneOf(FILE_DTYPES))
    .option("--as <name>", AS_HELP, oneOf(AS_DTYPES))
    .option("--from-layout <layout>", layouts.join(", "), oneOf(layouts, LAYOUT_ALIASES))
    .option("--to-layout <layout>", "a layout of the same kind", oneOf(layouts, LAYOUT_ALIASES))
    .option("--force", FORCE_HELP)
    .option("--json", "print a JSON object")
    .addHelpText("after", CONVERT_EXAMPLES)
    .action(async (input, out, options) => {
      const { convertTensor } = await import("./tensor_files.ts");
      report(out, options.json, await convertTensor(input, out, options));
    });
}

function diffCommand() {
  return new Command("diff")
    .description("Measure how far a tensor is from a reference.")
    .argument("<got>", "the tensor to judge")
    .argument("<reference>", "the tensor to judge it by")
    .option("--max-rel-l2 <error>", "largest relative L2 error to pass", parseNumber, 1e-5)
    .option("--as <name>", AS_HELP, oneOf(AS_DTYPES))
    .option("--json", "print a JSON object")
    .addHelpText("after", DIFF_EXAMPLES)
    .action(async (got, reference, { maxRelL2, as, json }) => {
      const { diffTensors, diffReport } = await import("./tensor_diff.ts");
      const diff = await diffTensors(got, reference, { maxRelL2, as });
      printer("stdout").line(json ? JSON.stringify(diff) : diffReport(diff));
      if (diff.verdict === "fail") throw new ExitCode(EXIT.accuracy);
    });
}

function showCommand() {
  return new Command("show")
    .description("Make a PNG picture of an image, or of one channel.")
    .argument("<file>", "the tensor to read")
    .argument("<out>", "the .png file to write")
    .option("--index <n>", "which image of a batch", wholeNumber(0), 0)
    .option("--channel <c>", "the channel to show alone", wholeNumber(0))
    .option("--layout <layout>", PICTURE_LAYOUTS.join(", "), oneOf(PICTURE_LAYOUTS))
    .option("--range <min,max>", "values that become black and white", parseRange)
    .option("--as <name>", AS_HELP, oneOf(AS_DTYPES))
    .option("--force", FORCE_HELP)
    .option("--json", "print a JSON object")
    .addHelpText("after", SHOW_EXAMPLES)
    .action(async (file, out, options) => {
      const { showTensor } = await import("./tensor_files.ts");
      report(out, options.json, await showTensor(file, out, options));
    });
}

/** Prints what was written, aside where the file itself went to stdout. */
function report(out: string, json: true | undefined, written: { readonly text: string }): void {
  const { text, ...fields } = written;
  const target = out === "-" ? "stderr" : "stdout";
  if (json) printer(target).line(JSON.stringify(fields));
  else reporter(target).line(text);
}
