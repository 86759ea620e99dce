import assert from "#assert";
import { H200_LIMITS } from "../../../bench/h200_limits.ts";
import { request, resnet } from "../../../tests/support/fused_requests.ts";
import { convProblem } from "../../problem/conv_problem.ts";
import { planConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { cutRun } from "./price.ts";

Deno.test("along one axis workgroups that leave multiprocessors idle share depths", () => {
  const conv5 = resnet[3]!;
  const one = { algorithm: "winograd1d", layout: "nhwc" } as const;
  const plan = (more: Partial<PlanRequest>) =>
    planConv(request(conv5, { ...one, tile: "F(4,3)", ...more }));
  // 56 blocks of 64 tiles of 4 results and 64 channels.
  const results = 4 * 56 * 64 * 64 * 4;
  const [auto, whole, three] = [
    plan({}),
    plan({ schedule: { splits: 1 } }),
    plan({ schedule: { splits: 3 } }),
  ];
  // 56 workgroups of 64 x 64 on 132 multiprocessors.
  assert.match(auto.kernel, /_64x64x8_8x8_nhwc_.*_split$/);
  assert.match(auto.notes[1]!, /: 392 workgroups of 384 threads, 7 of which share the depth/);
  assert.match(auto.passes[2]!.kernel.name, /_parts_64x64_/);
  assert.equal(auto.workspaceBytes, 4 * 6 * 3 * 512 * 512 + 7 * results);
  assert.equal(three.workspaceBytes - whole.workspaceBytes, 3 * results);
  assert.equal(
    auto.multiplications,
    plan({ schedule: { splits: 1, policy: "64x64x8_8x8" } }).multiplications,
  );
  // Sums are no longer than a whole depth's parts.
  assert.deepEqual(
    [auto, three, whole].map(({ arithmetic: { chain, segment } }) => [chain, segment]),
    [[8 * 28, 8 * 28], [512, 512], [512, undefined]],
  );
  // Steps that three do not divide, in parts.
  assert.deepEqual(
    [plan({ schedule: { splits: 5, flush: 64 } })].map((
      { arithmetic: { chain, segment } },
    ) => [chain, segment]),
    [[64, 8 * Math.ceil(192 / 5)]],
  );
  // Where there is room.
  const room = whole.workspaceBytes + 2 * results;
  assert.equal(plan({ maxWorkspaceBytes: room - 1 }).passes.length, 2);
  assert.equal(plan({ schedule: { splits: 3 }, maxWorkspaceBytes: room }).workspaceBytes, room);
  // What fills the device is whole, as are whole waves before blocks that share depths, and two axes.
  const conv2 = { ...one, tile: "F(4,3)" } as const;
  assert.equal(planConv(request(resnet[4]!, conv2)).passes.length, 2);
  const tail = planConv(request(resnet[4]!, { ...one, tile: "F(6,3)" }));
  assert.match(tail.kernel, /_tail$/);
  // 560 blocks: four waves of 132, and 32 that three workgroups share each.
  assert.match(tail.notes[1]!, /: 624 workgroups of 256 threads, 3 .* each of the last 32 blocks/);
  assert.deepEqual([tail.arithmetic.chain, tail.arithmetic.segment], [undefined, undefined]);
  assert.equal(planConv(request(conv5, { layout: "nhwc", tile: "F(2x2,3x3)" })).passes.length, 2);
  assert.match(
    planConv(request(conv5, { schedule: { splits: 2 }, tile: "F(2x2,3x3)" })).kernel,
    /_split$/,
  );
});

Deno.test("splits are none where the workspace has no room for the wider tile that they would take", () => {
  // Whole depths take tiles of 32 filters, splits ones of 64, whose filter is padded to more.
  const cases = [
    { batch: 2, inChannels: 349, outChannels: 287, size: 21, maxWorkspaceBytes: 11_354_112 },
    { batch: 16, inChannels: 192, outChannels: 96, size: 14, maxWorkspaceBytes: 6_414_336 },
  ];
  for (const { size, maxWorkspaceBytes, ...counts } of cases) {
    const problem = convProblem({
      ...{ ...counts, inputSize: [size, size], filterSize: [3, 3], paddingBegin: [1, 1] },
    });
    for (const splits of [undefined, 2, 8]) {
      const plan = planConv(
        request(problem, {
          ...{ algorithm: "winograd1d", layout: "nhwc", limits: H200_LIMITS, maxWorkspaceBytes },
          schedule: { ...(splits && { splits }) },
        }),
      );
      assert.ok(plan.workspaceBytes <= maxWorkspaceBytes, `${plan.workspaceBytes}`);
    }
  }
});

Deno.test("splits of whole chains are added up where results are", () => {
  const problem = convProblem({
    ...{ batch: 16, inChannels: 192, outChannels: 96, inputSize: [14, 14], filterSize: [3, 3] },
  });
  const { arithmetic } = planConv(
    request(problem, { algorithm: "winograd1d", layout: "nhwc", schedule: { splits: 2 } }),
  );
  assert.equal(arithmetic.fold, "results");
});

Deno.test("splitBlocks() leaves whole waves whole, where sums of a whole depth are one and nobody says otherwise", () => {
  const conv3 = resnet[1]!;
  const split = (more: Partial<PlanRequest>, splits: number, channels = 128, batch = 96) => {
    const problem = { ...conv3, batch, inChannels: channels };
    const asked = request(problem, { algorithm: "winograd1d", layout: "nhwc", ...more });
    const cut = cutRun(asked, [{ n: 4, r: 3, first: 0, count: 7 }], splits);
    if (isRefusal(cut) || cut.split === undefined) return undefined;
    const { steps, ...own } = cut.split;
    assert.equal(steps, 3 * channels / 8);
    return own;
  };
  // 588 blocks of 64 tiles and 64 channels: four waves of 132, and 60.
  for (let splits = 2; splits <= 16; splits++) {
    assert.deepEqual(split({}, splits), { first: 528, count: 60, splits });
  }
  assert.equal(split({}, 1), undefined);
  // 264 are two waves.
  assert.equal(split({}, 2, 128, 43), undefined);
  assert.deepEqual(split({ schedule: { splits: 2 } }, 2), { first: 0, count: 588, splits: 2 });
  // Sums of 1536 are parts.
  assert.deepEqual(split({}, 3, 512), { first: 0, count: 588, splits: 3 });
});

Deno.test("blocks that share depths are none where their kernel had more bindings than the device", () => {
  const kernel = (most: number) => {
    const limits = { ...H200_LIMITS, maxStorageBuffersPerShaderStage: most };
    const tail = { algorithm: "winograd1d", layout: "chwn", tile: "F(6,3)" } as const;
    return planConv({ ...request(resnet[4]!, tail), limits }).kernel;
  };
  assert.match(kernel(4), /_tail$/);
  assert.doesNotMatch(kernel(3), /_tail|_split/);
});
