import assert from "#assert";
import type { AccuracyRecord, Verdict } from "../report/record.ts";
import { chunkChecks } from "./chunk_checks.ts";

Deno.test("chunks of which one fails fail, those that say nothing leave the verdict to the others", () => {
  const accuracy = { checked: 4, total: 4, zero_ref: 0, worst: [] } as unknown as AccuracyRecord;
  const joined = (...verdicts: readonly Verdict[]) => {
    const checks = chunkChecks(4 * verdicts.length, true);
    verdicts.forEach((verdict, first) =>
      checks.add({ checked: { accuracy, verdict, message: verdict }, first, images: 1 })
    );
    return checks.done();
  };
  assert.equal(joined("pass", "none", "fail").verdict, "fail");
  assert.equal(joined("none", "pass").verdict, "pass");
  const unsaid = joined("none", "none");
  assert.deepEqual([unsaid.verdict, "message" in unsaid && unsaid.message], [
    "none",
    "image 0: none; image 1: none",
  ]);
});
