import { Command, InvalidArgumentError, Option } from "#cli-types";
import { EXIT, InputTypeError } from "../errors.ts";
import { compareRuns } from "../report/comparison.ts";
import {
  comparisonData,
  comparisonMarkdown,
  comparisonText,
  percent,
} from "../report/comparison_views.ts";
import { haveCasesInCommon, type PairBy } from "../report/pair_cases.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { USUAL_MARGIN, USUAL_THRESHOLD } from "../report/speed_change.ts";
import { ExitCode } from "./failure.ts";
import { printer, reporter } from "./output.ts";
import { readRecordFiles } from "./record_files.ts";
import { verdictPainter } from "./talk.ts";
import { terminalColumns } from "./terminal.ts";
import { oneOf } from "./values.ts";

const EXAMPLES = `
A folder stands for the .jsonl files in it, so that a run's shards are one side; of two records of
one case the later counts. Cases are paired by problem (names and spelling apart), op, dtype,
epilogue, provider, layout and algorithm, and by kernel where a side has several of one case; with
--by best the fastest right record of each problem, op, dtype and epilogue is taken on each side.
Best is the default where the sides have no provider in common, such as wgconv and cuDNN. Where each
side is of one provider and they have cases in common, the providers are tags of runs (before, after).
Each case that is not compared is counted, with the reason.

Speed-up is the base's median time over the new one's. Its verdict:
  SAME       the medians differ by no more than --margin; or by no more than --threshold, where
             neither test below sees a difference
  FASTER,    beyond the margin, and both tests agree: a two-sided Mann-Whitney rank test of the
  SLOWER     samples (p < 0.01), and noise intervals (median and 3 median absolute deviations on
             both sides) that do not meet
  AMBIGUOUS  everything else, with its reason: the tests disagree, noise hides a difference that
             would matter, samples are missing or too few (4 a side), clocks or caches differ

Accuracy regresses when a verdict becomes fail or error, or when, on the same data, the bound ratio
or relative L2 error is more than 1.5 times the base's and beyond the stricter record's limit. A wrong
result of the new run exits 1 though it was wrong before, or is not in the base.

Examples:
  wgconv compare base.jsonl new.jsonl
  wgconv compare base.jsonl new.jsonl --threshold 10% --markdown >> "$GITHUB_STEP_SUMMARY"
  wgconv compare cudnn.jsonl wgconv.jsonl
  wgconv compare all.jsonl all.jsonl --provider cudnn,wgconv

Exit 1: accuracy regressed, or a result is wrong. Exit 4: a case is SLOWER beyond --threshold. Exit 2: nothing matched.
Where only some cases are compared, the exit code is theirs.`;

/** `wgconv compare`: two runs, case by case. */
export function compareCommand() {
  return new Command("compare")
    .description("Compare two runs' records: accuracy by an exact rule, speed by a rank test.")
    .argument("<base>", "records to compare with: a .jsonl file, or a folder of them")
    .argument("<new>", "records to compare")
    .addOption(
      new Option("--threshold <percent>", "slower by more is a regression")
        .argParser(fraction).default(USUAL_THRESHOLD, "5%"),
    )
    .addOption(
      new Option("--margin <percent>", "runs of one program differ by this much")
        .argParser(fraction).default(USUAL_MARGIN, "2%"),
    )
    .option(
      "--by <what>",
      "best or algorithm (default: see below)",
      oneOf<PairBy>(["best", "algorithm"]),
    )
    .option("--provider <list>", "the base's provider and the new one's, or one for both")
    .option("--json", "print JSON")
    .option("--markdown", "print Markdown")
    .addHelpText("after", EXAMPLES)
    .action(async (basePath, newPath, options) => {
      const [ours, theirs] = parseProviders(options.provider);
      const base = only(await readCases(basePath), ours, basePath);
      const next = only(await readCases(newPath), theirs, newPath);
      const rule = { threshold: options.threshold, margin: options.margin };
      const comparison = compareRuns(base, next, options.by ?? defaultBy(base, next), rule);
      const out = printer("stdout");
      if (options.json) out.line(JSON.stringify(comparisonData(comparison), null, 2));
      if (comparison.exitCode === EXIT.usage) {
        throw new InputTypeError(
          `Cannot compare: no case of ${newPath} (${count(next)}) matches one of ` +
            `${basePath} (${count(base)})` +
            comparison.uncomparedLines.slice(-1).map((line) => `: ${line}`).join(""),
        );
      }
      if (options.markdown) out.line(comparisonMarkdown(comparison));
      else if (!options.json) {
        out.painted(
          comparisonText(comparison, verdictPainter("stdout"), terminalColumns("stdout")),
        );
      }
      if (options.json) {
        comparison.uncomparedLines.forEach((line) => reporter("stderr").message(`note: ${line}`));
      }
      if (comparison.exitCode !== EXIT.ok) throw new ExitCode(comparison.exitCode);
    });
}

/** Parses `5%`, `5` (percent) or `0.05%`. */
function fraction(text: string): number {
  const value = Number(text.replace(/%$/, "")) / 100;
  if (!/^\d+(\.\d+)?%?$/.test(text) || !Number.isFinite(value)) {
    throw new InvalidArgumentError(`expected a percentage such as ${percent(0.05)}.`);
  }
  return value;
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

/** @throws {TypeError} where a file has no cases, or none of the provider. */
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
    `Cannot compare: no case of ${path} is of --provider "${provider}", it has ${there}`,
  );
}

function defaultBy(base: readonly ReadCase[], next: readonly ReadCase[]): PairBy {
  const providers = new Set(base.map(({ provider }) => provider));
  const common = next.some(({ provider }) => providers.has(provider));
  return common || haveCasesInCommon(base, next) ? "algorithm" : "best";
}

function count({ length }: readonly ReadCase[]): string {
  return length === 1 ? "1 case" : `${length} cases`;
}
