import assert from "#assert";
import type { Plan } from "../algorithms/plan.ts";
import { openDevice } from "../gpu/device.ts";
import { loseDeviceAt } from "../../tests/support/test_plans.ts";
import { parseDescriptors } from "../problem/descriptor.ts";
import { benchGroups, type BenchPlan } from "./bench_plan.ts";
import { gpuExecutor } from "../run/executor.ts";
import type { RunHooks } from "./run_group.ts";
import { runSuite } from "./run_suite.ts";

const PLAN: BenchPlan = {
  problems: parseDescriptors("mb1ic4,6ih9oc4kh3"),
  ops: ["fwd"],
  dtypes: ["f32"],
  layouts: ["nchw"],
  algorithms: ["direct", "implicit-gemm"],
  policies: ["auto"],
  tiles: ["auto"],
  caches: ["hot", "cold"],
  check: "full",
  fill: "normal",
  seed: 1,
  protocol: { samples: 2, fillMs: 0 },
};

/** Runs a suite; counts how often a device was opened. */
async function run(plan: BenchPlan, hooks: RunHooks = {}) {
  let opened = 0;
  const seen: [number, number][] = [];
  const open = async () => {
    opened++;
    return gpuExecutor(await openDevice());
  };
  const onCase = (index: number, count: number) => void seen.push([index, count]);
  const records = await Array.fromAsync(runSuite(plan, benchGroups(plan), open, onCase, hooks));
  return { records, opened, seen };
}

const withoutCompiling = (plan: Plan): Plan => ({
  ...plan,
  passes: plan.passes.map((pass) => ({
    ...pass,
    kernel: { ...pass.kernel, name: `broken ${pass.kernel.name}`, wgsl: "fn main() { nonsense }" },
  })),
});

Deno.test("runSuite() times a group's cases together, hot and cold, and checks each", async () => {
  const checked: string[] = [];
  const { records, opened, seen } = await run(PLAN, {
    onRan: ({ record, checked: on }) =>
      void checked.push(`${record.algorithm} ${on!.result.length}`),
  });
  assert.equal(opened, 1);
  assert.deepEqual(seen, [[1, 8], [5, 8]]);
  assert.deepEqual(
    records.slice(0, 4).map(({ algorithm, cache }) => `${algorithm} ${cache}`),
    ["direct hot", "direct cold", "implicit-gemm hot", "implicit-gemm cold"],
  );
  assert.ok(
    records.every(({ verdict, time_ms }) => verdict === "pass" && time_ms?.samples.length === 2),
  );
  assert.deepEqual(checked.slice(2, 4), ["implicit-gemm 196", "implicit-gemm 196"]);
});

Deno.test("runSuite() tries cases alone when one of them fails, and goes on", async () => {
  const { records, opened } = await run(PLAN, {
    alterPlan: (plan, { subject: { traits } }) =>
      plan.algorithm === "direct" && traits.problem.startsWith("mb1ic4")
        ? withoutCompiling(plan)
        : plan,
  });
  assert.deepEqual(
    records.map(({ problem, algorithm, verdict }) => [problem.slice(0, 6), algorithm, verdict]),
    [
      ["mb1ic4", "direct", "error"],
      ["mb1ic4", "direct", "error"],
      ["mb1ic4", "implicit-gemm", "pass"],
      ["mb1ic4", "implicit-gemm", "pass"],
      ["mb1ic6", "direct", "pass"],
      ["mb1ic6", "direct", "pass"],
      ["mb1ic6", "implicit-gemm", "pass"],
      ["mb1ic6", "implicit-gemm", "pass"],
    ],
  );
  assert.match(records[0]!.message!, /nonsense/);
  // After each of the two errors of the device it is opened anew.
  assert.equal(opened, 3);
});

Deno.test("runSuite() tells what it skips, and gives an empty result no time", async () => {
  const skipped: string[] = [];
  const { records } = await run({
    ...PLAN,
    problems: parseDescriptors("mb0ic4ih9oc4kh3"),
    algorithms: ["implicit-gemm", "im2win"],
    ops: ["bwd-data"],
    caches: ["hot"],
  }, { onSkip: (what, reason) => void skipped.push(`${what}: ${reason}`) });
  assert.equal(skipped.length, 1);
  assert.match(skipped[0]!, /^im2win: /);
  assert.deepEqual(records.map(({ verdict, message }) => [verdict, message]), [
    ["none", "the result is empty"],
  ]);
});

Deno.test("runSuite() loses one case where the device is lost, in whatever moment", async () => {
  const plan: BenchPlan = { ...PLAN, algorithms: ["direct"], caches: ["hot"] };
  /** Loses the first device before its `moment`th call, if there are as many. */
  const runLosing = async (moment: number) => {
    let calls: (() => number) | undefined;
    const open = async () => {
      const gpu = await openDevice();
      calls ??= loseDeviceAt(gpu, moment);
      return gpuExecutor(gpu);
    };
    const records = await Array.fromAsync(runSuite(plan, benchGroups(plan), open, () => {}));
    return { records, lost: calls!() >= moment };
  };
  let moments = 0;
  // Each of the first calls, then one in ever more.
  for (let moment = 1;; moment += Math.ceil(moment / 4)) {
    const { records, lost } = await runLosing(moment);
    const verdicts = records.map(({ verdict }) => verdict);
    if (!lost) {
      assert.deepEqual(verdicts, ["pass", "pass"]);
      break;
    }
    moments++;
    assert.deepEqual(verdicts.sort(), ["error", "pass"], `moment ${moment}`);
    const { message } = records.find(({ verdict }) => verdict === "error")!;
    assert.match(message!, /^Cannot .*: the device was lost: /, `moment ${moment}`);
  }
  assert.ok(moments > 10, `${moments}`);
});

Deno.test("runSuite() loses no case where the device is lost while kernels are timed", async () => {
  let asked = 0;
  const tuning: RunHooks["tuning"] = (executor) => {
    if (++asked === 2) executor.close();
    return Promise.resolve(undefined);
  };
  const { records, opened } = await run({ ...PLAN, caches: ["hot"] }, { tuning });
  assert.deepEqual(records.map(({ verdict }) => verdict), Array(4).fill("pass"));
  assert.equal(opened, 2);
});

Deno.test("a group that shares a device that is lost is tried again, case by case", async () => {
  const plan: BenchPlan = { ...PLAN, problems: PLAN.problems.slice(0, 1), caches: ["hot"] };
  let opened = 0;
  const open = async () => {
    const gpu = await openDevice();
    if (opened++ === 0) loseDeviceAt(gpu, 20);
    return gpuExecutor(gpu);
  };
  const records = await Array.fromAsync(runSuite(plan, benchGroups(plan), open, () => {}));
  assert.deepEqual(records.map(({ verdict }) => verdict), ["pass", "pass"]);
  assert.equal(opened, 2);
});
