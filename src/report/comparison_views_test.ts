import assert from "#assert";
import { ACCURACY, timeOf } from "../../tests/support/test_records.ts";
import { compareRuns } from "./comparison.ts";
import { comparisonData, comparisonText } from "./comparison_views.ts";
import { CaseSchema, readRecord } from "./record_schema.ts";

Deno.test("a comparison counts cases that ran other kernels because one side had timed them", () => {
  const record = (problem: string, kernel: string, choice?: "measured") =>
    readRecord(CaseSchema, {
      ...{ schema: 1, kind: "case", provider: "wgconv", problem, op: "fwd", dtype: "f32", kernel },
      ...{ algorithm: "direct", requested: "auto", time_ms: timeOf(1), accuracy: ACCURACY },
      ...{ verdict: "pass", ...(choice && { choice }) },
    }, "test");
  const base = [record("a", "one"), record("b", "one"), record("c", "one", "measured")];
  const next = [record("a", "two", "measured"), record("b", "two"), record("c", "one")];
  const comparison = compareRuns(base, next, "algorithm", { threshold: 0.05, margin: 0.02 });
  assert.match(
    comparisonText(comparison),
    /^1 case ran another kernel: one side took what was timed on its device \(tune, --tune-budget\)$/m,
  );
  const [first] = comparisonData(comparison).cases;
  assert.deepEqual([first!.base.choice, first!.new.choice], [undefined, "measured"]);
});

Deno.test("a comparison says which devices differ, a card that Dawn and CUDA spell in two ways is one", () => {
  const record = (device: string) =>
    readRecord(CaseSchema, {
      ...{ schema: 1, kind: "case", provider: "wgconv", problem: "a", op: "fwd", dtype: "f16" },
      ...{ algorithm: "direct", requested: "auto", time_ms: timeOf(1), accuracy: ACCURACY },
      ...{ verdict: "pass", device },
    }, "test");
  const said = (base: string, next: string) =>
    /^the devices differ: .*$/m.exec(comparisonText(
      compareRuns([record(base)], [record(next)], "algorithm", { threshold: 0.05, margin: 0.02 }),
    ))?.[0];
  assert.equal(said("nvidia-h200", "NVIDIA H200"), undefined);
  assert.equal(said("nvidia-h200", ""), undefined);
  const unlike = "the devices differ: NVIDIA H100 and nvidia-h200";
  assert.equal(said("NVIDIA H100", "nvidia-h200"), unlike);
});
