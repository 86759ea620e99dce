import { gemmRivals, searchGemm } from "../bench/search_gemm.ts";
import { EXIT, InputRangeError } from "../errors.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import { type TuningRecord, verdictWord } from "../report/record.ts";
import { formatMilliseconds } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import { gpuPlanning } from "../run/executor.ts";
import { gemmSubject, printEpilogue } from "../run/gemm_subject.ts";
import { readOperands } from "../run/operands.ts";
import type { Writes } from "./failure.ts";
import { gpuExecutorOf, openGpu } from "./open_gpu.ts";
import type { OpenedGemm } from "./gemm_files.ts";
import { fillOf, type GemmOptions, gemmPlanning } from "./gemm_options.ts";
import { progress, reporter, sayFailed, terminalColumns } from "./output.ts";
import { openRecords } from "./record_stream.ts";
import { featuresOf } from "../run/subject.ts";
import { refuseTogether } from "./values.ts";
import { environmentRecord } from "../report/environment.ts";

/**
 * Times every policy on a product and prints the ranking.
 *
 * @throws {RangeError} if there is nothing to compute.
 * @throws {ExitCode} if a result was wrong.
 */
export async function searchPolicies(
  { problem, files }: OpenedGemm,
  options: GemmOptions,
  writes: Writes,
): Promise<void> {
  const { check, seed, backend, runs = 15, fillMs = 5 } = options;
  if (problem.m * problem.n * problem.batch === 0) {
    throw new InputRangeError(`Cannot search: the result of ${printGemm(problem)} is empty`);
  }
  refuseTogether("Cannot search", { json: options.json, jsonl: options.jsonl });
  const target = options.json ? "-" : options.jsonl;
  using records = openRecords(target, writes, { force: options.force });
  const subject = gemmSubject(problem, options);
  const planning = gemmPlanning(options);
  const gpu = await openGpu(options, featuresOf(subject));
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
  out.line(`device      ${executor.device.adapter} (${backend})`);
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
