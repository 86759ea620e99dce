import { algorithmNames } from "../algorithms/registry.ts";
import { Command } from "#cli-types";
import { benchGroups, groupFeatures, recordCount } from "../bench/bench_plan.ts";
import {
  checkBench,
  type CheckPlan,
  type CheckResult,
  checkSuite,
  missingCases,
} from "../bench/check_suite.ts";
import type { RunHooks } from "../run/run_group.ts";
import { parseSuite } from "../bench/suite.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { BACKENDS } from "../gpu/provider.ts";
import { writeOutput } from "../npy/mod.ts";
import { CONV_DTYPES, OPERATIONS } from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import type { CaseColumnName } from "../report/case_columns.ts";
import { environmentRecord } from "../report/environment.ts";
import { junitXml } from "../report/junit.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import checkText from "../../fixtures/check.txt" with { type: "text" };
import { readBaseline, updateBaseline } from "./check_baseline.ts";
import {
  failedLine,
  junitCases,
  resultLines,
  saveFailure,
  shownCase,
  summaryLine,
} from "./check_report.ts";
import { commandWrites } from "./failure.ts";
import { matchOption, oldMatch, parsePattern } from "./match_option.ts";
import { caseProgress } from "./case_progress.ts";
import { caseRows } from "./case_rows.ts";
import { onInterrupt } from "./interrupt.ts";
import { reporter, sayFailed } from "./output.ts";
import { verdictPainter } from "./talk.ts";
import { terminalColumns } from "./terminal.ts";
import { FORCE_HELP, proveOutputs } from "./outputs.ts";
import { openRecords } from "./record_stream.ts";
import { printable } from "../printable.ts";
import { comingCases, openExecutor } from "./records.ts";
import {
  ignoredClause,
  noteIgnored,
  type ReadSuites,
  readSuites,
  SUITE_HELP,
} from "./suite_option.ts";
import { COLUMNS_HELP, parseColumns, parseSort, SORT_HELP } from "./table_options.ts";
import { ADAPTER_HELP } from "./gpu_choice.ts";
import {
  gather,
  oneOf,
  parsePolicies,
  pathOr,
  refuseOptions,
  someOf,
  splitTiles,
  wholeNumber,
} from "./values.ts";

const EXAMPLES = `
Every case must pass the accuracy gate, and be about as exact as the baseline says: a relative L2 error
up to 1.5 times, a bound ratio up to twice as large as there (somewhat more where few outputs are
compared) counts as the difference between drivers, and so does what is below one rounding of the
result. Every device runs the same kernels: plans are made for the limits that all devices have. The
baseline that is built in is lavapipe's; one of your own (--baseline, --update) holds your device to
what it shows itself.
Without --suite it checks a suite and a baseline of its own, which takes about four minutes on two cores
without a GPU, and with --quick a third of one; where the driver has not compiled its kernels before, two
minutes with --quick and longer without.
On the CPU (--device cpu) the reference's blocked sums are held, rounded, against sums taken one by one:
it says whether this machine's reference is right, and nothing of kernels.

Examples:
  wgconv check
  wgconv check --quick
  wgconv check --algorithm direct,implicit-gemm --layout nchw --junit check.xml --save-failures failed
  wgconv check --suite layers.txt --baseline layers.json --update
  wgconv check --suite layers.txt --baseline layers.json

Exit 1: a case fails, was more exact in the baseline, or is there and did not run. Exit 2: nothing ran.
Exit 5: a case did not run to its end.`;

/** Problems of the built-in suite that reach every algorithm. */
export const QUICK = /n"(normal_3x3|filter_5x5|stride2_3x3|groups_4|depthwise)"$/;

/** What a table of a check shows unless it is asked for more. */
const CHECK_COLUMNS: readonly CaseColumnName[] = [
  "problem",
  "op",
  "dtype",
  "layout",
  "algorithm",
  "mare",
  "l2",
  "bound",
  "verdict",
];

/** `wgconv check`: the accuracy check of a CI. */
export function checkCommand(hooks: Pick<RunHooks, "alterPlan"> = {}) {
  return new Command("check")
    .description("Check the accuracy of a suite against the gate and a baseline; for CI.")
    .option("--suite <file|name>", SUITE_HELP, gather)
    .option("--match <regex>", "only problems whose descriptor and name it matches", parsePattern)
    .addOption(oldMatch())
    .option("--op <list>", OPERATIONS.join(", "), someOf(OPERATIONS), [...OPERATIONS])
    .option("--algorithm <list>", algorithmNames().join(", "), someOf(algorithmNames()), [
      ...algorithmNames(),
    ])
    .option("--layout <list>", LAYOUTS.join(", "), someOf(LAYOUTS, LAYOUT_ALIASES), [
      "nchw" as const,
      "nhwc" as const,
    ])
    .option("--policy <list>", "tile policies; auto is the planner's choice", parsePolicies, [
      "auto",
    ])
    .option("--tile <list>", "Winograd tiles; auto is the planner's choice", splitTiles, ["auto"])
    .option("--dtype <list>", CONV_DTYPES.join(", "), someOf(CONV_DTYPES), ["f32" as const])
    .option(
      "--fill <kind>",
      `${FILL_KINDS.join(", ")}; default uniform01, of i8 int8`,
      oneOf(FILL_KINDS),
    )
    .option("--seed <n>", "seed of the data", wholeNumber(0), 1)
    .option(
      "--baseline <file>",
      "the accuracy that cases had; none holds them against the gate only",
      pathOr("none"),
    )
    .option("--update", "write the baseline anew, showing what changes")
    .option("--junit <file>", "write the results as JUnit XML")
    .option("--jsonl <file>", "write a record a case; - is stdout, and the report goes to stderr")
    .option("--json", "as --jsonl -")
    .option(
      "--force",
      `${FORCE_HELP}; begin a baseline of other data anew`,
    )
    .option("--quick", "five problems of the built-in suite, which reach every algorithm")
    .option("--save-failures <dir>", "save the tensors of each failure there, as .npz")
    .option("--columns <list>", `a table of all cases; ${COLUMNS_HELP}`, parseColumns)
    .option("--sort <column>", `a table of all cases; ${SORT_HELP}`, parseSort)
    .option("--verbose", "say which algorithms cannot do what")
    .option(
      "--device <name>",
      "gpu, or cpu: the reference, held against sums that are taken one by one; no driver needed",
      oneOf(["gpu", "cpu"] as const),
      "gpu" as const,
    )
    .option("--backend <name>", "WebGPU of wgpu or dawn", oneOf(BACKENDS), "wgpu" as const)
    .option("--adapter <index|name>", ADAPTER_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (options, command) => {
      const suites = readSuites(options.suite, command);
      const plan = checkPlan(options, suites);
      const { baseline: path, junit, saveFailures, force } = options;
      const jsonl = options.json ? "-" : options.jsonl;
      const baselineFile = path === "none" ? undefined : path;
      await proveOutputs([
        { option: "--junit", path: junit, kind: "file", endings: [".xml"] },
        { option: "--jsonl", path: jsonl, kind: "records" },
        {
          option: "--save-failures",
          path: saveFailures,
          kind: "folder",
          endings: [".npz"],
        },
        ...(options.update
          ? [{ option: "--baseline", path: baselineFile, kind: "merged" as const }]
          : []),
      ], { inputs: [...suites.files, ...(options.update ? [] : [baselineFile])], force });
      const baseline = readBaseline(options);
      const stream = jsonl === "-" ? "stderr" : "stdout";
      const out = reporter(stream);
      const paint = verdictPainter(stream);
      const shown = caseProgress();
      const { sort, columns = sort && CHECK_COLUMNS } = options;
      const writes = commandWrites();
      using records = openRecords(jsonl, writes, { force });
      let adapter = "";
      const groups = benchGroups(checkBench(plan));
      const count = recordCount(groups);
      const rows = columns && caseRows(comingCases(groups), { columns, sort }, out, {
        paint,
        reasons: false,
        room: terminalColumns(stream),
      });
      const open = async () => {
        const executor = await openExecutor(
          options,
          groupFeatures(groups),
          checkBench(plan).planning,
        );
        if (adapter === "") records.write(environmentRecord(executor.device, options.seed));
        adapter = executor.device.adapter;
        return executor;
      };
      const results: CheckResult[] = [];
      using _ = onInterrupt(() => {
        return `stopped after ${results.length} of ${count} cases; --match and --quick check fewer`;
      });
      const skipped = new Set<string>();
      const onSkip = (what: string, reason: string) => {
        if (options.verbose) skipped.add(`skipped: ${what}: ${reason}`);
      };
      for await (
        const result of checkSuite(plan, baseline, open, shown.begin, { ...hooks, onSkip })
      ) {
        records.write(result.record);
        const saved = await writes.attempt(() => saveFailure(result, saveFailures));
        // A line a case where no other line says how far it is.
        const each = rows === undefined && !shown.visible;
        const lines = resultLines(result, options.backend, saved, each);
        if (rows !== undefined || lines.length > 0) shown.done();
        rows?.add(shownCase(result));
        lines.forEach((line) => out.painted(paint(printable(line))));
        const bad = failedLine(result, options.update === true);
        if (bad !== undefined) sayFailed(bad);
        // The tensors are not needed any more.
        const { ran: _, ...kept } = result;
        results.push(kept);
      }
      shown.done();
      rows?.end();
      const missing = baseline ? missingCases(plan, baseline, results) : [];
      if (junit !== undefined) {
        const xml = new TextEncoder().encode(
          junitXml("wgconv check", junitCases(results, missing)),
        );
        await writes.attempt(() => writeOutput(junit, (write) => write(xml)));
      }
      const ran = results.some(({ status }) => status !== "error" && status !== "empty");
      const updating = options.update === true && ran;
      if (updating) {
        await writes.attempt(() => updateBaseline(options, plan, results, adapter, out.line));
      }
      const lost = updating ? [] : missing;
      for (const key of lost) {
        const line = `missing: ${key}: the baseline has it, it did not run`;
        out.message(line);
        sayFailed(line);
      }
      skipped.forEach((line) => out.message(line));
      noteIgnored(suites);
      out.line(summaryLine(results, lost, adapter));
      writes.conclude(checkExitCode(results, lost, updating));
    });
}

/** What the options parse to. */
type CheckOptions = ReturnType<ReturnType<typeof checkCommand>["opts"]>;

/** The exit code of a check: nothing that ran is no success either. */
export function checkExitCode(
  results: readonly Pick<CheckResult, "status">[],
  missing: readonly string[],
  updating: boolean,
): number {
  const has = (...statuses: CheckResult["status"][]) =>
    results.some(({ status }) => statuses.includes(status));
  if (!has("pass", "new", "regressed", "fail")) return EXIT.usage;
  if (has("fail") || missing.length > 0) return EXIT.accuracy;
  if (has("regressed") && !updating) return EXIT.accuracy;
  return has("error") ? EXIT.internal : EXIT.ok;
}

/** The plan of the options. */
function checkPlan(options: CheckOptions, suites: ReadSuites): CheckPlan {
  const { suite = [], device, algorithm, policy, tile } = options;
  if (options.quick) {
    refuseOptions("Cannot check: --quick chooses the problems", {
      suite: suite.length > 0,
      match: options.match ?? options.filter,
    });
  }
  const pattern = options.quick ? QUICK : matchOption(options);
  const problems = suite.length === 0 ? parseSuite(checkText, "check.txt") : suites.problems;
  const kept = problems.filter((problem) => pattern?.test(printDescriptor(problem)) ?? true);
  if (kept.length === 0) {
    throw new InputTypeError(
      problems.length === 0
        ? `Cannot check: ${suite.join(", ")} holds no problem${ignoredClause(suites)}`
        : `Cannot check: ${pattern} matches none of ${problems.length} problems`,
    );
  }
  if (device === "cpu") {
    refuseOptions("Cannot check: the CPU computes with the reference itself", {
      algorithm: algorithm.length < algorithmNames().length,
      policy: policy.join() !== "auto",
      tile: tile.join() !== "auto",
    });
  }
  return {
    problems: kept,
    ops: options.op,
    dtypes: options.dtype,
    layouts: options.layout,
    algorithms: device === "cpu" ? ["reference"] : algorithm,
    policies: policy,
    tiles: tile,
    fill: options.fill,
    seed: options.seed,
    filter: pattern,
  };
}
