import { MATHS } from "../algorithms/math.ts";
import { Command } from "#cli-types";
import { benchGroups, type BenchPlan } from "../bench/bench_plan.ts";
import { CHECK_HELP, CHECKS } from "../run/coverage.ts";
import type { Executor } from "../run/executor.ts";
import { defaultFill } from "../run/operands.ts";
import { CACHES, type RunHooks, type RunOptions } from "../run/run_group.ts";
import type { SuiteProblem } from "../bench/suite.ts";
import { InputTypeError } from "../errors.ts";
import { DEVICE_MODEL_HELP, deviceOption, modelTrait, parseDeviceModel } from "./device_model.ts";
import { BACKENDS } from "../gpu/provider.ts";
import { matchOption, oldMatch, parsePattern } from "./match_option.ts";
import { askedVariant } from "../kernels/main_loop_variant.ts";
import { CONV_DTYPES, CONV_OUT_DTYPES, OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptors, printDescriptor } from "../problem/descriptor.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import {
  algorithmChoices,
  BOUND_HELP,
  LOSS_SCALE_HELP,
  MATH_HELP,
  OUT_DTYPE_HELP,
  refuseLossScale,
} from "./problem_options.ts";
import type { CaseTableOptions } from "../report/case_table.ts";
import { reportSuite } from "./records.ts";
import {
  ignoredClause,
  noteIgnored,
  printSuites,
  type ReadSuites,
  readSuites,
  refuseFiles,
  SUITE_HELP,
} from "./suite_option.ts";
import { isOutdated, noteOutdated, readTuning, tuningFile, tuningOf } from "./tuning_options.ts";
import { COLUMNS_HELP, parseColumns, parseSort, SORT_HELP, WIDE_HELP } from "./table_options.ts";
import { parseRaster, RASTER_HELP, VARIANT_HELP, variantOption } from "./variant_options.ts";
import { ADAPTER_HELP } from "./gpu_choice.ts";
import { FORCE_HELP } from "./outputs.ts";
import {
  commaList,
  CPU_HEEDS,
  gather,
  oneOf,
  parsePolicies,
  parseShard,
  parseShare,
  parseWorkspace,
  pathOr,
  positiveNumber,
  refuseOptions,
  someOf,
  splitTiles,
  wholeNumber,
  WORKSPACE_HELP,
} from "./values.ts";

const EXAMPLES = `
Lists are separated by commas, and all stands for every choice; the cases are their cross product.
A sample is as many back-to-back calls as fill 5 ms; its time is that of one call. The cases of one
problem are sampled in turn, until all spread little enough. Data is seeded; what was timed is what
is checked. Cases that an algorithm does not support are skipped. A --jsonl file that is not empty
needs --resume or --force; only one program at a time writes to it. --device cpu times the reference
itself, by the wall's clock and without a verdict: there is nothing to hold it against.

A suite is a file in the grammar of oneDNN's benchdnn, or a built-in suite's name. It holds descriptors,
--batch=FILE, --mb=N and --match=REGEX (RE2). Its --dir, --dt, --stag and --dtag apply where --op, --dtype
and --layout are not given. Other options of benchdnn have no effect here; the last line counts them.

Examples:
  wgconv bench --suite resnet3x3 --op all --jsonl resnet.jsonl
  wgconv bench --suite resnet3x3 --op all --jsonl resnet.jsonl --resume
  wgconv bench mb8ic32,64ih28oc64kh3ph1 --algorithm direct,implicit-gemm --cache hot,cold
  wgconv bench --problem mb1ic64ih56oc64kh3ph1 --layout all --check full --runs 5
  wgconv bench --suite im2win12 --algorithm im2win --without prefetch
  wgconv bench --suite vgg16 --algorithm winograd2d --tile "F(2x2,3x3),F(4x4,3x3)"
  wgconv bench --suite vgg16 --shard 2/4 --jsonl part2.jsonl

Exit 1: a case failed its accuracy check. Exit 2: nothing ran. Exit 5: a case did not run to its end.`;

/** `wgconv bench`: one timed and checked record a case. */
export function benchCommand(hooks: Pick<RunHooks, "alterPlan"> = {}) {
  return new Command("bench")
    .description(
      "Time and check problems: one JSONL record a case, written as soon as it is known.",
    )
    .argument("[descriptor...]", "problems, as with --problem")
    .option("--suite <file|name>", SUITE_HELP, gather)
    .option("--list-suites", "list the built-in suites and what they hold")
    .option(
      "--problem <descriptor>",
      "a problem; may be given several times, may hold lists",
      gather,
    )
    .option("--match <regex>", "only problems whose descriptor and name it matches", parsePattern)
    .addOption(oldMatch())
    .option("--shard <i/n>", "the i-th of n parts, from 1: for several machines", parseShard)
    .option("--op <list>", OPERATIONS.join(", "), someOf(OPERATIONS), ["fwd" as const])
    .option("--algorithm <list>", algorithmChoices().join(", "), someOf(algorithmChoices()), [
      "auto" as const,
    ])
    .option("--dtype <list>", CONV_DTYPES.join(", "), someOf(CONV_DTYPES), ["f32" as const])
    .option("--out-dtype <name>", OUT_DTYPE_HELP, oneOf(CONV_OUT_DTYPES))
    .option("--scale <x>", "factor of sums that become i8 or u8 (--out-dtype)", positiveNumber)
    .option("--layout <list>", LAYOUTS.join(", "), someOf(LAYOUTS, LAYOUT_ALIASES), [
      "nchw" as const,
    ])
    .option("--math <how>", MATH_HELP, oneOf(MATHS), "auto" as const)
    .option("--policy <list>", "tile policies; auto is the planner's choice", parsePolicies, [
      "auto",
    ])
    .option("--tile <list>", "Winograd tiles; auto is the planner's choice", splitTiles, ["auto"])
    .option(
      "--flush <products>",
      "products that one accumulator of fused Winograd, WinRS or matrix units sums before they are added to others; 0 for all",
      wholeNumber(0),
    )
    .option("--max-workspace <bytes>", WORKSPACE_HELP, parseWorkspace)
    .option("--device-model <file>", DEVICE_MODEL_HELP, parseDeviceModel)
    .option("--exact", "no Winograd algorithm")
    .option("--max-bound-ratio <x>", BOUND_HELP, positiveNumber)
    .option(
      "--tuning <file>",
      "what wgconv tune measured, for auto; none for none (the user's own)",
      pathOr("none"),
    )
    .option("--without <list>", `optimisations to leave out: ${VARIANT_HELP.without}`, commaList)
    .option("--with <list>", `optimisations to add: ${VARIANT_HELP.with}`, commaList)
    .option("--raster <order>", RASTER_HELP, parseRaster)
    .option("--check <how>", CHECK_HELP, oneOf(CHECKS), "auto" as const)
    .option(
      "--fill <kind>",
      `${FILL_KINDS.join(", ")}; default uniform01, of i8 int8`,
      oneOf(FILL_KINDS),
    )
    .option("--seed <n>", "seed of data and of samples", wholeNumber(0), 1)
    .option("--loss-scale <x>", LOSS_SCALE_HELP, positiveNumber)
    .option("--runs <n>", "most timed samples a case", wholeNumber(1), 30)
    .option(
      "--spread <share>",
      "enough samples: when their MAD is at most this share of the median, nine at least",
      parseShare,
      0.01,
    )
    .option("--fill-ms <ms>", "time that the calls of a sample fill", wholeNumber(0), 5)
    .option(
      "--cache <list>",
      "hot: the same buffers for every call; cold: copies in turn",
      someOf(CACHES),
      ["hot" as const],
    )
    .option("--provider <tag>", "the records' provider, to tell runs apart in reports", "wgconv")
    .option(
      "--device <name>",
      "gpu, or cpu: the reference, timed and not checked, no driver needed",
      oneOf(["gpu", "cpu"] as const),
      "gpu" as const,
    )
    .option("--backend <name>", "WebGPU of wgpu or dawn", oneOf(BACKENDS), "wgpu" as const)
    .option("--adapter <index|name>", ADAPTER_HELP)
    .option("--jsonl <file>", "where the records go; - is stdout, and the table goes to stderr")
    .option("--json", "as --jsonl -")
    .option("--columns <list>", COLUMNS_HELP, parseColumns)
    .option("--sort <column>", SORT_HELP, parseSort)
    .option("--wide", WIDE_HELP)
    .option("--resume", "go on where the run that wrote the --jsonl file ended")
    .option("--force", FORCE_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (descriptors, options, command) => {
      if (options.listSuites) return printSuites(options.json === true);
      if (options.device === "cpu") refuseOnCpu(options);
      const suites = readSuites(options.suite, command);
      const bench = benchPlan(options, readProblems(descriptors, options, suites));
      const ops = bench.problems.flatMap(({ run }) => run?.ops ?? options.op);
      refuseLossScale("Cannot bench", options.lossScale, ops);
      const tuned = options.algorithm.includes("auto") && options.device === "gpu"
        ? readTuning(options.tuning)
        : undefined;
      let outdated = 0;
      await reportSuite({
        run: bench,
        groups: benchGroups(bench),
        inputs: [...suites.files, tuningFile(options.tuning)],
        environment: environmentOptions(bench),
        ceilings: modelCeilings(bench),
        hooks: {
          tuning: perDevice(({ device }) => tuningOf(tuned, device)),
          ...hooks,
          onPlan: (plan) => void (outdated += isOutdated(plan) ? 1 : 0),
        },
        onEnd: () => {
          noteOutdated(tuned, outdated);
          noteIgnored(suites);
        },
      }, options);
    });
}

/** @throws {TypeError} for options that choose among kernels, of which the CPU has none. */
function refuseOnCpu(options: BenchOptions): void {
  const { algorithm, math, policy, tile, cache, check } = options;
  const { flush, maxWorkspace, deviceModel, exact, maxBoundRatio, tuning } = options;
  const { without, with: withs } = options;
  refuseOptions(`Cannot bench: ${CPU_HEEDS}`, {
    algorithm: algorithm.join() !== "auto",
    math: math !== "auto",
    policy: policy.join() !== "auto",
    tile: tile.join() !== "auto",
    cache: cache.join() !== "hot",
    check: check !== "auto" && check !== "none",
    flush: flush !== undefined,
    "max-workspace": maxWorkspace !== undefined,
    "device-model": deviceModel,
    adapter: options.adapter,
    exact,
    "max-bound-ratio": maxBoundRatio !== undefined,
    tuning,
    without,
    with: withs,
    raster: options.raster !== undefined,
  });
}

/** What the options parse to. */
type BenchOptions = ReturnType<ReturnType<typeof benchCommand>["opts"]>;

/** A function of devices that is called once for each. */
function perDevice<T>(make: (executor: Executor) => T): (executor: Executor) => T {
  const made = new WeakMap<Executor, { readonly value: T }>();
  return (executor) => {
    const known = made.get(executor) ?? { value: make(executor) };
    made.set(executor, known);
    return known.value;
  };
}

/** The problems that arguments, `--problem` and `--suite` name and `--match` keeps. */
function readProblems(
  descriptors: readonly string[],
  options: BenchOptions,
  suites: ReadSuites,
): SuiteProblem[] {
  refuseFiles("Cannot bench", descriptors);
  const problems: SuiteProblem[] = [...descriptors, ...options.problem ?? []]
    .flatMap((text) => parseDescriptors(text));
  problems.push(...suites.problems);
  if (problems.length === 0) {
    throw new InputTypeError(
      "Cannot bench: no problem, give descriptors, --suite or --problem" + ignoredClause(suites),
    );
  }
  const pattern = matchOption(options);
  if (pattern === undefined) return problems;
  const kept = problems.filter((problem) => pattern.test(printDescriptor(problem)));
  if (kept.length > 0) return kept;
  throw new InputTypeError(
    `Cannot bench: ${pattern} matches none of ${problems.length} problems, ` +
      `the first is ${printDescriptor(problems[0]!)}`,
  );
}

function benchPlan(options: BenchOptions, problems: readonly SuiteProblem[]): BenchPlan {
  const { math, flush, maxWorkspace, exact, maxBoundRatio } = options;
  const { spread, runs, fillMs, lossScale } = options;
  const variant = variantOption(options, { dtypes: options.dtype });
  return {
    problems,
    ops: options.op,
    dtypes: options.dtype,
    outDtype: options.outDtype,
    scale: options.scale,
    layouts: options.layout,
    algorithms: options.algorithm,
    policies: options.policy,
    tiles: options.tile,
    caches: options.cache,
    planning: {
      ...(math === "auto" ? {} : { math }),
      ...(flush === undefined ? {} : { flush }),
      ...deviceOption(options.deviceModel),
      ...maxWorkspace,
      ...(exact === undefined ? {} : { exact }),
      ...(maxBoundRatio === undefined ? {} : { maxBoundRatio }),
      ...(variant === undefined ? {} : { variant }),
    },
    check: options.check,
    fill: options.fill,
    seed: options.seed,
    ...(lossScale === undefined ? {} : { lossScale }),
    protocol: { samples: runs, fillMs, spread },
    provider: options.provider,
  };
}

/** What decides a figure beside the case itself. */
export function environmentOptions(run: RunOptions): Record<string, string | number> {
  const { check, fill = defaultFill("f32"), lossScale, provider = "wgconv" } = run;
  const { protocol, planning = {} } = run;
  const { policy, splits, balance, flush, maxWorkspaceBytes, maxWorkspaceShare, exact } = planning;
  const { variant, device, maxBoundRatio, math } = planning;
  return {
    check,
    fill,
    ...(lossScale === undefined ? {} : { "loss-scale": lossScale }),
    provider,
    runs: protocol.samples,
    spread: protocol.spread ?? 0,
    "fill-ms": protocol.fillMs,
    ...(policy === undefined ? {} : { policy }),
    ...(splits === undefined ? {} : { splits }),
    ...(balance === undefined ? {} : { balance }),
    ...(flush === undefined ? {} : { flush }),
    ...(maxWorkspaceBytes === undefined ? {} : { "max-workspace": maxWorkspaceBytes }),
    ...(maxWorkspaceShare === undefined ? {} : { "max-workspace": `${maxWorkspaceShare}x` }),
    ...(device === undefined ? {} : { "device-model": modelTrait(device) }),
    ...(exact === undefined ? {} : { exact: "true" }),
    ...(math === undefined ? {} : { math }),
    ...(maxBoundRatio === undefined ? {} : { "max-bound-ratio": maxBoundRatio }),
    ...(variant === undefined ? {} : { variant: askedVariant(variant) }),
  };
}

/** What `--device-model` says that a device reaches; undefined where none is given. */
export function modelCeilings({ planning = {} }: RunOptions): CaseTableOptions["ceilings"] {
  const { device } = planning;
  if (device === undefined) return undefined;
  const { rates: { packed, dot4, stream } } = device;
  return ({ dtype }) => ({
    peak: 1000 * (dtype === "i8" ? dot4 : packed),
    bandwidth: 1000 * stream,
  });
}
