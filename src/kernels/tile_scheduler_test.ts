import assert from "#assert";
import fc from "fast-check";
import { matrixPolicies } from "./matrix_policies.ts";
import { TILE_POLICIES } from "./policy.ts";
import { roundSteps, stepsPerSplit } from "./tile_scheduler.ts";

const UNIT = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;

Deno.test("rounds are whole parts of all steps, and make no split much longer than it need be", () => {
  const [policy] = matrixPolicies(UNIT, 32) as [ReturnType<typeof matrixPolicies>[0]];
  let [rounds, none] = [0, 0];
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2000 }),
      fc.integer({ min: 2, max: 64 }),
      fc.boolean(),
      (steps, splits, streamed) => {
        const count = roundSteps(steps, splits, policy, streamed);
        const even = [8, 6, 4].filter((count) => steps % count === 0);
        const longest = even.map((count) => stepsPerSplit(steps, splits, count));
        const least = streamed ? Math.min(...longest) : Math.ceil(steps / splits);
        if (count === undefined) {
          none++;
          assert.ok(longest.every((length) => length > 1.03 * least));
          return;
        }
        rounds++;
        assert.ok(even.includes(count));
        assert.ok(stepsPerSplit(steps, splits, count) <= 1.03 * least);
        assert.ok(stepsPerSplit(steps, splits, count) * splits >= steps);
      },
    ),
    { seed: 20261125, numRuns: 3000 },
  );
  assert.ok(rounds > 500 && none > 500, `${rounds}, ${none}`);
  for (const threads of TILE_POLICIES) assert.equal(roundSteps(64, 4, threads, true), undefined);
});
