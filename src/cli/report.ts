import { delimitedTable, networkTotals, recordTable } from "../report/case_table.ts";
import { basename, extname } from "node:path";
import { Command, InvalidArgumentError } from "#cli-types";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { writeText } from "../npy/atomic_write.ts";
import { printable, printableMessage } from "../printable.ts";
import { latestCases } from "../report/case_key.ts";
import { counted } from "../report/format.ts";
import { onlyCases, readRecordFiles, recordFiles, type RecordSet } from "../report/read_records.ts";
import {
  type Network,
  networkLines,
  networksOf,
  networkTable,
  networkTrace,
  uncountedLayers,
} from "../report/network.ts";
import { recordCeilings, sortCases } from "../report/case_columns.ts";
import { makerOf } from "../report/speedups.ts";
import { markdownTable, textTable } from "../report/table.ts";
import { reporter, terminalColumns, verdictPainter } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { TABLE, type TableOptions } from "./table_options.ts";
import { oneOf } from "./values.ts";
import { givenOptions, refuseOptions, refuseTogether } from "./refuse.ts";
import { OPTION } from "./shared_options.ts";

const FORMATS = ["table", "json", "csv", "tsv", "markdown", "html"] as const;

const ENDINGS: Readonly<Record<string, typeof FORMATS[number]>> = {
  ".html": "html",
  ".htm": "html",
  ".csv": "csv",
  ".tsv": "tsv",
  ".md": "markdown",
  ".json": "json",
  ".jsonl": "json",
};

const EXAMPLES = `
A folder stands for the .jsonl files in it. If a case has several records, the last one counts.

--only takes operations, providers, algorithms, dtypes, maths, layouts, verdicts and caches; any other word
is a part of a name or descriptor. Words of one kind are alternatives, different kinds all have to match.

The HTML page is one file without scripts.
Rooflines show an H200's ceilings; --peak-tflops and --bandwidth give those of other devices.

--network takes the fastest record of each layer, times the count in its name (n"net_conv2*4"), beside those
of other providers.

Examples:
  wgconv report run.jsonl
  wgconv report resnet50.jsonl cudnn.jsonl --network --trace resnet50.json
  wgconv report shard*.jsonl --only fwd,bwd-data,nhwc --format markdown
  wgconv report wgconv.jsonl cudnn.jsonl --output report.html
  wgconv report run.jsonl --peak-tflops 82.6 --bandwidth 1008 --output report.html`;

/** `wgconv report`: views of records. */
export function reportCommand() {
  return new Command("report")
    .description("Show records as a table, CSV, TSV, Markdown, or an HTML page with charts.")
    .argument("<files...>", "records: .jsonl files, or folders of them")
    .option(
      "--format <name>",
      `${FORMATS.join(", ")}; default by the ending of --output, else table`,
      oneOf(FORMATS),
    )
    .option("--json", "same as --format json: one record per line")
    .option(...TABLE.columns)
    .option(...TABLE.sort)
    .option("--output <file>", "where the report goes; - is stdout", "-")
    .option(...OPTION.force)
    .option("--only <words>", "show only these cases: a list, see below", words)
    .option("--network", "where a network's time goes, layer by layer")
    .option("--trace <file>", "also write the network as a trace for Perfetto and Chrome")
    .option("--title <text>", "title of the HTML page", "wgconv report")
    .option("--baseline <provider>", "provider that the speed-ups of the HTML page compare with")
    .option("--peak-tflops <n>", "the device's TFLOP/s, for the roofline", positive)
    .option("--bandwidth <n>", "the device's memory bandwidth in GB/s, for the roofline", positive)
    .addHelpText("after", EXAMPLES)
    .action(async (files, options, command) => {
      const { output } = options;
      refuseTogether("Cannot report", { json: options.json, format: options.format });
      const format = options.json ? "json" : options.format ?? formatOf(output);
      if (options.columns !== undefined && format !== "table" && format !== "markdown") {
        throw new InputTypeError(
          `Cannot report: --columns applies to tables and Markdown, not to ${format}; one must go`,
        );
      }
      if (format !== "html") {
        const ofPages = givenOptions(command, ["title", "baseline"]);
        refuseOptions("Cannot report: only an HTML page has them", ofPages);
      }
      if (options.network) {
        const ofTables = givenOptions(command, ["columns", "sort"]);
        refuseOptions("Cannot report: --network has columns and an order of its own", ofTables);
      }
      const suit = Object.keys(ENDINGS).filter((one) => ENDINGS[one] === format);
      const endings = suit.length > 0 ? suit : [".txt", ...options.format ? [] : [".md", ".html"]];
      await proveOutputs([
        { option: "--output", path: output, kind: "file", endings },
        { option: "--trace", path: options.trace, kind: "file", endings: [".json"] },
      ], {
        inputs: await recordFiles(files),
        force: options.force,
      });
      const all = await readRecordFiles(files);
      const { cases, replaced } = latestCases(all.cases);
      const wanted = options.only ? onlyCases(cases, options.only) : cases;
      const shown = options.sort === undefined ? wanted : sortCases(wanted, options.sort);
      if (shown.length === 0) {
        throw new InputTypeError(`Cannot report: no record of a case in ${files.join(", ")}`);
      }
      const { baseline, peakTflops, bandwidth } = options;
      if (baseline !== undefined && shown.every((one) => makerOf(one) !== baseline)) {
        throw new InputRangeError(`Cannot report: no record has the provider "${baseline}"`);
      }
      const records: RecordSet = { ...all, cases: shown };
      const given = {
        ...(peakTflops === undefined ? {} : { peak: peakTflops * 1000 }),
        ...(bandwidth === undefined ? {} : { bandwidth }),
      };
      const networks = options.network || options.trace !== undefined
        ? networksOf(
          options.only ? onlyCases(all.cases, options.only) : all.cases,
          (record) => ({ ...recordCeilings(record), ...given }),
        )
        : [];
      if (options.trace !== undefined) await writeText(options.trace, networkTrace(networks));
      if (options.network) {
        for (const line of uncountedLayers(all.cases)) {
          reporter("stderr").message(printableMessage(`wgconv: note: not counted: ${line}`));
        }
        return await writeText(output, networkReport(networks, format, output !== "-"));
      }
      const report = await view(records, format, {
        title: options.title,
        sources: files.map((file) => basename(file)),
        ...(baseline === undefined ? {} : { baseline }),
        ceilings: given,
      }, { columns: options.columns, toFile: output !== "-" });
      await writeText(output, report);
      if (replaced > 0) {
        const said = counted(replaced, "record");
        reporter("stderr").line(`replaced by later records of the same case: ${said}`);
      }
    });
}

/**
 * Where the time of networks goes.
 *
 * @throws {TypeError} for a format that has no such view.
 */
function networkReport(
  networks: readonly Network[],
  format: typeof FORMATS[number],
  toFile: boolean,
): string {
  if (format !== "table" && format !== "markdown") {
    throw new InputTypeError(
      `Cannot report: --network is a table or Markdown, not ${format}; the HTML page shows it anyhow`,
    );
  }
  return networks.map((network) => {
    const { columns, rows } = networkTable(network);
    const lines = networkLines(network).map(printableMessage);
    return format === "markdown"
      ? `${markdownTable(columns, rows)}\n\n${lines.map((line) => `- ${line.trim()}\n`).join("")}`
      : `${textTable(columns, rows, undefined, toFile ? undefined : terminalColumns("stdout"))}\n` +
        lines.map((line) => `${line}\n`).join("");
  }).join("\n");
}

/** The format of a report that no option says. */
export function formatOf(output: string): typeof FORMATS[number] {
  return ENDINGS[extname(output).toLowerCase()] ?? "table";
}

type Page = typeof import("../report/page.ts");

async function view(
  records: RecordSet,
  format: typeof FORMATS[number],
  page: Parameters<Page["reportPage"]>[1],
  { columns, toFile }: Pick<TableOptions, "columns"> & { readonly toFile: boolean },
): Promise<string> {
  const table = recordTable(records.cases, columns);
  const room = toFile ? undefined : terminalColumns("stdout");
  const verdict = toFile ? (text: string) => text : verdictPainter("stdout");
  const paint = (cell: string, column: number) =>
    table.columns[column]!.title === "verdict" ? verdict(cell) : cell;
  switch (format) {
    case "json":
      return records.cases.map((record) => `${printable(JSON.stringify(record))}\n`).join("");
    case "table":
      return [
        `${textTable(table.columns, table.rows, paint, room)}\n`,
        ...networkTotals(records.cases).map((line) => `${printableMessage(line)}\n`),
      ].join("");
    case "markdown":
      return `${markdownTable(table.columns, table.rows)}\n`;
    case "csv":
      return `${delimitedTable(records.cases, ",")}\r\n`;
    case "tsv":
      return `${delimitedTable(records.cases, "\t")}\n`;
    case "html":
      return printable(await (await import("../report/page.ts")).reportPage(records, page));
  }
}

function words(text: string): string[] {
  return text.split(",").map((word) => word.trim()).filter((word) => word !== "");
}

function positive(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || !(value > 0)) {
    throw new InvalidArgumentError("expected a number above 0.");
  }
  return value;
}
