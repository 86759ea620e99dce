import { Command } from "#cli-types";
import { runSuite } from "../bench/run_suite.ts";
import { parseSuite } from "../bench/suite.ts";
import { BACKENDS } from "../gpu/provider.ts";
import { OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptors } from "../problem/descriptor.ts";
import { FILL_KINDS } from "../tensor/fill.ts";
import { LAYOUT_ALIASES, LAYOUTS } from "../tensor/layout.ts";
import { ALGORITHM_CHOICES } from "./problem_options.ts";
import { readText, reportSuite } from "./records.ts";
import { gather, oneOf, someOf, wholeNumber } from "./values.ts";

const EXAMPLES = `
Lists are separated by commas, and all stands for every choice; the cases are their cross product.
A sample is as many back-to-back calls as fill 5 ms; its time is that of one call. Data is seeded;
what was timed is what is checked.

Examples:
  wgconv bench --suite bench/suites/resnet3x3.txt --op all --jsonl resnet.jsonl
  wgconv bench --problem mb8ic32,64ih28oc64kh3ph1 --algorithm direct,implicit-gemm
  wgconv bench --problem mb1ic64ih56oc64kh3ph1 --layout all --check full --runs 5

Exit 1: a case failed its accuracy check. Exit 2: nothing ran. Exit 5: a case did not run to its end.`;

/** `wgconv bench`: one timed and checked record a case. */
export function benchCommand() {
  return new Command("bench")
    .description(
      "Time and check problems: one JSONL record a case, written as soon as it is known.",
    )
    .option("--suite <file>", "descriptors, one a line; may be given several times", gather)
    .option(
      "--problem <descriptor>",
      "a problem; may be given several times, may hold lists",
      gather,
    )
    .option("--op <list>", OPERATIONS.join(", "), someOf(OPERATIONS), ["fwd" as const])
    .option("--algorithm <list>", ALGORITHM_CHOICES.join(", "), someOf(ALGORITHM_CHOICES), [
      "auto" as const,
    ])
    .option("--layout <list>", LAYOUTS.join(", "), someOf(LAYOUTS, LAYOUT_ALIASES), [
      "nchw" as const,
    ])
    .option("--policy <list>", "tile policies; auto is the planner's choice", "auto")
    .option(
      "--check <how>",
      "none, sample or full",
      oneOf(["none", "sample", "full"] as const),
      "sample" as const,
    )
    .option("--fill <kind>", FILL_KINDS.join(", "), oneOf(FILL_KINDS), "uniform01" as const)
    .option("--seed <n>", "seed of data and of samples", wholeNumber(0), 1)
    .option("--runs <n>", "timed samples a case", wholeNumber(1), 15)
    .option("--fill-ms <ms>", "time that the calls of a sample fill", wholeNumber(0), 5)
    .option(
      "--cache <how>",
      "hot: the same buffers for every call; cold: copies in turn",
      oneOf(["hot", "cold"] as const),
      "hot" as const,
    )
    .option("--backend <name>", "WebGPU of wgpu or dawn", oneOf(BACKENDS), "wgpu" as const)
    .option("--jsonl <file>", "where the records go; - is stdout, and the table goes to stderr")
    .option("--json", "as --jsonl -")
    .addHelpText("after", EXAMPLES)
    .action(async (options) => {
      const problems = (options.problem ?? []).flatMap((text) => parseDescriptors(text));
      for (const path of options.suite ?? []) {
        problems.push(...parseSuite(await readText(path), path));
      }
      if (problems.length === 0) {
        throw new TypeError("Cannot bench: no problem, give --suite or --problem");
      }
      await reportSuite(options, { backend: options.backend }, (open, onCase) =>
        runSuite(
          {
            problems,
            ops: options.op,
            layouts: options.layout,
            algorithms: options.algorithm,
            policies: options.policy.split(","),
            check: options.check,
            cache: options.cache,
            fill: options.fill,
            seed: options.seed,
            protocol: { samples: options.runs, fillMs: options.fillMs },
          },
          open,
          onCase,
        ));
    });
}
