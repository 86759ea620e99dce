import { planOwnGemm } from "../algorithms/own_kernel/own_kernel.ts";
import { gemmGroups } from "../bench/bench_plan.ts";
import type { RunOptions } from "../bench/run_group.ts";
import { gemmRivals, searchGemm } from "../bench/search_gemm.ts";
import { readGemmSuite } from "../bench/suite_files.ts";
import { defined } from "../defined.ts";
import { EXIT, InputRangeError, InputTypeError } from "../errors.ts";
import { proveRoom } from "../npy/write.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import { environmentRecord } from "../report/environment.ts";
import { formatMilliseconds } from "../report/format.ts";
import { isUnproved, type TuningRecord, verdictWord } from "../report/record.ts";
import { textTable } from "../report/table.ts";
import { gpuPlanning } from "../run/executor.ts";
import { gemmSubject, printEpilogue } from "../run/gemm_subject.ts";
import { readOperands } from "../run/operands.ts";
import { featuresOf, usesUnits } from "../run/subject.ts";
import { timeline } from "../run/timeline.ts";
import { environmentOptions, modelCeilings, tuningHook } from "./bench.ts";
import { compute } from "./compute.ts";
import { commandWrites, type Writes } from "./failure.ts";
import { gemmFiles, type OpenedGemm, openGemm, withOptions } from "./gemm_files.ts";
import { fillOf, type GemmOptions, gemmOptions, gemmPlanning } from "./gemm_options.ts";
import { gpuExecutorOf, openGpu } from "./open_gpu.ts";
import { progress, reporter, sayFailed, terminalColumns } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { readOwnKernel } from "./own_kernel.ts";
import { printCase, printTimings } from "./print_case.ts";
import { isHeld, readAhead, writeBeside } from "./overlap.ts";
import { openRecords } from "./record_stream.ts";
import { reportSuite } from "./records.ts";
import { readTuning, tuningFile } from "./tuning_options.ts";
import { refuseOnCpu, refuseOptions, refuseTogether, refuseWords } from "./refuse.ts";

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

async function runSuites({ backend, ...others }: GemmOptions): Promise<void> {
  if (backend === "auto") {
    throw new InputTypeError(
      "Cannot bench: --backend auto chooses for one product, not for a suite",
    );
  }
  const options = { ...others, backend };
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

/**
 * Times every policy on a product and prints the ranking.
 *
 * @throws {RangeError} if there is nothing to compute.
 * @throws {ExitCode} if a result was wrong.
 */
async function searchPolicies(
  { problem, files }: OpenedGemm,
  options: GemmOptions,
  writes: Writes,
): Promise<void> {
  const { check, seed, runs = 15, fillMs = 5 } = options;
  if (problem.m * problem.n * problem.batch === 0) {
    throw new InputRangeError(`Cannot search: the result of ${printGemm(problem)} is empty`);
  }
  refuseTogether("Cannot search", { json: options.json, jsonl: options.jsonl });
  const target = options.json ? "-" : options.jsonl;
  using records = openRecords(target, writes, { force: options.force });
  const subject = gemmSubject(problem, options);
  const planning = gemmPlanning(options);
  const gpu = await openGpu(
    { ...options, onUnits: usesUnits(options.dtype, planning.math) },
    featuresOf(subject),
  );
  using executor = gpuExecutorOf(gpu, planning);
  const fill = fillOf(options);
  const rivals = gemmRivals(gpuPlanning(gpu, planning, executor.model), problem, options);
  const operands = await readOperands(subject, { files, fill, seed });
  const shown = progress();
  shown.update(`searching ${rivals.length} ways`);
  const protocol = { samples: runs, fillMs };
  const run = { planning, check, fill, seed, protocol };
  const ranking = await gpu.guard(() =>
    searchGemm(executor, problem, options, rivals, operands, run)
  );
  shown.done();
  records.write(environmentRecord(executor.device, seed));
  ranking.forEach((record) => records.write(record));
  const stream = target === "-" ? "stderr" : "stdout";
  const out = reporter(stream);
  out.line(`problem     gemm ${[printGemm(problem), printEpilogue(problem)].join(" ").trimEnd()}`);
  out.line(`device      ${executor.device.adapter} (${executor.device.backend})`);
  out.line(rankingTable(ranking, terminalColumns(stream)));
  const unproved = ranking.filter(({ verdict, max_bound_ratio }) =>
    verdict === "fail" || (verdict === "none" && max_bound_ratio !== null)
  );
  for (const { policy, splits, verdict, message } of unproved) {
    const line = `${verdictWord(verdict)}: ${policy} with ${splits} splits: ${message}`;
    out.message(line);
    sayFailed(line);
  }
  writes.conclude(unproved.length > 0 ? EXIT.accuracy : EXIT.ok);
}

/** Candidates as a table, fastest first; the planner's choice has a star. */
function rankingTable(ranking: readonly TuningRecord[], room?: number): string {
  const best = ranking[0]?.time_ms.median ?? 0;
  const rate = (gflops: number) => gflops.toFixed(gflops < 100 ? 2 : 0);
  return textTable(
    [
      { title: "policy" },
      { title: "splits", align: "right" },
      { title: "balance" },
      { title: "time", align: "right" },
      { title: "GFLOP/s", align: "right" },
      { title: "predicted", align: "right" },
      { title: "of best", align: "right" },
      { title: "verdict" },
      { title: "kernel", spare: 1 },
    ],
    ranking.map((record) => [
      `${record.policy}${record.chosen ? " *" : ""}`,
      String(record.splits ?? 1),
      record.balance ?? "none",
      formatMilliseconds(record.time_ms.median),
      rate(record.gflops),
      rate(record.predicted_gflops ?? NaN),
      `${(100 * best / record.time_ms.median).toFixed(0)} %`,
      record.verdict === "none" ? "-" : record.verdict,
      record.kernel,
    ]),
    undefined,
    room,
  );
}
