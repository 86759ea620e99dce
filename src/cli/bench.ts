import { Command } from "#cli-types";
import { benchGroups, type BenchPlan, productGroups } from "../bench/bench_plan.ts";
import type { SuiteProblem } from "../bench/suite.ts";
import { defined } from "../defined.ts";
import { InputTypeError } from "../errors.ts";
import { askedVariant, variesLoop } from "../algorithms/choices.ts";
import { parseDescriptors, printDescriptor } from "../problem/descriptor.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import type { CaseTableOptions } from "../report/case_table.ts";
import type { Executor } from "../run/executor.ts";
import { defaultFill } from "../run/operands.ts";
import type { RunHooks, RunOptions } from "../bench/run_group.ts";
import { BUDGET_HELP, learnTuning } from "./learn.ts";
import { KERNEL_HELP, useOwnKernels } from "./own_kernel.ts";
import { reporter } from "./output.ts";
import {
  algorithmChoices,
  modelTrait,
  planningOf,
  PROBLEM,
  refuseLossScale,
  variantOption,
} from "./problem_options.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import {
  ignoredClause,
  noteIgnored,
  printSuites,
  type ReadSuites,
  readSuites,
  refuseFiles,
  SUITE,
} from "./suite_option.ts";
import { reportSuite } from "./records.ts";
import {
  isOutdated,
  noteOutdated,
  readTuning,
  refuseTuning,
  type Tuning,
  TUNING_OPTION,
  type TuningChoice,
  tuningFile,
  tuningOf,
} from "./tuning_options.ts";
import {
  gather,
  leastNumber,
  parseShare,
  parseTags,
  positiveNumber,
  someOf,
  wholeNumber,
} from "./values.ts";
import { refuseOnCpu } from "./refuse.ts";
import { CACHES } from "../run/runner.ts";
import { TABLE } from "./table_options.ts";

const EXAMPLES = `
Lists are separated by commas; all stands for every choice. The cases are all combinations of the lists;
cases that an algorithm does not support are skipped. A sample is as many back-to-back calls as fill
--fill-ms; the cases of one problem are sampled in turn until their times settle. The result of the timed
calls is checked.
--device cpu times the FP64 reference itself and checks nothing.

A suite is a file in the grammar of oneDNN's benchdnn, or a built-in suite's name. It holds descriptors,
products (m n k), --batch=FILE, --mb=N and --match=REGEX (RE2). Its --dir, --dt, --stag and --dtag apply where --op, --dtype
and --layout are not given. Other options of benchdnn are ignored; the last line counts them.

Examples:
  wgconv bench --suite resnet3x3 --op all --jsonl resnet.jsonl --resume
  wgconv bench --model resnet50.onnx --batch 8
  wgconv bench mb8ic32,64ih28oc64kh3ph1 --algorithm direct,implicit-gemm --cache hot,cold
  wgconv bench --suite vgg16 --algorithm winograd2d --tile "F(2x2,3x3),F(4x4,3x3)"
  wgconv bench --suite vgg16 --shard 2/4 --jsonl part2.jsonl

Exit 1: a case failed its accuracy check. Exit 2: nothing ran. Exit 5: a case did not run to its end.`;

/** `wgconv bench`: one timed and checked record a case. */
export function benchCommand(hooks: Pick<RunHooks, "alterPlan"> = {}) {
  return new Command("bench")
    .description(
      "Time and check many problems; write a JSON record for each as soon as it is done.",
    )
    .optionsGroup(GROUPS.common)
    .argument("[descriptor...]", "problems, such as mb8ic64ih56oc64kh3ph1")
    .option(...SUITE.suite)
    .option(...SUITE.model)
    .option("--problem <descriptor>", "a problem; repeatable", gather)
    .option("--list-suites", "list the built-in suites")
    .option(...PROBLEM.ops)
    .option(...PROBLEM.layouts)
    .option(...PROBLEM.dtypes)
    .option("--algorithm <list>", algorithmChoices().join(", "), someOf(algorithmChoices()), [
      "auto" as const,
    ])
    .option(...SUITE.match)
    .option(...TABLE.jsonl)
    .option(...TABLE.json)
    .optionsGroup(GROUPS.table)
    .option(...TABLE.resume)
    .option(...TABLE.shard)
    .option("--provider <tag>", "name of this run in records and reports", "wgconv")
    .option("--tag <name=value>", "what history calls this run: commit=1a2b3c4; repeatable", gather)
    .option(...TABLE.columns)
    .option(...TABLE.sort)
    .option(...TABLE.wide)
    .option(...OPTION.force)
    .optionsGroup(GROUPS.model)
    .option(...SUITE.batch)
    .option(...SUITE.inputShape)
    .option(...SUITE.training)
    .optionsGroup(GROUPS.measure)
    .option(...PROBLEM.check)
    .option("--runs <n>", "most timed samples per case", wholeNumber(1), 30)
    .option(
      "--spread <share>",
      "stop sampling when MAD / median is at most this; nine samples at least",
      parseShare,
      0.01,
    )
    .option("--fill-ms <ms>", "milliseconds of calls per sample", wholeNumber(0), 5)
    .option(
      "--cache <list>",
      "hot (the same buffers for every call), cold (copies in turn)",
      someOf(CACHES),
      ["hot" as const],
    )
    .optionsGroup(GROUPS.data)
    .option(...PROBLEM.fill)
    .option(...OPTION.seed)
    .optionsGroup(GROUPS.types)
    .option(...PROBLEM.outDtype)
    .option("--scale <x>", "factor of sums before they become i8 or u8", positiveNumber)
    .option(...PROBLEM.lossScale)
    .optionsGroup(GROUPS.device)
    .option(...OPTION.device)
    .option(...OPTION.anyBackend)
    .option(...OPTION.adapter)
    .optionsGroup(GROUPS.kernel)
    .option(...PROBLEM.exact)
    .option(...PROBLEM.maxWorkspace)
    .option(...PROBLEM.maxBoundRatio)
    .option(...PROBLEM.math)
    .option("--kernel <file>", `${KERNEL_HELP}, beside --algorithm; repeatable`, gather)
    .option(...TUNING_OPTION)
    .option("--tune-budget <seconds>", `${BUDGET_HELP}; default 0`, leastNumber(0))
    .option(...PROBLEM.deviceModel)
    .option(...PROBLEM.policies)
    .option(...PROBLEM.tiles)
    .option(...PROBLEM.flush)
    .option(...PROBLEM.raster)
    .option(...PROBLEM.without)
    .option(...PROBLEM.with)
    .addHelpText("after", EXAMPLES)
    .action(async (descriptors, given, command) => {
      using own = useOwnKernels(given.kernel ?? []);
      const options = { ...given, algorithm: [...given.algorithm, ...own.names] };
      if (options.listSuites) return printSuites(options.json === true);
      if (options.device === "cpu") refuseOnCpu("Cannot bench", command, ["check"]);
      refuseTuning("Cannot bench", options);
      const suites = await readSuites(options, command, true);
      const { problems, products } = readProblems(descriptors, options, suites);
      const bench = benchPlan(options, problems);
      const ops = bench.problems.flatMap(({ run }) => run?.ops ?? options.op);
      refuseLossScale("Cannot bench", options.lossScale, ops);
      const tuned = options.algorithm.includes("auto") && options.device === "gpu"
        ? readTuning(options)
        : undefined;
      let outdated = 0;
      await reportSuite({
        run: bench,
        groups: [...benchGroups(bench), ...productGroups(bench, products)],
        inputs: [...suites.files, tuningFile(options.tuning)],
        environment: {
          ...environmentOptions(bench),
          ...defined({ "tune-budget": options.tuneBudget }),
        },
        tags: parseTags(options.tag),
        ceilings: modelCeilings(bench),
        network: options.model !== undefined,
        hooks: {
          tuning: tuningHook(tuned, options),
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

type BenchOptions = ReturnType<ReturnType<typeof benchCommand>["opts"]>;

/** What was measured on a device, with what is measured before a case where a budget is given for that. */
export function tuningHook(
  tuned: Tuning | undefined,
  { tuneBudget = 0, ...choice }: TuningChoice,
): NonNullable<RunHooks["tuning"]> {
  const known = perDevice(({ device }: Executor) => tuningOf(tuned, device));
  const learning = { ...choice, tuneBudget };
  let lost = false;
  return async (executor, subject, planning) => {
    if (lost) return known(executor);
    const table = await learnTuning(executor, subject, planning, known(executor), learning);
    lost = !executor.isOpen;
    if (lost) {
      reporter("stderr").message(
        "wgconv: note: the device was lost while kernels were timed, none are any more",
      );
    }
    return table;
  };
}

/** A function of devices that is called once for each. */
function perDevice<T>(make: (executor: Executor) => T): (executor: Executor) => T {
  const made = new WeakMap<Executor, { readonly value: T }>();
  return (executor) => {
    const known = made.get(executor) ?? { value: make(executor) };
    made.set(executor, known);
    return known.value;
  };
}

function readProblems(
  descriptors: readonly string[],
  options: BenchOptions,
  suites: ReadSuites,
): Pick<ReadSuites, "problems" | "products"> {
  refuseFiles("Cannot bench", descriptors);
  const problems: SuiteProblem[] = [...descriptors, ...options.problem ?? []]
    .flatMap((text) => parseDescriptors(text));
  problems.push(...suites.problems);
  // Algorithms by name are those of convolutions.
  const products = options.algorithm.includes("auto") ? suites.products : [];
  const texts = [...problems.map(printDescriptor), ...products.map(printGemm)];
  if (texts.length === 0) {
    const files = [...options.suite ?? [], ...options.model ?? []];
    throw new InputTypeError(
      (files.length === 0
        ? "Cannot bench: no problem, give descriptors, --model, --suite or --problem"
        : `Cannot bench: ${files.join(", ")} holds no problem that its options keep`) +
        ignoredClause(suites),
    );
  }
  const pattern = options.match;
  if (pattern === undefined) return { problems, products };
  if (!texts.some((text) => pattern.test(text))) {
    throw new InputTypeError(
      `Cannot bench: ${pattern} matches none of ${texts.length} problems, the first is ${texts[0]}`,
    );
  }
  return {
    problems: problems.filter((problem) => pattern.test(printDescriptor(problem))),
    products: products.filter((product) => pattern.test(printGemm(product))),
  };
}

function benchPlan(options: BenchOptions, problems: readonly SuiteProblem[]): BenchPlan {
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
    planning: planningOf({ ...options, policy: undefined, tile: undefined }, variant),
    check: options.check,
    fill: options.fill,
    seed: options.seed,
    ...defined({ lossScale }),
    protocol: { samples: runs, fillMs, spread },
    provider: options.provider,
  };
}

/** What decides a figure beside the case itself. */
export function environmentOptions(run: RunOptions): Record<string, string | number> {
  const { check, fill = defaultFill("f32"), lossScale, provider = "wgconv" } = run;
  const { protocol, planning = {} } = run;
  const { maxWorkspaceBytes, maxWorkspaceShare: share, device, exact, math } = planning;
  const { schedule = {} } = planning;
  const { policy, splits, balance, flush } = schedule;
  return defined({
    check,
    fill,
    "loss-scale": lossScale,
    provider,
    runs: protocol.samples,
    spread: protocol.spread ?? 0,
    "fill-ms": protocol.fillMs,
    policy,
    splits,
    balance,
    flush,
    "max-workspace": share === undefined ? maxWorkspaceBytes : `${share}x`,
    "device-model": device && modelTrait(device),
    exact: exact && "true",
    math,
    "max-bound-ratio": planning.maxBoundRatio,
    variant: variesLoop(schedule) ? askedVariant(schedule) : undefined,
  }) as Record<string, string | number>;
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
