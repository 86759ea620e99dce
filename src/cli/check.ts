import { oneOf, pathOr, someOf } from "./values.ts";
import { refuseOptions, refuseTogether } from "./refuse.ts";
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
import type { RunHooks } from "../bench/run_group.ts";
import { parseSuite } from "../bench/suite.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { writeText } from "../npy/atomic_write.ts";
import { OPERATIONS } from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import type { CaseColumnName } from "../report/case_columns.ts";
import { junitXml } from "../report/junit.ts";
import { LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import checkText from "../../fixtures/check.txt" with { type: "text" };
import {
  failedLine,
  junitCases,
  readBaseline,
  resultLines,
  saveFailure,
  shownCase,
  summaryLine,
  updateBaseline,
} from "./check_report.ts";
import { commandWrites } from "./failure.ts";
import {
  caseProgress,
  onInterrupt,
  reporter,
  sayFailed,
  terminalColumns,
  verdictPainter,
} from "./output.ts";
import { caseRows, endEmptyPart, shardOf, TABLE } from "./table_options.ts";
import { proveOutputs } from "./outputs.ts";
import { openRecords } from "./record_stream.ts";
import { printable } from "../printable.ts";
import { comingCases, openExecutor } from "./records.ts";
import { ignoredClause, noteIgnored, type ReadSuites, readSuites, SUITE } from "./suite_option.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { environmentRecord } from "../report/environment.ts";
import { PROBLEM } from "./problem_options.ts";

const EXAMPLES = `
A case passes if it passes the accuracy gate and is about as exact as the baseline. Drivers differ, so a
relative L2 error of 1.5 times the baseline's passes, and twice its bound ratio. Every device runs the same
kernels here, planned for the limits that all devices have. The built-in baseline is lavapipe's (a driver for
CPUs); write one for your device with --baseline and --update.
The built-in suite takes about four minutes on two CPU cores, --quick about 80 seconds. The first run takes
two minutes more, in which the driver compiles the kernels.
--columns and --sort print a table of all cases in place of a line for each failure.
--device cpu tests the reference of this machine, not the kernels, and needs no driver.

Examples:
  wgconv check --quick
  wgconv check --algorithm direct,implicit-gemm --layout nchw --junit check.xml --save-failures failed
  wgconv check --suite layers.txt --baseline layers.json --update

Exit 1: a case fails, is less exact than the baseline, or is in the baseline and did not run.
Exit 2: nothing ran. Exit 5: a case did not run to its end.`;

/** Problems of the built-in suite that reach every algorithm. */
export const QUICK = /n"(normal_3x3|filter_5x5|stride2_3x3|groups_4|depthwise)"$/;

/** What a table of a check shows unless it is asked for more. */
const CHECK_COLUMNS: readonly CaseColumnName[] = [
  ...["problem", "op", "dtype", "layout", "algorithm", "mare", "l2", "bound", "verdict"] as const,
];

/** `wgconv check`: the accuracy check of a CI. */
export function checkCommand(hooks: Pick<RunHooks, "alterPlan"> = {}) {
  return new Command("check")
    .description("Check the accuracy of many problems against the gate and a baseline, in CI.")
    .optionsGroup(GROUPS.common)
    .option("--quick", "only five problems of the built-in suite, which use every algorithm")
    .option(...SUITE.suite)
    .option(
      "--baseline <file>",
      "file of the errors to compare with; none for the gate alone; default the built-in one",
      pathOr("none"),
    )
    .option("--update", "write the baseline anew and show what changes")
    .option("--junit <file>", "write the results as JUnit XML")
    .option("--save-failures <dir>", "save the tensors of each failure there, as .npz")
    .option("--op <list>", OPERATIONS.join(", "), someOf(OPERATIONS), [...OPERATIONS])
    .option("--layout <list>", LAYOUTS.join(", "), someOf(LAYOUTS, LAYOUT_ALIASES), [
      "nchw" as const,
      "nhwc" as const,
    ])
    .option(...PROBLEM.dtypes)
    .option("--algorithm <list>", algorithmNames().join(", "), someOf(algorithmNames()), [
      ...algorithmNames(),
    ])
    .option(...SUITE.match)
    .optionsGroup(GROUPS.data)
    .option(...PROBLEM.fill)
    .option(...OPTION.seed)
    .optionsGroup(GROUPS.table)
    .option(...TABLE.jsonl)
    .option(...TABLE.json)
    .option(...TABLE.shard)
    .option(...TABLE.columns)
    .option(...TABLE.sort)
    .option("--verbose", "say which algorithms do not support which problems")
    .option("--force", `${OPTION.force[1]}; replace a baseline of other data`)
    .optionsGroup(GROUPS.device)
    .option(
      "--device <name>",
      "gpu, or cpu: check the reference itself, without a driver",
      oneOf(["gpu", "cpu"] as const),
      "gpu" as const,
    )
    .option(...OPTION.backend)
    .option(...OPTION.adapter)
    .optionsGroup(GROUPS.kernel)
    .option(...PROBLEM.policies)
    .option(...PROBLEM.tiles)
    .addHelpText("after", EXAMPLES)
    .action(async (options, command) => {
      const suites = await readSuites({ suite: options.suite }, command);
      const plan = checkPlan(options, suites);
      const { baseline: path, junit, saveFailures, force } = options;
      refuseTogether("Cannot check", { json: options.json, jsonl: options.jsonl });
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
        const xml = junitXml("wgconv check", junitCases(results, missing));
        await writes.attempt(() => writeText(junit, xml));
      }
      const ran = results.some(({ status }) => status !== "error" && status !== "empty");
      const updating = options.update === true && ran;
      if (updating) {
        await writes.attempt(() => updateBaseline(options, plan, results, adapter, out.line));
      }
      const lost = updating ? [] : missing;
      for (const key of lost) {
        const line = `missing: ${key}: it is in the baseline, but did not run`;
        out.message(line);
        sayFailed(line);
      }
      skipped.forEach((line) => out.message(line));
      noteIgnored(suites);
      out.line(summaryLine(results, lost, adapter));
      endEmptyPart(options.shard, results.length + lost.length);
      writes.conclude(checkExitCode(results, lost, updating));
    });
}

type CheckOptions = ReturnType<ReturnType<typeof checkCommand>["opts"]>;

/** The exit code of a check: nothing that ran is no success either. */
function checkExitCode(
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

function checkPlan(options: CheckOptions, suites: ReadSuites): CheckPlan {
  const { suite = [], device, algorithm, policy, tile } = options;
  if (options.quick) {
    refuseOptions("Cannot check: --quick chooses the problems", {
      suite: suite.length > 0,
      match: options.match,
    });
  }
  const pattern = options.quick ? QUICK : options.match;
  const problems = suite.length === 0 ? parseSuite(checkText, "check.txt") : suites.problems;
  const kept = problems.filter((problem) => pattern?.test(printDescriptor(problem)) ?? true);
  if (kept.length === 0) {
    throw new InputTypeError(
      problems.length === 0
        ? `Cannot check: ${suite.join(", ")} holds no problem that its options keep${
          ignoredClause(suites)
        }`
        : `Cannot check: ${pattern} matches none of ${problems.length} problems`,
    );
  }
  if (device === "cpu") {
    refuseOptions("Cannot check: the CPU computes with the reference itself", {
      backend: options.backend !== "wgpu",
      adapter: options.adapter,
      algorithm: algorithm.length < algorithmNames().length,
      policy: policy.join() !== "auto",
      tile: tile.join() !== "auto",
    });
  }
  const own = shardOf(kept, options.shard);
  const mine = new Set(own.map(printDescriptor));
  const others = new Set(kept.map(printDescriptor).filter((text) => !mine.has(text)));
  return {
    problems: own,
    ops: options.op,
    dtypes: options.dtype,
    layouts: options.layout,
    algorithms: device === "cpu" ? ["reference"] : algorithm,
    policies: policy,
    tiles: tile,
    fill: options.fill,
    seed: options.seed,
    filter: others.size === 0
      ? pattern
      : { test: (text) => !others.has(text) && (pattern?.test(text) ?? true) },
  };
}
