import assert from "#assert";
import { request, resnet } from "../../../tests/support/fused_requests.ts";
import { H200_LIMITS } from "../../../bench/h200_limits.ts";
import { convProblem } from "../../problem/conv_problem.ts";
import { parseDescriptors } from "../../problem/descriptor.ts";
import { H200 } from "../device/h200.ts";
import { planConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { cutRun } from "./cut_run.ts";
import { fusedCut } from "./price.ts";

Deno.test("along one axis workgroups that leave multiprocessors idle share depths", () => {
  const conv5 = resnet[3]!;
  const one = { algorithm: "winograd1d", layout: "nhwc" } as const;
  const plan = (more: Partial<PlanRequest>) =>
    planConv(request(conv5, { ...one, tile: "F(4,3)", ...more }));
  // 56 blocks of 64 tiles of 4 results and 64 channels.
  const results = 4 * 56 * 64 * 64 * 4;
  const [auto, whole, three] = [plan({}), plan({ splits: 1 }), plan({ splits: 3 })];
  // 56 workgroups of 64 x 64 on 132 multiprocessors.
  assert.match(auto.kernel, /_64x64x8_8x8_nhwc_.*_split$/);
  assert.match(auto.notes[1]!, /: 392 workgroups of 384 threads, 7 of which share the depth/);
  assert.match(auto.passes[2]!.kernel.name, /_parts_64x64_/);
  assert.equal(auto.workspaceBytes, 4 * 6 * 3 * 512 * 512 + 7 * results);
  assert.equal(three.workspaceBytes - whole.workspaceBytes, 3 * results);
  assert.equal(auto.multiplications, plan({ splits: 1, policy: "64x64x8_8x8" }).multiplications);
  // Sums are no longer than a whole depth's parts.
  assert.deepEqual(
    [auto, three, whole].map(({ arithmetic: { chain, segment } }) => [chain, segment]),
    [[8 * 28, 8 * 28], [512, 512], [512, undefined]],
  );
  // Steps that three do not divide, in parts.
  assert.deepEqual(
    [plan({ splits: 5, flush: 64 })].map(({ arithmetic: { chain, segment } }) => [chain, segment]),
    [[64, 8 * Math.ceil(192 / 5)]],
  );
  // Where there is room.
  const room = whole.workspaceBytes + 2 * results;
  assert.equal(plan({ maxWorkspaceBytes: room - 1 }).passes.length, 2);
  assert.equal(plan({ splits: 3, maxWorkspaceBytes: room }).workspaceBytes, room);
  // What fills the device is whole, as are whole waves before blocks that share depths, and two axes.
  const conv2 = { ...one, tile: "F(4,3)" } as const;
  assert.equal(planConv(request(resnet[4]!, conv2)).passes.length, 2);
  const tail = planConv(request(resnet[4]!, { ...one, tile: "F(6,3)" }));
  assert.match(tail.kernel, /_tail$/);
  // 532 blocks: four waves of 132, and 4 that six workgroups share each.
  assert.match(tail.notes[1]!, /: 552 workgroups of 256 threads, 6 .* each of the last 4 blocks/);
  assert.deepEqual([tail.arithmetic.chain, tail.arithmetic.segment], [undefined, undefined]);
  assert.equal(planConv(request(conv5, { layout: "nhwc", tile: "F(2x2,3x3)" })).passes.length, 2);
  assert.match(planConv(request(conv5, { splits: 2, tile: "F(2x2,3x3)" })).kernel, /_split$/);
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
      const plan = planConv(request(problem, {
        ...{ algorithm: "winograd1d", layout: "nhwc", limits: H200_LIMITS, maxWorkspaceBytes },
        ...(splits && { splits }),
      }));
      assert.ok(plan.workspaceBytes <= maxWorkspaceBytes, `${plan.workspaceBytes}`);
    }
  }
});

Deno.test("splits of whole chains are added up where results are", () => {
  const problem = convProblem({
    ...{ batch: 16, inChannels: 192, outChannels: 96, inputSize: [14, 14], filterSize: [3, 3] },
  });
  const { arithmetic } = planConv(
    request(problem, { algorithm: "winograd1d", layout: "nhwc", splits: 2 }),
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
    assert.deepEqual(split({}, splits), { first: 528, count: 60, workgroups: 60 * splits });
  }
  assert.equal(split({}, 1), undefined);
  // 264 are two waves.
  assert.equal(split({}, 2, 128, 43), undefined);
  assert.deepEqual(split({ splits: 2 }, 2), { first: 0, count: 588, workgroups: 2 * 588 });
  // Sums of 1536 are parts.
  assert.deepEqual(split({}, 3, 512), { first: 0, count: 588, workgroups: 3 * 588 });
});

Deno.test("splitBlocks() fills whole waves with spans, but of six slices, where blocks are few or users say how many", () => {
  const conv5 = resnet[3]!;
  const split = (more: Partial<PlanRequest>, splits: number, batch = 32) => {
    const asked = request({ ...conv5, batch }, {
      algorithm: "winograd1d",
      layout: "chwn",
      ...more,
    });
    const cut = cutRun(asked, [{ n: 6, r: 3, first: 0, count: 10, pitch: 8 }], splits);
    return isRefusal(cut) ? cut : { ...cut.split!, splits: cut.product.splits };
  };
  // 40 blocks of 64 tiles and 64 channels, of 192 steps each, on 132 multiprocessors.
  const own = { first: 0, count: 40, steps: 192 };
  assert.deepEqual(split({}, 3), { ...own, workgroups: 120, splits: 3 });
  for (const splits of [4, 5, 6]) {
    assert.deepEqual(split({}, splits), { ...own, workgroups: 132, splits: 3.3 });
  }
  assert.deepEqual(split({}, 7), { ...own, workgroups: 264, splits: 6.6 });
  assert.deepEqual(split({ splits: 4 }, 4), { ...own, workgroups: 160, splits: 4 });
  // The longest of spans: 192 · 40 steps are 58.2 of each of 132.
  const plan = planConv(
    request(conv5, { algorithm: "winograd1d", layout: "chwn", tile: "F(6,3)" }),
  );
  assert.match(plan.kernel, /_joined1_split_spans$/);
  assert.match(
    plan.notes[1]!,
    /: 132 workgroups of 256 threads, which share the depths of 40 blocks/,
  );
  assert.equal(plan.arithmetic.segment, 8 * 59);
  // A part of each span, and one more of each block but the first.
  const parts = 4 * 6 * 64 * 64 * (132 + 39);
  assert.equal(plan.workspaceBytes, 4 * 8 * 3 * 512 * 512 + parts);
  const slow = { algorithm: "winograd1d", layout: "nhwc", tile: "F(4,3)" } as const;
  assert.match(planConv(request(conv5, slow)).kernel, /_split$/);
});

/** The whole numbers that WGSL declares by a name, as a function of others' values. */
function declared(wgsl: string, name: string) {
  const text = new RegExp(`(?:let|var) ${name} = (.*);`).exec(wgsl)![1]!;
  const body = text.replaceAll(/(\d+)u\b/g, "$1n").replaceAll(
    "select(",
    "((a, b, c) => c ? b : a)(",
  );
  return (values: Record<string, number>): number => {
    const names = Object.keys(values);
    const read = new Function(...names, "whole", `return ${body}`);
    return Number(read(...names.map((name) => BigInt(values[name]!)), false));
  };
}

Deno.test("spans follow each other to the last step, and each block's parts are those of the spans that have steps of it", () => {
  const seen = new Set<string>();
  for (const multiprocessors of [3, 7, 20, 33, 54, 132, 144]) {
    for (const [layer, layout] of [[2, "chwn"], [3, "nhwc"], [3, "nchw"]] as const) {
      const own = { device: { ...H200, multiprocessors }, tile: "F(6,3)", layout } as const;
      const asked = request(resnet[layer]!, { algorithm: "winograd1d", ...own });
      const plan = planConv(asked);
      const { runs, splits } = fusedCut(asked, 1);
      const cut = cutRun(asked, runs[0]!, splits);
      if (isRefusal(cut) || !plan.kernel.endsWith("_spans")) continue;
      const { first, count, workgroups, steps } = cut.split!;
      seen.add(`${count} ${workgroups}`);
      const [loop, parts] = plan.passes.slice(-2).map(({ kernel }) => kernel.wgsl) as [
        string,
        string,
      ];
      const [at, end] = [declared(loop, "at"), declared(loop, "span_end")];
      const [from, to] = [declared(parts, "first_span"), declared(parts, "last_span")];
      const spansOf = Array.from({ length: count }, () => [] as number[]);
      let next = first * steps;
      for (let span = 0; span < workgroups; span++) {
        const values = { span, id: span };
        assert.equal(at(values), next);
        next = end(values);
        const blocks = new Set(
          [at(values), next - 1].map((step) => Math.floor(step / steps) - first),
        );
        blocks.forEach((block) => spansOf[block]!.push(span));
      }
      assert.equal(next, (first + count) * steps);
      spansOf.forEach((spans, own) => {
        assert.deepEqual([from({ own }), to({ own })], [spans[0], spans.at(-1)]);
      });
    }
  }
  assert.ok(seen.size > 6, `${[...seen]}`);
});

Deno.test("even shares of many blocks stay below 32 bits", () => {
  // 50,176 blocks of two workgroups each: 2³² and more of their product.
  const [problem] = parseDescriptors("mb64ic64ih224oc64kh3ph1");
  const policy = "32x32x8_8x8";
  const plan = planConv(
    request(problem!, {
      algorithm: "winograd1d",
      tile: "F(4,3)",
      layout: "nhwc",
      splits: 2,
      policy,
    }),
  );
  const parts = plan.passes.at(-1)!.kernel.wgsl;
  const [from, to] = [declared(parts, "first_span"), declared(parts, "last_span")];
  assert.deepEqual([from({ own: 50_175 }), to({ own: 50_175 })], [100_350, 100_351]);
  const factors = [...parts.matchAll(/_span = .*?(\d+)u/g)].map(([, factor]) => Number(factor));
  assert.deepEqual(factors.map((factor) => factor * 50_176 < 2 ** 32), [true, true]);
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
