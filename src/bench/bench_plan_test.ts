import assert from "#assert";
import { parseDescriptor, parseDescriptors } from "../problem/descriptor.ts";
import type { CaseRecord } from "../report/record.ts";
import {
  benchGroups,
  type BenchPlan,
  caseId,
  recordCount,
  recordId,
  remainingGroups,
  shardGroups,
} from "./bench_plan.ts";

const channelsOf = (descriptor: string) => parseDescriptor(descriptor).inChannels;

const PLAN: BenchPlan = {
  problems: parseDescriptors("mb1ic4,8,16,32ih8oc4kh3"),
  ops: ["fwd", "bwd-data"],
  dtypes: ["f32"],
  layouts: ["nchw", "nhwc"],
  algorithms: ["auto", "direct"],
  policies: ["auto"],
  tiles: ["auto"],
  caches: ["hot", "cold"],
  check: "none",
  fill: "uniform01",
  seed: 1,
  protocol: { samples: 1, fillMs: 0 },
};

Deno.test("benchGroups() makes a group of every problem, layout and operation, once", () => {
  const groups = benchGroups(PLAN);
  assert.equal(groups.length, 16);
  assert.equal(recordCount(groups), 64);
  const twice = { ...PLAN, problems: [...PLAN.problems, ...PLAN.problems] };
  assert.equal(benchGroups(twice).length, 16);
});

Deno.test("recordId() of a record is the caseId() of its case, and remainingGroups() leaves it out", () => {
  const groups = benchGroups(PLAN);
  const group = groups[3]!;
  const record = {
    problem: "mb1ic4ih8oc4oh6kh3",
    op: "bwd-data",
    algorithm: "implicit-gemm",
    requested: "auto",
    layout: "nhwc",
    dtype: "f32",
    cache: "cold",
  } as CaseRecord;
  assert.equal(recordId(record), caseId(group, group.cases[0]!, "cold"));
  const left = remainingGroups(groups, new Set([recordId(record)]));
  assert.equal(recordCount(left), 63);
  assert.deepEqual(left[3]!.cases[0]!.caches, ["hot"]);
  const all = groups.flatMap((one) =>
    one.cases.flatMap((each) => each.caches.map((cache) => caseId(one, each, cache)))
  );
  assert.equal(new Set(all).size, 64);
  assert.deepEqual(remainingGroups(groups, new Set(all)), []);
});

Deno.test("shardGroups() gives every group to one part, and the parts alike work", () => {
  const groups = benchGroups(PLAN);
  const parts = [1, 2, 3].map((index) => shardGroups(groups, { index, count: 3 }));
  assert.deepEqual(new Set(parts.flat()), new Set(groups));
  assert.equal(parts.flat().length, groups.length);
  const channels = parts.map((part) =>
    part.reduce((sum, { subject }) => sum + channelsOf(subject.traits.problem), 0)
  );
  assert.ok(Math.max(...channels) - Math.min(...channels) <= 32, `${channels}`);
  assert.equal(shardGroups(groups.slice(0, 1), { index: 2, count: 2 }).length, 0);
});

Deno.test("shardGroups() keeps together what shares its data, unless there is too little to go round", () => {
  const ops = ["fwd", "bwd-data", "bwd-filter"] as const;
  const groups = benchGroups({
    ...PLAN,
    problems: parseDescriptors("mb32ic16ih64oc16kh3,4,5"),
    ops,
    layouts: ["nchw"],
  });
  const shardsOf = (some: typeof groups, count: number) =>
    Array.from({ length: count }, (_, at) => shardGroups(some, { index: at + 1, count }));
  for (const part of shardsOf(groups, 3)) {
    assert.deepEqual(part.map(({ subject }) => subject.traits.op), ops);
    assert.equal(new Set(part.map(({ subject }) => subject.traits.problem)).size, 1);
  }
  // One problem, and two, for three parts: all of them work.
  assert.deepEqual(shardsOf(groups.slice(0, 3), 3).map((part) => part.length), [1, 1, 1]);
  assert.deepEqual(shardsOf(groups.slice(0, 6), 3).map((part) => part.length), [2, 2, 2]);
});

Deno.test("a case is told from its like by the type of its result, in records as in plans", () => {
  const bench: BenchPlan = {
    ...PLAN,
    problems: parseDescriptors("mb1ic4ih8oc4kh3"),
    ops: ["fwd"],
    layouts: ["nchw"],
    dtypes: ["f16", "f32"],
    outDtype: "f32",
  };
  const groups = benchGroups(bench);
  const traits = groups.map(({ subject }) => subject.traits);
  assert.deepEqual(traits.map(({ dtype, outDtype }) => [dtype, outDtype]), [["f16", "f32"], [
    "f32",
    undefined,
  ]]);
  const ids = groups.map((group) => caseId(group, group.cases[0]!, "hot"));
  const records = groups.map(({ subject: { traits } }, i) => {
    const { outDtype, ...rest } = traits;
    const out = outDtype === undefined ? {} : { out_dtype: outDtype };
    return recordId({ ...rest, ...out, algorithm: groups[i]!.cases[0]!.algorithm });
  });
  assert.deepEqual(records, ids);
  assert.notEqual(
    ids[0],
    caseId(benchGroups({ ...bench, outDtype: undefined })[0]!, groups[0]!.cases[0]!, "hot"),
  );
});
