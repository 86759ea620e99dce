import { gemmGroups } from "../bench/bench_plan.ts";
import { readGemmSuite } from "../bench/suite_files.ts";
import { defined } from "../defined.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { proveRoom } from "../npy/write.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { isUnproved } from "../report/record.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { RunOptions } from "../bench/run_group.ts";
import { timeline } from "../run/timeline.ts";
import { environmentOptions, modelCeilings, tuningHook } from "./bench.ts";
import { compute } from "./compute.ts";
import { commandWrites } from "./failure.ts";
import { gemmFiles, openGemm, withOptions } from "./gemm_files.ts";
import { fillOf, type GemmOptions, gemmOptions, gemmPlanning } from "./gemm_options.ts";
import { searchPolicies } from "./gemm_search.ts";
import { planOwnGemm } from "../algorithms/own_kernel/own_kernel.ts";
import { readOwnKernel } from "./own_kernel.ts";
import { printCase } from "./print_case.ts";
import { proveOutputs } from "./outputs.ts";
import { isHeld, readAhead } from "./read_ahead.ts";
import { reportSuite } from "./records.ts";
import { printTimings } from "./timings.ts";
import { readTuning, tuningFile } from "./tuning_options.ts";
import { refuseOnCpu, refuseOptions, refuseWords } from "./values.ts";
import { writeBeside } from "./write_beside.ts";

/** `wgconv gemm`: one matrix product, or a suite of them, checked and timed. */
export function gemmCommand() {
  return gemmOptions().action(async (options, command) => {
    const { args } = command;
    const { during, timings } = timeline();
    const sizes = args.length > 0 && args.every((word) => /^\d+$/.test(word));
    refuseWords(
      "Cannot multiply",
      sizes ? [args.join(",")] : args,
      sizes ? ["--size"] : ["--a", "--b", "--output"],
    );
    if (options.device === "cpu") refuseOnCpu("Cannot multiply", command);
    if (options.suite !== undefined) return await runSuites(options);
    const { cache, shard, resume, output, columns, sort, wide } = options;
    refuseOptions("Cannot multiply: only a --suite has parts", { cache, shard, resume });
    refuseOptions("Cannot multiply: only a --suite has a table", { columns, sort, wide });
    if (options.search) refuseBesideSearch(options);
    else if (options.jsonl !== undefined) {
      throw new InputTypeError(
        "Cannot multiply: --jsonl goes with --suite or --search, --json prints one",
      );
    }
    const writes = commandWrites();
    using opened = await during("files", async () => {
      await proveOutputs([
        { option: "--output", path: output, kind: "npy" },
        { option: "--jsonl", path: options.jsonl, kind: "records" },
      ], {
        inputs: [...gemmFiles(options), tuningFile(options.tuning)],
        force: options.force,
      });
      return await openGemm(options);
    });
    if (options.search) return await searchPolicies(opened, options, writes);
    const { problem, shape } = opened;
    const own = options.kernel === undefined ? undefined : readOwnKernel(options.kernel);
    if (own !== undefined) {
      refuseOptions("Cannot multiply: --kernel says what runs", {
        ...chosenCut(options),
        math: options.math !== "auto",
        without: options.without,
        with: options.with,
        raster: options.raster,
      });
    }
    if (own !== undefined && own.op !== "gemm") {
      throw new InputTypeError(`Cannot use ${options.kernel}: it convolves, wgconv conv takes it`);
    }
    const subject = gemmSubject(
      problem,
      options,
      own && ((request) => planOwnGemm(own, request)),
    );
    const { dtype } = subject.result;
    if (output !== undefined) await proveRoom(output, { dtype, shape });
    const files = isHeld(subject, options)
      ? readAhead(subject, opened.files, { during })
      : opened.files;
    const { computed: { record }, written } = await writeBeside(
      { path: output, dtype, shape, force: options.force },
      during,
      (onResult) =>
        compute({
          subject,
          source: { files, fill: fillOf(options), seed: options.seed },
          algorithm: "gemm",
          planning: gemmPlanning(options),
          tuned: own === undefined && options.device === "gpu" ? readTuning(options) : undefined,
          onResult,
          during,
        }, options),
    );
    printCase(record, options);
    await writes.attempt(async () => await written);
    printTimings(timings(), options);
    writes.conclude(isUnproved(record) ? EXIT.accuracy : EXIT.ok);
  });
}

/** What the options choose of how the product is cut. */
function chosenCut({ policy, splits, flush, balance }: GemmOptions) {
  return {
    policy: policy !== "auto",
    splits: splits !== undefined,
    flush: flush !== undefined,
    balance: balance !== "auto",
  };
}

function refuseBesideSearch(options: GemmOptions): void {
  const { output, timings, device, kernel } = options;
  refuseOptions("Cannot search: it tries every way to cut the product and keeps no result", {
    output: output !== undefined,
    timings,
    ...chosenCut(options),
    kernel,
  });
  if (device === "cpu") throw new InputTypeError("Cannot search: --search runs on the GPU");
}

async function runSuites(options: GemmOptions): Promise<void> {
  const { suite = [], output, size, a, b, search, check, seed, cache = ["hot"] } = options;
  const file = (path: string | true | undefined) => typeof path === "string";
  const [c, bias, residual] = [file(options.c), file(options.bias), file(options.residual)];
  refuseOptions("Cannot bench: --suite says what is multiplied", {
    a,
    b,
    c,
    bias,
    residual,
    size,
    output,
    search,
    kernel: options.kernel,
    timings: options.timings,
  });
  const problems: GemmProblem[] = [];
  const files: string[] = [];
  for (const path of suite) {
    const parsed = readGemmSuite(path, { onFile: (file) => void files.push(file) });
    problems.push(...parsed.map((problem) => withOptions(problem, options)));
  }
  if (problems.length === 0) throw new InputTypeError("Cannot bench: the suite has no product");
  const run: RunOptions = {
    planning: gemmPlanning(options),
    check,
    fill: fillOf(options),
    seed,
    protocol: { samples: options.runs ?? 15, fillMs: options.fillMs ?? 5 },
  };
  const tuned = options.device === "gpu" ? readTuning(options) : undefined;
  await reportSuite({
    hooks: { tuning: tuningHook(tuned, options) },
    run,
    groups: gemmGroups(problems, options, cache),
    inputs: files,
    environment: {
      ...environmentOptions(run),
      ...defined({ "tune-budget": options.tuneBudget }),
    },
    ceilings: modelCeilings(run),
  }, options);
}
