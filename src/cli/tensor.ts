import { Command, InvalidArgumentError } from "#cli-types";
import { EXIT } from "../errors.ts";
import { type DType, DTYPES } from "../tensor/dtype.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { FILE_FILTER_LAYOUTS, LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import { ExitCode } from "./failure.ts";
import { printer, reporter, terminalColumns } from "./output.ts";
import { IMAGE_LAYOUTS, PICTURE_LAYOUTS } from "./tensor_picture.ts";
import { oneOf, parseSizes, wholeNumber } from "./values.ts";
import { OPTION } from "./shared_options.ts";

/** Parses the shape of a tensor: sizes, or `scalar` for none. */
function parseShape(text: string): number[] {
  return text === "scalar" ? [] : parseSizes(text);
}

/** Parses a number >= 0 such as `1e-5`. */
function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || Number.isNaN(value) || value < 0) {
    throw new InvalidArgumentError("expected a number >= 0 such as 1e-5.");
  }
  return value;
}

/** Parses two numbers, the smaller first, such as `0,1`. */
function parseRange(text: string): [min: number, max: number] {
  const parts = text.split(",");
  const [min, max] = parts.map((part) => part.trim() === "" ? NaN : Number(part));
  if (parts.length !== 2 || !(min! < max!) || !Number.isFinite(max! - min!)) {
    throw new InvalidArgumentError("expected two numbers, the smaller first, such as 0,1.");
  }
  return [min!, max!];
}

const EXAMPLES = `
A path is a .npy file, - for stdin or stdout, file.npz:member or file.safetensors:tensor. Writing a member
keeps the archive's others; --force replaces one of the same name.

Examples:
  wgconv tensor make x.npy --shape 1,3,32,32 --fill uniform11 --seed 1
  wgconv tensor info x.npy weights.npz
  wgconv tensor convert weights.npz:conv1 w.npy --from-layout kcrs --to-layout krsc --dtype f32
  wgconv tensor convert model.safetensors:conv1.weight w.npy --dtype f32
  wgconv tensor diff y.npy reference.npy
  wgconv tensor show photo.npy photo.png --layout hwc`;

const MAKE_EXAMPLES = `
Fills: uniform01 draws from [0, 1), uniform11 from [-1, 1), normal has mean 0 and deviation 1, integer
draws whole numbers from -8 to 8 (0 to 8 in unsigned dtypes). A seed gives the same bits on every machine.

Examples:
  wgconv tensor make x.npy --shape 64,56,56,64 --fill normal --dtype f16 --seed 7
  wgconv tensor make a.npz:x --shape 1,3,8,8
  wgconv tensor make - --shape 4,4 --fill integer --dtype i32 | wgconv tensor info -`;

const INFO_EXAMPLES = `
Only headers are read, so large files are quick. --json prints one line per tensor.

Examples:
  wgconv tensor info x.npy w.npy
  wgconv tensor info weights.npz:conv1 --json`;

const CONVERT_EXAMPLES = `
nchw also stands for ncw and ncdhw, and so on. Filters of TensorFlow and JAX (HWIO) are rsck. An image
without a batch is chw or hwc. Floats round to nearest even; conversion to integers drops the fraction and
refuses values that do not fit. bf16 is written as ml_dtypes writes it (<V2); read it in NumPy with
np.load(...).view(ml_dtypes.bfloat16).

Examples:
  wgconv tensor convert x.npy half.npy --dtype f16
  wgconv tensor convert torch_uint16.npy x.npy --as bf16 --dtype f32
  wgconv tensor convert x.npy y.npy --from-layout nchw --to-layout nhwc
  wgconv tensor convert w.npy - --from-layout rsck --to-layout krsc > w_krsc.npy`;

const DIFF_EXAMPLES = `
The comparison is in FP64. Exit 1: the relative L2 error exceeds --max-rel-l2, or a NaN or an infinity of one
is not in the other. Exit 2: the shapes differ, or there is nothing to compare: no element, or NaN alone.

Examples:
  wgconv tensor diff y.npy reference.npy
  wgconv tensor diff y.npy results.npz:y --max-rel-l2 1e-3 --json`;

const SHOW_EXAMPLES = `
The smallest value becomes black and the largest white, or those of --range (u8 stays as it is). One channel
makes a grey picture, three a coloured one; --channel picks one of others. Without --layout, channels are
last if the last axis has 1 or 3 of them.

Examples:
  wgconv tensor show photo.npy photo.png --layout hwc --range 0,1
  wgconv tensor show y.npy y.png --layout nchw --index 2 --channel 5`;

/** `wgconv tensor`: make, describe, convert, compare and picture `.npy` tensors. */
export function tensorCommand() {
  const tensor = new Command("tensor")
    .description("Make, describe, convert, compare and draw .npy tensors.")
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
    .argument("<out>", "the .npy file to write, or file.npz:member, file.safetensors:tensor")
    .requiredOption("--shape <sizes>", "sizes such as 1,3,8,8; scalar for none", parseShape)
    .option("--fill <kind>", FILL_KINDS.join(", "), oneOf(FILL_KINDS), "uniform01" as const)
    .option("--dtype <name>", DTYPES.join(", "), oneOf(DTYPES), "f32" as DType)
    .option("--seed <n>", "a whole number", wholeNumber(0), 1)
    .option(...OPTION.force)
    .option(...OPTION.json)
    .addHelpText("after", MAKE_EXAMPLES)
    .action(async (out, options) => {
      const { makeTensor } = await import("./tensor_files.ts");
      report(out, options.json, await makeTensor(out, options));
    });
}

function infoCommand() {
  return new Command("info")
    .description("Show the number type, shape and order of tensors.")
    .argument("<file...>", ".npy, .npz and .safetensors files; an archive lists its members")
    .option(...OPTION.json)
    .addHelpText("after", INFO_EXAMPLES)
    .action(async (files, { json }) => {
      const { describeFiles, infoTable } = await import("./tensor_info.ts");
      const { infos, faults: [fault] } = await describeFiles(files);
      const out = printer("stdout");
      if (json) infos.forEach((info) => out.line(JSON.stringify(info)));
      else out.line(infoTable(infos, terminalColumns("stdout")));
      if (fault !== undefined) throw fault;
    });
}

function convertCommand() {
  const layouts = [...LAYOUTS, ...FILE_FILTER_LAYOUTS, ...IMAGE_LAYOUTS];
  return new Command("convert")
    .description("Convert a tensor's number type, layout or file format.")
    .argument("<in>", "the tensor to read")
    .argument("<out>", "the .npy file to write, or file.npz:member, file.safetensors:tensor")
    .option("--dtype <name>", DTYPES.join(", "), oneOf(DTYPES))
    .option(...OPTION.as)
    .option("--from-layout <layout>", layouts.join(", "), oneOf(layouts, LAYOUT_ALIASES))
    .option("--to-layout <layout>", "a layout of the same kind", oneOf(layouts, LAYOUT_ALIASES))
    .option(...OPTION.force)
    .option(...OPTION.json)
    .addHelpText("after", CONVERT_EXAMPLES)
    .action(async (input, out, options) => {
      const { convertTensor } = await import("./tensor_files.ts");
      report(out, options.json, await convertTensor(input, out, options));
    });
}

function diffCommand() {
  return new Command("diff")
    .description("Measure the error of a tensor against a reference.")
    .argument("<got>", "the tensor to judge")
    .argument("<reference>", "the tensor to judge it by")
    .option("--max-rel-l2 <error>", "largest relative L2 error to pass", parseNumber, 1e-5)
    .option(...OPTION.as)
    .option(...OPTION.json)
    .addHelpText("after", DIFF_EXAMPLES)
    .action(async (got, reference, { maxRelL2, as, json }) => {
      const { diffTensors, diffReport } = await import("./tensor_info.ts");
      const diff = await diffTensors(got, reference, { maxRelL2, as });
      printer("stdout").line(json ? JSON.stringify(diff) : diffReport(diff));
      if (diff.verdict !== "pass") {
        throw new ExitCode(diff.verdict === "fail" ? EXIT.accuracy : EXIT.usage);
      }
    });
}

function showCommand() {
  return new Command("show")
    .description("Draw an image, or one channel, as a PNG.")
    .argument("<file>", "the tensor to read")
    .argument("<out>", "the .png file to write")
    .option("--index <n>", "which image of a batch", wholeNumber(0), 0)
    .option("--channel <c>", "the channel to show alone", wholeNumber(0))
    .option("--layout <layout>", PICTURE_LAYOUTS.join(", "), oneOf(PICTURE_LAYOUTS))
    .option("--range <min,max>", "values of black and white", parseRange)
    .option(...OPTION.as)
    .option(...OPTION.force)
    .option(...OPTION.json)
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
