import { Command, Option } from "#cli-types";
import { THREAD_POLICY_NAMES } from "../algorithms/choices.ts";
import { algorithmNames } from "../algorithms/registry.ts";
import { benchGroups, type BenchPlan, groupFeatures } from "../bench/bench_plan.ts";
import type { SuiteProblem } from "../bench/suite.ts";
import { type TunedGroup, tuneSuite } from "../bench/tune_suite.ts";
import { countWinners, readTuningText } from "../bench/tuning_file.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { parseDescriptors } from "../problem/descriptor.ts";
import {
  formatBytes,
  formatGflops,
  formatMilliseconds,
  formatShare,
  significant,
} from "../report/format.ts";
import type { TuningRecord } from "../report/record.ts";
import { type LiveColumn, liveTable, type RowOrder, sortRows } from "../report/table.ts";
import {
  caseProgress,
  onInterrupt,
  type Printer,
  printer,
  reporter,
  sayFailed,
  terminalColumns,
} from "./output.ts";
import { commandWrites } from "./failure.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { mergeFile } from "./kept_files.ts";
import { usesUnits } from "../run/subject.ts";
import { chosenBackend, openGpuExecutor } from "./open_gpu.ts";
import { proveOutputs } from "./outputs.ts";
import { ignoredClause, noteIgnored, readSuites, refuseFiles, SUITE } from "./suite_option.ts";
import { sortParser, TABLE } from "./table_options.ts";
import { tuningPath, withRecords } from "./tuning_options.ts";
import { parsePolicies, someOf, wholeNumber } from "./values.ts";
import { PROBLEM } from "./problem_options.ts";

/** The winner of a problem, and what it gains over the planner's choice, where that was measured. */
interface Winner {
  readonly winner: TuningRecord;
  readonly gain: number | null;
}

interface TuneColumn extends LiveColumn {
  readonly order: (one: Winner) => string | number | null;
  readonly print?: (value: number) => string;
}

function words(
  title: string,
  order: (winner: TuningRecord) => string,
  width = 0,
): TuneColumn {
  return { title, width, order: ({ winner }) => order(winner) };
}

function figure(
  title: string,
  order: (one: Winner) => number | null,
  print: (value: number) => string,
  width = 0,
): TuneColumn {
  return { title, align: "right", width, order, print };
}

/** Every column of tunings, by the names that tables of cases have for the same. */
const TUNE_COLUMNS = {
  problem: words("problem", ({ problem }) => problem),
  op: words("op", ({ op }) => op),
  dtype: words("dtype", ({ dtype }) => dtype),
  layout: words("layout", ({ layout }) => layout),
  algorithm: words(
    "fastest",
    ({ algorithm }) => algorithm,
    Math.max(...algorithmNames().map((name) => name.length)),
  ),
  time: figure("time", ({ winner }) => winner.time_ms.median, formatMilliseconds, 8),
  noise: figure("noise", ({ winner: { time_ms } }) => time_ms.mad / time_ms.median, formatShare, 6),
  gflops: figure("rate", ({ winner }) => winner.gflops, formatGflops, 13),
  gain: figure("over auto", ({ gain }) => gain, (gain) => gain.toFixed(3)),
  workspace: figure("workspace", ({ winner }) => winner.workspace_bytes, formatBytes),
  bound: figure("bound", ({ winner }) => winner.max_bound_ratio, significant),
  kernel: words("kernel", ({ kernel }) => kernel),
} as const satisfies Readonly<Record<string, TuneColumn>>;

type TuneColumnName = keyof typeof TUNE_COLUMNS;

const NAMES = Object.keys(TUNE_COLUMNS) as TuneColumnName[];
const USUAL: readonly TuneColumnName[] = NAMES.filter((name) => {
  return !["dtype", "workspace", "bound"].includes(name);
});

/** Those that go where not all fit, the last of these first. */
const SPARE: readonly TuneColumnName[] = ["layout", "noise", "kernel"];

const TUNE_COLUMNS_HELP = `columns of the table: ${NAMES.join(", ")}`;

export const parseTuneColumns = someOf<TuneColumnName>(NAMES);

export const parseTuneSort = sortParser<TuneColumnName>(NAMES);

type Coming = Record<"problem" | "op" | "dtype" | "layout", string>;
const COMING: readonly TuneColumnName[] = ["problem", "op", "dtype", "layout"];

/**
 * A table of winners: each printed as it is known, or all at the end where they are sorted; no row of a problem where
 * nothing won.
 */
export function tuneRows(
  coming: readonly Coming[],
  { columns: asked, sort, room }: {
    readonly columns?: readonly TuneColumnName[] | undefined;
    readonly sort?: RowOrder<TuneColumnName> | undefined;
    /** Characters in a line of the terminal; undefined where there is none. */
    readonly room?: number | undefined;
  },
  out: Printer,
): { add(group: Pick<TunedGroup, "records">): void; end(): void } {
  const several = new Set(coming.map(({ dtype }) => dtype)).size > 1;
  const names = asked ??
    NAMES.filter((name) => USUAL.includes(name) || (several && name === "dtype"));
  const columns = names.map((name): TuneColumn => {
    const widths = COMING.includes(name)
      ? coming.map((one) => one[name as keyof Coming].length)
      : [];
    const column: TuneColumn = TUNE_COLUMNS[name];
    const spare = asked === undefined && SPARE.includes(name) ? SPARE.indexOf(name) : undefined;
    return { ...column, spare, width: Math.max(column.width ?? 0, ...widths) };
  });
  const row = liveTable(columns, undefined, room);
  const print = (one: Winner) =>
    out.line(row(columns.map(({ order, print }) => {
      const value = order(one);
      return value === null ? "-" : typeof value === "number" ? print!(value) : value;
    })));
  const kept: Winner[] = [];
  return {
    add({ records }) {
      const winner = records.find((record) => record.winner);
      if (winner === undefined) return;
      const untuned = records.find((record) => record.chosen);
      const gain = untuned === undefined ? null : untuned.time_ms.median / winner.time_ms.median;
      if (sort === undefined) print({ winner, gain });
      else kept.push({ winner, gain });
    },
    end() {
      if (sort === undefined) return;
      const { column, descending } = sort;
      sortRows(kept, TUNE_COLUMNS[column].order, descending).forEach(print);
    },
  };
}

const EXAMPLES = `
Every algorithm, tile policy, tile, WinRS pair and some numbers of segments run briefly. The four fastest
and the planner's choice are then timed in turn and checked. The winner is kept for this device, driver and
class of problems (batches of about the same power of two), in the user's file
($XDG_CACHE_HOME/wgconv/tuning.jsonl) or in --output. auto uses it until its kernels change.

Examples:
  wgconv tune --suite resnet3x3 --op all
  wgconv tune mb32ic64ih56oc64kh3ph1 --output mine.jsonl
  wgconv conv --problem mb32ic64ih56oc64kh3ph1 --tuning mine.jsonl

Exit 1: a kernel failed its check; it cannot win. Exit 2: nothing ran. Exit 5: one did not run to its end.`;

/** `wgconv tune`: measures what `auto` is to choose on this device. */
export function tuneCommand() {
  return new Command("tune")
    .description("Find the fastest kernel on this GPU for auto to use.")
    .argument("[descriptor...]", "problems, such as mb8ic64ih56oc64kh3ph1")
    .optionsGroup(GROUPS.common)
    .option(...SUITE.suite)
    .option(...SUITE.model)
    .option(...PROBLEM.ops)
    .option(...PROBLEM.layouts)
    .option(...PROBLEM.dtypes)
    .option("--output <file>", "where the results are kept; default the user's own file")
    .option("--json", "print a record per finalist; the table goes to stderr")
    .option("--columns <list>", TUNE_COLUMNS_HELP, parseTuneColumns)
    .option("--sort <column>", TABLE.sort[1], parseTuneSort)
    .option("--force", "merge into --output even if it is an input")
    .optionsGroup(GROUPS.model)
    .option(...SUITE.batch)
    .option(...SUITE.inputShape)
    .option(...SUITE.training)
    .optionsGroup(GROUPS.measure)
    .option(...OPTION.seed)
    .option("--runs <n>", "most timed samples per finalist", wholeNumber(1), 30)
    .optionsGroup(GROUPS.device)
    .option(...OPTION.anyBackend)
    .option(...OPTION.adapter)
    .optionsGroup(GROUPS.kernel)
    .option("--algorithm <list>", algorithmNames().join(", "), someOf(algorithmNames()), [
      ...algorithmNames(),
    ])
    .addOption(
      new Option("--policy <list>", "tile policies; auto lets the planner choose")
        .argParser(parsePolicies)
        .default(["auto", ...THREAD_POLICY_NAMES], "auto and all named ones"),
    )
    .option(...PROBLEM.tiles)
    .addHelpText("after", EXAMPLES)
    .action(async (descriptors, options, command) => {
      refuseFiles("Cannot tune", descriptors);
      const suites = await readSuites(options, command);
      const problems: SuiteProblem[] = descriptors.flatMap((text) => parseDescriptors(text));
      problems.push(...suites.problems);
      const files = [...options.suite ?? [], ...options.model ?? []];
      if (problems.length === 0) {
        throw new InputTypeError(
          (files.length === 0
            ? "Cannot tune: no problem, give descriptors, --suite or --model"
            : `Cannot tune: ${files.join(", ")} holds no problem that its options keep`) +
            ignoredClause(suites),
        );
      }
      const path = options.output ?? tuningPath();
      if (path === undefined) {
        throw new InputTypeError("Cannot tune: there is no cache folder, give --output");
      }
      const bench: BenchPlan = {
        problems,
        ops: options.op,
        dtypes: options.dtype,
        layouts: options.layout,
        algorithms: options.algorithm,
        policies: options.policy,
        tiles: options.tile,
        caches: ["hot"],
        check: "auto",
        seed: options.seed,
        protocol: { samples: options.runs, fillMs: 5, spread: 0.01 },
      };
      await proveOutputs([{ option: "--output", path, kind: "merged" }], {
        inputs: suites.files,
        force: options.force,
      });
      const writes = commandWrites();
      const all = benchGroups(bench);
      const features = groupFeatures(all);
      const shown = caseProgress("problem");
      const stream = options.json ? "stderr" : "stdout";
      const out = reporter(stream);
      const { columns, sort } = options;
      const table = { columns, sort, room: terminalColumns(stream) };
      const rows = tuneRows(all.map(({ subject }) => subject.traits), table, out);
      const groups: TunedGroup[] = [];
      let classes: number | undefined;
      const onUnits = all.some(({ subject }) => usesUnits(subject.traits.dtype));
      const backend = await chosenBackend({ ...options, onUnits });
      const outcomes = tuneSuite(
        bench,
        () => openGpuExecutor({ ...options, backend }, features),
        shown.begin,
      );
      using _ = onInterrupt(() => {
        const kept = groups.length === 0 ? "nothing is kept yet" : `${path} keeps them`;
        return `stopped after ${groups.length} of ${all.length} problems, ${kept}`;
      });
      for await (const outcome of outcomes) {
        groups.push(outcome);
        shown.done();
        rows.add(outcome);
        await writes.attempt(() =>
          mergeFile(path, (text) => {
            const merged = withRecords(text, outcome.records, path);
            classes = countWinners(readTuningText(merged).lines);
            return merged;
          })
        );
      }
      shown.done();
      rows.end();
      noteIgnored(suites);
      if (options.json) {
        const data = printer("stdout");
        groups.flatMap(({ records }) => records)
          .forEach((record) => data.line(JSON.stringify(record)));
      }
      const failed = groups.flatMap((group) => group.failed);
      for (const { verdict, op, problem, algorithm, message } of failed) {
        const line = `${verdict}: ${op} ${problem} ${algorithm}: ${message}`;
        out.message(line);
        sayFailed(line);
      }
      if (classes !== undefined) {
        out.message(`${path}: ${classes === 1 ? "1 class" : `${classes} classes`} of problems`);
      }
      writes.conclude(tuneExitCode(groups));
    });
}

/** The exit code of a tuning: a rival that is wrong, nothing that ran, or a rival that did not, never is a success. */
function tuneExitCode(groups: readonly TunedGroup[]): number {
  if (groups.every(({ records }) => records.length === 0)) return EXIT.usage;
  const failed = groups.flatMap((group) => group.failed);
  if (failed.some(({ verdict }) => verdict === "fail")) return EXIT.accuracy;
  return failed.length > 0 ? EXIT.internal : EXIT.ok;
}
