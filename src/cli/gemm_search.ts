import { computeGemmReference } from "../run/gemm_check.ts";
import { refuseOverflow } from "../run/gemm_range.ts";
import { gemmFeatures } from "../run/gemm_operands.ts";
import { gemmProjection } from "../run/gemm_projection.ts";
import { gemmCandidates, searchGemm } from "../bench/search_gemm.ts";
import { printEpilogue } from "../run/gemm_case.ts";
import { EXIT, InputRangeError } from "../errors.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import { environmentRecord } from "../report/environment.ts";
import { formatMilliseconds } from "../report/format.ts";
import type { TuningRecord } from "../report/record.ts";
import { textTable } from "../report/table.ts";
import type { Writes } from "./failure.ts";
import type { GemmOptions } from "./gemm_options.ts";
import { choiceOf, readGemm } from "./gemm_compute.ts";
import type { GemmSubject } from "./gemm_subject.ts";
import { printer, progress } from "./output.ts";
import { openRecords } from "./record_stream.ts";
import { describe } from "./records.ts";
import { openGpu } from "./run_job.ts";

/**
 * Times every policy on a product and prints the ranking.
 *
 * @throws {RangeError} if there is nothing to compute.
 * @throws {ExitCode} if a result was wrong.
 */
export async function searchPolicies(
  subject: GemmSubject,
  options: GemmOptions,
  writes: Writes,
): Promise<void> {
  const { problem } = subject;
  const { dtype, check, seed } = options;
  if (problem.m * problem.n * problem.batch === 0) {
    throw new InputRangeError(`Cannot search: the result of ${printGemm(problem)} is empty`);
  }
  const target = options.json ? "-" : options.jsonl;
  using records = openRecords(target, writes, { force: options.force });
  using gpu = await openGpu(options.backend, gemmFeatures(dtype));
  const candidates = gemmCandidates(gpu, problem, options, choiceOf(options).variant);
  const operands = await readGemm(subject, options);
  await refuseOverflow({ problem, dtype, check }, () => operands);
  const shown = progress();
  const asked = check === "none" ? undefined : { problem, dtype, operands, mode: check, seed };
  const reference = asked && {
    outputs: await computeGemmReference(asked),
    projection: await gemmProjection(asked),
  };
  const ranking = await gpu.guard(() =>
    searchGemm(
      gpu,
      problem,
      options,
      candidates,
      operands,
      reference,
      { samples: options.runs ?? 15, fillMs: options.fillMs ?? 5 },
      (fraction) => shown.update(`searching ${(100 * fraction).toFixed(0)} %`),
    )
  );
  shown.done();
  records.write(environmentRecord(describe(gpu), seed));
  ranking.forEach((record) => records.write(record));
  const out = printer(target === "-" ? "stderr" : "stdout");
  out.line(`problem     gemm ${[printGemm(problem), printEpilogue(problem)].join(" ").trimEnd()}`);
  out.line(`device      ${gpu.info.adapter} (${options.backend})`);
  out.line(rankingTable(ranking));
  for (const { policy, splits, verdict, message } of ranking) {
    if (verdict === "fail") out.message(`fail: ${policy} with ${splits} splits: ${message}`);
  }
  writes.conclude(ranking.some(({ verdict }) => verdict === "fail") ? EXIT.accuracy : EXIT.ok);
}

/** Candidates as a table, fastest first; the planner's choice has a star. */
export function rankingTable(ranking: readonly TuningRecord[]): string {
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
      { title: "kernel" },
    ],
    ranking.map((record) => [
      `${record.policy}${record.chosen ? " *" : ""}`,
      String(record.splits),
      record.balance,
      formatMilliseconds(record.time_ms.median),
      rate(record.gflops),
      rate(record.predicted_gflops),
      `${(100 * best / record.time_ms.median).toFixed(0)} %`,
      record.verdict === "none" ? "-" : record.verdict,
      record.kernel,
    ]),
  );
}
