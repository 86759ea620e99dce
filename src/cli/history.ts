import { Command, Option } from "#cli-types";
import { EXIT, InputTypeError, isInputError } from "../errors.ts";
import { writeText } from "../npy/atomic_write.ts";
import { printable } from "../printable.ts";
import { readText } from "../read_text.ts";
import { collectHistory } from "../report/history.ts";
import { historyData, historyText } from "../report/history_views.ts";
import { CutOffError, eachRecord, recordFiles } from "../report/read_records.ts";
import { USUAL_MARGIN, USUAL_THRESHOLD } from "../report/speed_change.ts";
import { ExitCode } from "./failure.ts";
import { printer, reporter, terminalColumns, verdictPainter } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { fraction, positiveNumber } from "./values.ts";
import { OPTION } from "./shared_options.ts";

const EXAMPLES = `
A folder stands for the .jsonl files in it. Runs are ordered by date, and named by their --tag commit=...,
other tags or date. Records with the same tags are one run.

A case is compared with the last run that changed it, or else its first, by the tests of compare. It is SLOWER
or FASTER if it differs by more than --threshold, and so does its next run. Devices are not compared with each other.
Damaged lines are reported, and the rest of their file is left out. Exit 2: a line is damaged, beyond a last one
that was cut off. Verdicts do not change the exit code.

Examples:
  wgconv bench --suite resnet3x3 --tag commit=$(git rev-parse --short HEAD) --jsonl runs/$(date +%s).jsonl
  wgconv history runs --output history.html`;

/** `wgconv history`: what changed over many runs. */
export function historyCommand() {
  return new Command("history")
    .description(
      "Show how time, error and share of peak changed over many runs, and which run did it.",
    )
    .argument("<files...>", "records of runs: folders of .jsonl files, or files")
    .option("--output <file>", "also write an HTML page with charts")
    .option(...OPTION.json)
    .option(...OPTION.force)
    .addOption(
      new Option("--threshold <percent>", "smaller changes of time are not shown")
        .argParser(fraction).default(USUAL_THRESHOLD, "5%"),
    )
    .option("--peak-tflops <n>", "the device's TFLOP/s, for the share of peak", positiveNumber)
    .addHelpText("after", EXAMPLES)
    .action(async (paths, { output, json, force, threshold, peakTflops }) => {
      const files = await recordFiles(paths);
      await proveOutputs([
        { option: "--output", path: output, kind: "file", endings: [".html", ".htm"] },
      ], { inputs: files, force });
      const collector = collectHistory(
        peakTflops === undefined ? {} : { peak: 1000 * peakTflops },
      );
      const leftOut: string[] = [];
      let code: number = EXIT.ok;
      for (const file of files) {
        try {
          collector.add(eachRecord(readText(file), file), file);
        } catch (error) {
          if (!isInputError(error)) throw error;
          leftOut.push(error.message);
          if (!(error instanceof CutOffError)) code = EXIT.usage;
        }
      }
      const history = collector.end({ threshold, margin: Math.min(threshold, USUAL_MARGIN) });
      if (history.cases.length === 0) {
        throw new InputTypeError(
          leftOut[0] ?? `Cannot show a history: no record of a case in ${paths.join(", ")}`,
        );
      }
      for (const line of leftOut) {
        printer("stderr").message(`wgconv: ${line}; the rest of the file is left out`);
      }
      const stream = output === "-" ? "stderr" : "stdout";
      if (json) printer(stream).line(JSON.stringify(historyData(history), null, 2));
      else {
        printer(stream).painted(
          historyText(history, verdictPainter(stream), terminalColumns(stream)),
        );
      }
      if (output !== undefined) {
        const { historyPage } = await import("../report/history_page.ts");
        await writeText(output, printable(await historyPage(history, leftOut)));
        if (output !== "-") reporter("stdout").message(`written: ${output}`);
      }
      if (code !== EXIT.ok) throw new ExitCode(code);
    });
}
