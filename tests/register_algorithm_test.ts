import assert from "#assert";
import type { Algorithm } from "../src/algorithms/algorithm.ts";
import { planDirect } from "../src/algorithms/direct/algorithm.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { planConv, supportedAlgorithms } from "../src/algorithms/planner.ts";
import { expectPlanned } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { algorithmNames, algorithmOf, registerAlgorithm } from "../src/algorithms/registry.ts";
import { benchGroups, type BenchPlan } from "../src/bench/bench_plan.ts";
import { runSuite } from "../src/bench/run_suite.ts";
import { tuneSuite } from "../src/bench/tune_suite.ts";
import { allPlans } from "../src/cli/plan_tables.ts";
import { algorithmChoices } from "../src/cli/problem_options.ts";
import { openDevice } from "../src/gpu/device.ts";
import type { SizeMode } from "../src/kernels/module.ts";
import { parseDescriptor, parseDescriptors } from "../src/problem/descriptor.ts";
import { gpuExecutor } from "../src/run/executor.ts";
import { request } from "./plan_request.ts";

/** `direct` under another name, which takes forward problems only and says that it takes no time. */
const MINE: Algorithm<PlanRequest> = {
  name: "mine",
  options: [],
  refuse: ({ problem }) => problem.op === "fwd" ? undefined : "it goes forward only",
  candidates: () => [{ algorithm: "mine", amplification: 1 }],
  geometry: (request) => request,
  price: () => 1,
  plan: (request, mode) => ({ ...expectPlanned(planDirect(request, mode)), algorithm: "mine" }),
};

const REQUEST = request(parseDescriptor("mb1ic4ih9oc4kh3"), { limits: DEFAULT_LIMITS });

const BENCH: BenchPlan = {
  problems: parseDescriptors("mb1ic4ih9oc4kh3"),
  ops: ["fwd"],
  dtypes: ["f32"],
  layouts: ["nchw"],
  algorithms: ["mine"],
  policies: ["auto"],
  tiles: ["auto"],
  caches: ["hot"],
  check: "full",
  fill: "normal",
  seed: 1,
  protocol: { samples: 2, fillMs: 0 },
};

const open = async () => gpuExecutor(await openDevice());

Deno.test("an algorithm that is registered is planned, listed, weighed, run, timed and tuned", async () => {
  assert.throws(() => planConv({ ...REQUEST, algorithm: "mine" }), /there is no algorithm mine/);
  {
    using _ = registerAlgorithm(MINE);
    assert.equal(algorithmNames().at(-1), "mine");
    assert.ok(algorithmChoices().includes("mine"));
    assert.throws(() => registerAlgorithm(MINE), /Cannot register mine: there is an algorithm/);

    assert.equal(planConv({ ...REQUEST, algorithm: "mine" }).algorithm, "mine");
    assert.equal(planConv(REQUEST).algorithm, "mine", "auto takes what is said to be fastest");
    const backward = { ...REQUEST, problem: parseDescriptor("mb1ic4ih9oc4kh3", "bwd-data") };
    assert.deepEqual(
      supportedAlgorithms(backward).at(-1),
      { name: "mine", reason: "it goes forward only" },
    );
    assert.ok(allPlans(REQUEST).some(({ algorithm }) => algorithm === "mine"));

    const records = await Array.fromAsync(
      runSuite(BENCH, benchGroups(BENCH), open, () => {}),
    );
    assert.deepEqual(records.map(({ algorithm, verdict }) => [algorithm, verdict]), [[
      "mine",
      "pass",
    ]]);

    const tuned = await Array.fromAsync(
      tuneSuite({ ...BENCH, algorithms: ["direct", "mine"] }, open, () => {}),
    );
    const rivals = tuned.flatMap((group) => group.records.map(({ algorithm }) => algorithm));
    for (const name of ["direct", "mine"]) assert.ok(rivals.includes(name), `${rivals}`);
  }
  assert.equal(algorithmOf("mine"), undefined);
});

Deno.test("auto derives an algorithm's geometry once: price and plan take the same", () => {
  const derived: PlanRequest[] = [];
  const planned: PlanRequest[] = [];
  using _ = registerAlgorithm({
    ...MINE,
    geometry(request: PlanRequest) {
      derived.push(request);
      return request;
    },
    plan(request: PlanRequest, mode: SizeMode) {
      planned.push(request);
      return MINE.plan(request, mode);
    },
  });
  assert.equal(planConv(REQUEST).algorithm, "mine");
  assert.equal(derived.length, 1);
  assert.equal(planned[0], derived[0]);
});
