import assert from "#assert";
import { ACCURACY, caseFields } from "../../tests/support/test_records.ts";
import { caseReport } from "./case_report.ts";
import type { CaseRecord } from "./record.ts";

/** The line of a report that says the mean error. */
function errorLine(mare: number, median_rel: number): string | undefined {
  const accuracy = { ...ACCURACY, mare, median_rel, worst_group: null };
  const record = caseFields({ accuracy, flops: 1 }) as unknown as CaseRecord;
  return caseReport(record).split("\n").find((line) => line.startsWith("MARE"));
}

Deno.test("caseReport() says the median error first where references near zero carry the mean", () => {
  assert.equal(errorLine(2.95e-7, 8.64e-8), "MARE        2.95e-7 (median 8.64e-8)");
  assert.equal(
    errorLine(10_500, 1.26e-7),
    "MARE        median 1.26e-7, mean 1.05e+4 (dominated by references near zero; see the bound ratio)",
  );
});

Deno.test("caseReport() says where clocks may still have been rising", () => {
  const time = { median: 1, min: 1, mad: 0, samples: [1], repeats: 1, clock: "timestamp" };
  const line = (more: object) => {
    const fields = { time_ms: { ...time, ...more }, accuracy: null, flops: 1 };
    const record = caseFields(fields) as unknown as CaseRecord;
    return caseReport(record).split("\n").find((line) => line.startsWith("time"));
  };
  assert.doesNotMatch(line({})!, /warm-up/);
  assert.match(
    line({ warm_up: "brief" })!,
    /timestamp, brief warm-up: --runs takes a longer one\)$/,
  );
});
