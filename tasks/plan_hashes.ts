/** `deno task plan-hashes`: writes what plans run, for `tests/plans_test.ts` to hold them to. */
import { PLAN_HASHES, planHashes } from "../tests/plan_hashes.ts";

Deno.writeTextFileSync(PLAN_HASHES, [...planHashes()].join("\n") + "\n");
