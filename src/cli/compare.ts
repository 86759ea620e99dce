import { Command, Option } from "#cli-types";
import { EXIT, InputTypeError } from "../errors.ts";
import { compareRuns } from "../report/comparison.ts";
import { comparisonData, comparisonMarkdown, comparisonText } from "../report/comparison_views.ts";
import { counted } from "../report/format.ts";
import { haveCasesInCommon, type PairBy } from "../report/pair_cases.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { USUAL_MARGIN, USUAL_THRESHOLD } from "../report/speed_change.ts";
import { ExitCode } from "./failure.ts";
import { printer, reporter, terminalColumns, verdictPainter } from "./output.ts";
import { readRecordFiles } from "../report/read_records.ts";
import { fraction, oneOf } from "./values.ts";
import { refuseTogether } from "./refuse.ts";
import { OPTION } from "./shared_options.ts";

const EXAMPLES = `
A folder stands for the .jsonl files in it. If a case has several records, the last one counts.
Cases are paired by problem, op, dtype, epilogue, provider, layout and algorithm. --by best takes the fastest
correct record of each problem, op, dtype and epilogue on each side; it is the default if the sides share no
provider, such as wgconv and cuDNN. Cases without a pair are counted, with the reason.

Speed-up is the base's median time over the new one's. Its verdict:
  SAME       the medians differ by at most --margin, or by at most --threshold and no test below
             sees a difference
  FASTER,    they differ by more, and both tests agree: a two-sided Mann-Whitney rank test (p < 0.01),
  SLOWER     and noise intervals (median +- 3 median absolute deviations) that do not overlap
  AMBIGUOUS  everything else, with the reason, such as fewer than 4 samples a side

Accuracy regresses when a verdict becomes fail or error, or when, on the same data, the bound ratio or the
relative L2 error is more than 1.5 times the base's and above the stricter record's limit.

Examples:
  wgconv compare base.jsonl new.jsonl
  wgconv compare base.jsonl new.jsonl --threshold 10% --markdown >> "$GITHUB_STEP_SUMMARY"
  wgconv compare cudnn.jsonl wgconv.jsonl
  wgconv compare all.jsonl all.jsonl --provider cudnn,wgconv

Exit 1: accuracy regressed, or a new result is wrong, even if it was wrong before. Exit 2: nothing matched.
Exit 4: a case is SLOWER by more than --threshold.`;

/** `wgconv compare`: two runs, case by case. */
export function compareCommand() {
  return new Command("compare")
    .description("Compare the records of two runs: is each case as exact and as fast?")
    .argument("<base>", "records to compare with: a .jsonl file, or a folder of them")
    .argument("<new>", "records to compare")
    .addOption(
      new Option("--threshold <percent>", "a case slower by more than this regresses")
        .argParser(fraction).default(USUAL_THRESHOLD, "5%"),
    )
    .addOption(
      new Option("--margin <percent>", "treat differences below this as noise")
        .argParser(fraction).default(USUAL_MARGIN, "2%"),
    )
    .option(
      "--by <what>",
      "how to pair cases: algorithm or best; default: see below",
      oneOf<PairBy>(["best", "algorithm"]),
    )
    .option("--provider <list>", "provider of the base and of the new run, or one for both")
    .option("--weighted", "also the speed-up of the total time, layers counted by their names (*N)")
    .option(...OPTION.json)
    .option("--markdown", "print Markdown")
    .addHelpText("after", EXAMPLES)
    .action(async (basePath, newPath, options) => {
      refuseTogether("Cannot compare", { json: options.json, markdown: options.markdown });
      const [ours, theirs] = parseProviders(options.provider);
      const base = only(await readCases(basePath), ours, basePath);
      const next = only(await readCases(newPath), theirs, newPath);
      const rule = { threshold: options.threshold, margin: options.margin };
      const comparison = compareRuns(base, next, options.by ?? defaultBy(base, next), rule);
      const out = printer("stdout");
      if (options.json) out.line(JSON.stringify(comparisonData(comparison), null, 2));
      if (comparison.exitCode === EXIT.usage) {
        throw new InputTypeError(
          `Cannot compare: no case of ${newPath} (${
            counted(next.length, "case")
          }) matches one of ` +
            `${basePath} (${counted(base.length, "case")})` +
            comparison.uncomparedLines.slice(-1).map((line) => `: ${line}`).join(""),
        );
      }
      const { weighted } = options;
      if (options.markdown) out.line(comparisonMarkdown(comparison, { weighted }));
      else if (!options.json) {
        out.painted(
          comparisonText(comparison, verdictPainter("stdout"), {
            room: terminalColumns("stdout"),
            weighted,
          }),
        );
      }
      if (options.json) {
        comparison.uncomparedLines.forEach((line) => reporter("stderr").message(`note: ${line}`));
      }
      if (comparison.exitCode !== EXIT.ok) throw new ExitCode(comparison.exitCode);
    });
}

async function readCases(path: string): Promise<readonly ReadCase[]> {
  return (await readRecordFiles([path])).cases;
}

/** The providers of the base and of the new run; nothing stands for all. */
function parseProviders(text: string | undefined): [string | undefined, string | undefined] {
  if (text === undefined) return [undefined, undefined];
  const names = text.split(",").map((name) => name.trim());
  if (names.length > 2 || names.includes("")) {
    throw new InputTypeError(`Cannot compare: --provider is "${text}", expected one name or two`);
  }
  return [names[0], names[1] ?? names[0]];
}

function only(
  cases: readonly ReadCase[],
  provider: string | undefined,
  path: string,
): readonly ReadCase[] {
  if (cases.length === 0) {
    throw new InputTypeError(`Cannot compare: no record of a case in ${path}`);
  }
  if (provider === undefined) return cases;
  const own = cases.filter((record) => record.provider === provider);
  if (own.length > 0) return own;
  const there = [...new Set(cases.map((record) => `"${record.provider}"`))].join(", ");
  throw new InputTypeError(
    `Cannot compare: no case of ${path} has --provider "${provider}", only ${there}`,
  );
}

function defaultBy(base: readonly ReadCase[], next: readonly ReadCase[]): PairBy {
  const providers = new Set(base.map(({ provider }) => provider));
  const common = next.some(({ provider }) => providers.has(provider));
  return common || haveCasesInCommon(base, next) ? "algorithm" : "best";
}
