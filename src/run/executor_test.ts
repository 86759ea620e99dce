import assert from "#assert";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { caseChecks } from "./case_checks.ts";
import { convSubject } from "./conv_subject.ts";
import { cpuExecutor } from "./executor.ts";
import { gemmSubject } from "./gemm_subject.ts";
import { fillOperands } from "./operands.ts";
import { runCases, stationOf } from "./runner.ts";
import type { Subject } from "./subject.ts";

const CPU_CASE = { plan: undefined, caches: ["hot"] } as const;

/** What the CPU makes of a subject's seeded data, held against single sums after `spoil`. */
async function onCpu(subject: Subject, spoil: (result: { [at: number]: number }) => void) {
  const operands = fillOperands(subject, "uniform11", 3);
  const checks = caseChecks({ subject, operands, mode: "full", seed: 1 }, true);
  const protocol = { samples: 2, fillMs: 0 };
  using station = await stationOf(cpuExecutor(), subject, [CPU_CASE], operands);
  const [ran] = await Array.fromAsync(runCases(station, { protocol, fetched: true }));
  const { result, times, outcome } = ran!;
  assert.deepEqual([outcome.verdict, times[0]!.clock, times[0]!.samples.length], [
    "none",
    "wall",
    2,
  ]);
  spoil(result as Float32Array);
  return { result: result!, checked: await checks.check({ result: result!, arithmetic: {} }) };
}

Deno.test("cpuExecutor() rounds the reference to the result's type and layout; single sums tell a wrong one", async () => {
  const problem = parseDescriptor("mb2ic5ih9oc6kh3ph1", "fwd");
  const subjects = [
    convSubject({ problem, layout: "nhwc", filterLayout: "krsc" }),
    convSubject({
      problem: { ...problem, op: "bwd-filter" },
      layout: "chwn",
      filterLayout: "crsk",
    }),
    ...(["f32", "f16", "f64"] as const).map((dtype) =>
      gemmSubject(gemmProblem({ m: 20, n: 12, k: 30, batch: 2, bias: "row" }), { dtype })
    ),
  ];
  for (const subject of subjects) {
    const { result, checked } = await onCpu(subject, () => {});
    const { op, dtype } = subject.traits;
    assert.equal(checked.verdict, "pass", `${op} ${dtype}: ${checked.message}`);
    assert.equal(checked.accuracy.checked, result.length);
    const wrong = await onCpu(subject, (values) => values[7]! += 0.1);
    assert.equal(wrong.checked.verdict, "fail", `${op} ${dtype}`);
  }
});
