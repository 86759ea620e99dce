import assert from "#assert";
import { PLAN_HASHES, planHashes } from "./plan_hashes.ts";

Deno.test("plans run the kernels that they ran: deno task plan-hashes writes what they run now", () => {
  const kept = Deno.readTextFileSync(PLAN_HASHES).trimEnd().split("\n");
  assert.deepEqual([...planHashes()].filter((line, i) => line !== kept[i]), []);
  assert.ok(kept.filter((line) => !line.includes("refused")).length > 1000);
});
