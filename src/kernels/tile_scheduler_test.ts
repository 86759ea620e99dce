import assert from "#assert";
import fc from "fast-check";
import { matrixPolicies } from "./matrix_policies.ts";
import { TILE_POLICIES } from "./policy.ts";
import { paddedSteps, stepsPerSplit, unitSchedule, unrollFactorOf } from "./tile_scheduler.ts";

const UNIT = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;

Deno.test("rounds are whole parts of all steps, and make no split much longer than it need be", () => {
  const [policy] = matrixPolicies(UNIT, 32) as [ReturnType<typeof matrixPolicies>[0]];
  let [unrolled, none] = [0, 0];
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2000 }),
      fc.integer({ min: 2, max: 64 }),
      fc.boolean(),
      (steps, splits, streamed) => {
        const count = unrollFactorOf(steps, splits, policy, streamed);
        const even = [8, 6, 4].filter((count) => steps % count === 0);
        const longest = even.map((count) => stepsPerSplit(steps, splits, count));
        const least = streamed ? Math.min(...longest) : Math.ceil(steps / splits);
        if (count === undefined) {
          none++;
          assert.ok(longest.every((length) => length > 1.03 * least));
          return;
        }
        unrolled++;
        assert.ok(even.includes(count));
        assert.ok(stepsPerSplit(steps, splits, count) <= 1.03 * least);
        assert.ok(stepsPerSplit(steps, splits, count) * splits >= steps);
      },
    ),
    { seed: 20261125, numRuns: 3000 },
  );
  assert.ok(unrolled > 500 && none > 500, `${unrolled}, ${none}`);
  for (const threads of TILE_POLICIES) {
    assert.equal(unrollFactorOf(64, 4, threads, true), undefined);
  }
});

const POLICIES = matrixPolicies(UNIT, 32);
const CASES = {
  policy: fc.constantFrom(...POLICIES),
  steps: fc.integer({ min: 1, max: 3000 }),
  length: fc.integer({ min: 1, max: 4096 }),
};

Deno.test("padded steps go by rounds where sums are stored on their way, and are few more", () => {
  let padded = 0;
  fc.assert(
    fc.property(fc.record(CASES), ({ policy, steps, length }) => {
      const chain = { length, totals: "result" } as const;
      const all = paddedSteps(policy, chain, steps);
      const most = Math.max(1, Math.floor(length / policy.depth));
      if (steps <= most) return assert.equal(all, steps);
      const { unrollFactor, flush } = unitSchedule(policy, chain, { steps: all });
      assert.ok(
        flush!.interval <= most && flush!.interval * Math.ceil(all / flush!.interval) >= all,
      );
      if (most < 4) return assert.deepEqual([all, unrollFactor], [steps, undefined]);
      if (all > steps) padded++;
      assert.ok(all >= steps && all <= Math.max(steps + 3, 1.03 * steps), `${steps}: ${all}`);
      assert.equal(all % unrollFactor!, 0);
      assert.equal(flush!.interval % unrollFactor!, 0);
    }),
    { seed: 20261125, numRuns: 3000 },
  );
  assert.ok(padded > 300, `${padded}`);
  // 3088 products are 193 steps, which nothing divides; 5120 are 320.
  const ahead = POLICIES.find(({ name }) => name === "matrix-ahead")!;
  const chain = { length: 2048, totals: "result" } as const;
  assert.deepEqual([3088, 5120].map((k) => paddedSteps(ahead, chain, k / 16)), [198, 320]);
  assert.deepEqual(unitSchedule(ahead, chain, { steps: 320 }).flush, {
    interval: 112,
    totals: "result",
  });
});

Deno.test("only what is stored on its way is padded, and who has a depth alone goes by rounds for nothing else", () => {
  for (const policy of [...POLICIES, ...TILE_POLICIES]) {
    for (const steps of [1, 7, 313, 2001]) {
      assert.equal(paddedSteps(policy, undefined, steps), steps);
      assert.equal(unitSchedule(policy, undefined, { steps: 8 * steps }).unrollFactor, undefined);
      assert.equal(paddedSteps(policy, { length: 224, totals: "registers" }, steps), steps);
    }
  }
});

Deno.test("parts of workgroups that share a depth are whole rounds of theirs, or go by none", () => {
  let [rounded, none] = [0, 0];
  fc.assert(
    fc.property(
      fc.record({
        ...CASES,
        splits: fc.integer({ min: 2, max: 9 }),
        streamed: fc.boolean(),
        totals: fc.constantFrom("registers", "result"),
      }),
      ({ policy, steps, length, splits, streamed, totals }) => {
        const { longest, unrollFactor, flush } = unitSchedule(
          policy,
          { length, totals },
          { steps, splits, streamed },
        );
        assert.ok(streamed ? longest === steps : longest * splits >= steps);
        if (flush === undefined) return;
        if (totals === "registers") assert.equal(unrollFactor, undefined);
        if (unrollFactor === undefined) return void none++;
        rounded++;
        assert.deepEqual([longest % unrollFactor, flush.interval % unrollFactor], [0, 0]);
      },
    ),
    { seed: 20261125, numRuns: 3000 },
  );
  assert.ok(rounded > 200 && none > 200, `${rounded}, ${none}`);
});
