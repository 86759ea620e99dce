import assert from "#assert";
import type { AccuracyRecord, Verdict } from "../report/record.ts";
import { chunkChecks } from "./batch.ts";

Deno.test("chunks of which one fails fail, those of NaN alone leave the verdict to the others", () => {
  const accuracy = {
    checked: 4,
    total: 4,
    nan: 4,
    zero_ref: 0,
    worst: [],
  } as unknown as AccuracyRecord;
  const joined = (...verdicts: readonly Verdict[]) => {
    const checks = chunkChecks(4 * verdicts.length, true);
    verdicts.forEach((verdict, first) =>
      checks.add({ checked: { accuracy, verdict, message: verdict }, first, images: 1 })
    );
    return checks.done();
  };
  assert.equal(joined("pass", "none", "fail").verdict, "fail");
  assert.equal(joined("none", "pass").verdict, "pass");
  // Outputs without a known bound are in the batch too.
  const unbounded = chunkChecks(8, true);
  const pass = { verdict: "pass" as const, accuracy };
  unbounded.add({ checked: pass, first: 0, images: 1 });
  const none = { verdict: "none" as const, accuracy: { ...accuracy, nan: 0 } };
  unbounded.add({ checked: none, first: 1, images: 1 });
  assert.equal(unbounded.done().verdict, "none");
  const unsaid = joined("none", "none");
  assert.deepEqual([unsaid.verdict, "message" in unsaid && unsaid.message], [
    "none",
    "image 0: none; image 1: none",
  ]);
});
