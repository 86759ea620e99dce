import { Command, type CommandUnknownOpts } from "#cli-types";
import { InputRangeError } from "../errors.ts";
import { writeNpz } from "../npy/mod.ts";
import { SCALINGS } from "../winograd/scaling.ts";
import { parseTile } from "../winograd/tile.ts";
import { printer } from "./output.ts";
import { FORCE_HELP, proveOutputs } from "./outputs.ts";
import {
  describeTransform,
  latexText,
  matrixTensors,
  transformJson,
  transformReport,
  wgslText,
} from "./transform_report.ts";
import { givenOptions, oneOf, refuseOptions, refuseTogether, wholeNumber } from "./values.ts";

const FORMATS = ["fractions", "decimals", "latex", "wgsl", "json"] as const;

const EXAMPLES = `
F(n,r) computes n results of a filter of length r with n + r - 1 multiplications; F(n0xn1,r0xr1) nests two.
An .npz holds float64 matrices A (α x n), G (α x r) and D (α x α), or A0, G0, D0 and A1, G1, D1.

Examples:
  wgconv transform 'F(6,3)'
  wgconv transform 'F(2x2,3x3)' --length 4608
  wgconv transform 'F(4,3)' --format latex
  wgconv transform 'F(6,3)' --format wgsl --type vec4f
  wgconv transform 'F(6,3)' --output f63.npz`;

const FORMAT_OPTIONS = ["format", "type"];

/** `wgconv transform`: the matrices of a Winograd algorithm, what they cost and how exact they are. */
export function transformCommand(): CommandUnknownOpts {
  return new Command("transform")
    .description(
      "Print the exact matrices of Winograd's F(n,r), their operation counts and errors.",
    )
    .argument("<tile>", "F(n,r), or F(n0xn1,r0xr1)")
    .option("--format <name>", FORMATS.join(", "), oneOf(FORMATS), "fractions" as const)
    .option("--json", "same as --format json")
    .option(
      "--scaling <name>",
      `scaling of rows: ${SCALINGS.join(", ")}`,
      oneOf(SCALINGS),
      "none" as const,
    )
    .option("--length <L>", "products per output, for the error", wholeNumber(1))
    .option(
      "--type <name>",
      "type of WGSL: f32, vec2f, vec4f",
      oneOf(["f32", "vec2f", "vec4f"] as const),
      "f32" as const,
    )
    .option("--output <file.npz>", "write the matrices to this file too; - is stdout")
    .option("--force", FORCE_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (text, { json, scaling, length, type, output, force, ...options }, command) => {
      const { format: said = false, type: typed = false } = givenOptions(command, FORMAT_OPTIONS);
      refuseTogether("Cannot print", { json, format: said });
      const format = json ? "json" : options.format;
      if (format !== "wgsl") refuseOptions("Cannot print: only WGSL has types", { type: typed });
      const tile = parseTile(text);
      if (output && output !== "-" && !output.endsWith(".npz")) {
        throw new InputRangeError(`Cannot write ${output}: several matrices need an .npz`);
      }
      await proveOutputs([{ option: "--output", path: output, kind: "archive" }], { force });
      const description = describeTransform(tile, scaling, length);
      const out = printer(output === "-" ? "stderr" : "stdout");
      if (format === "json") out.line(transformJson(description));
      else if (format === "latex") out.line(latexText(description));
      else if (format === "wgsl") out.line(wgslText(description, type));
      else out.line(transformReport(description, format));
      if (output !== undefined) await writeNpz(output, matrixTensors(description));
    });
}
