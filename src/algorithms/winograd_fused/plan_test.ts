import assert from "#assert";
import { H200_LIMITS } from "../../../bench/h200_limits.ts";
import { UnsupportedError } from "../../errors.ts";
import { parseSlicePolicy } from "../../kernels/slices/policy.ts";
import { type ConvProblem, convProblem } from "../../problem/conv_problem.ts";
import { parseDescriptors } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { filterLayoutFor, LAYOUTS } from "../../tensor/layout.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { cutRun } from "./cut_run.ts";
import { slicePolicyFits } from "./policies.ts";

const h200 = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 32,
};
const SUITE = new URL("../../../bench/suites/resnet3x3.txt", import.meta.url);
const resnet = Deno.readTextFileSync(SUITE).split("\n").filter((line) => line.startsWith("mb"))
  .flatMap((line) => parseDescriptors(line));
const OPS = ["fwd", "bwd-data"] as const;

function request(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
  const layout = more.layout ?? "nchw";
  return {
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "winograd2d",
    limits: h200,
    ...more,
  };
}

function problemOf(channels: number, size: number, taps: number): ConvProblem {
  return convProblem({
    batch: 2,
    inChannels: channels,
    outChannels: channels,
    inputSize: [size, size],
    filterSize: [taps, taps],
    paddingBegin: [taps >> 1, taps >> 1],
  });
}

Deno.test("the workspace is the transformed filter alone on all ResNet layers, of a depth that is not split", () => {
  assert.equal(resnet.length, 16);
  for (const base of resnet) {
    for (const op of OPS) {
      for (const layout of LAYOUTS) {
        const problem: ConvProblem = { ...base, op };
        const filters = problem.outChannels * problem.inChannels;
        const floats = (more: Partial<PlanRequest>) =>
          planConv(request(problem, { layout, ...more })).workspaceBytes / 4;
        assert.equal(floats({ tile: "F(2x2,3x3)" }), 16 * filters);
        assert.equal(floats({ tile: "F(4x4,3x3)" }), 36 * filters);
        // α·R·K·C: of tiles that reach beyond the edge once, else again for what is left, 56 = 9·6 + 2.
        const width = problem.outputSize[1]!;
        for (const n of [2, 6]) {
          const rest = width % n;
          const exact = n + 2 + (rest > 0 ? rest + 2 : 0);
          const one = { algorithm: "winograd1d", tile: `F(${n},3)`, splits: 1 } as const;
          const alphas = floats(one) / (3 * filters);
          assert.ok(alphas === exact || alphas === n + 2, `${alphas} of ${exact}`);
        }
      }
    }
  }
});

Deno.test("Ω_α(n,r) keeps α·R·K·C floats for every filter size", () => {
  for (let taps = 2; taps <= 9; taps++) {
    const alpha = taps <= 7 ? 8 : 16;
    const n = alpha + 1 - taps;
    const size = 2 * n + taps - 1;
    const whole = convProblem({
      batch: 2,
      inChannels: 64,
      outChannels: 64,
      inputSize: [size, size],
      filterSize: [taps, taps],
    });
    const plan = planConv(
      request(whole, { algorithm: "winograd1d", tile: `F(${n},${taps})`, splits: 1 }),
    );
    assert.equal(plan.workspaceBytes, 4 * alpha * taps * 64 * 64, `${taps} taps`);
    assert.equal(plan.passes.length, 2);
  }
});

Deno.test("every α up to 16 and F(2x2,3x3) fit the least limits, and the binding's", () => {
  for (const layout of LAYOUTS) {
    for (let r = 1; r <= 9; r++) {
      for (let n = 1; n + r - 1 <= 16; n++) {
        const problem = problemOf(5, 16, r);
        const tile = `F(${n},${r})`;
        const { passes } = planConv(
          request(problem, { algorithm: "winograd1d", layout, tile, limits: DEFAULT_LIMITS }),
        );
        assert.ok(passes.every(({ kernel }) => kernel.workgroupBytes <= 16_384), tile);
      }
    }
    for (let taps = 1; taps <= 9; taps++) {
      const plan = planConv(request(problemOf(5, 16, taps), { layout, limits: DEFAULT_LIMITS }));
      for (const { kernel, bindings, grid } of plan.passes) {
        assert.ok(kernel.workgroupBytes <= 16_384);
        assert.equal(bindings.length, kernel.bindings.length);
        assert.ok(grid.every((size) => size >= 1 && size <= 65_535));
        for (const { buffer, offset, size } of bindings) {
          assert.ok(offset % 256 === 0 && offset + size <= plan.buffers[buffer]!.bytes);
        }
      }
    }
  }
});

Deno.test("slicePolicyFits() holds a policy against threads and workgroup memory", () => {
  const policy = parseSlicePolicy("64x32x8_8x8")!;
  assert.equal(slicePolicyFits(policy, 16, [], h200), true);
  assert.equal(slicePolicyFits(policy, 16, ["a"], h200), false);
  assert.equal(slicePolicyFits(policy, 16, [], DEFAULT_LIMITS), false);
  assert.equal(slicePolicyFits(parseSlicePolicy("16x16x2_4x4")!, 64, [], h200), true);
  assert.equal(slicePolicyFits(parseSlicePolicy("16x16x2_4x4")!, 65, [], h200), false);
});

Deno.test("plans take the policy and the tile they are told, or refuse them", () => {
  const conv2 = resnet[0]!;
  const plan = planConv(request(conv2, { policy: "32x32x4_8x8", tile: "F(4x4,3x3)" }));
  assert.match(plan.kernel, /^winograd2d_fwd_f32_a36n4x4r3x3_32x32x4_8x8_nchw_/);
  const fails = (more: Partial<PlanRequest>, expected: RegExp | typeof UnsupportedError) =>
    assert.throws(() => planConv(request(conv2, more)), expected);
  fails({ policy: "huge" }, /policy huge is none of fused Winograd's/);
  fails({ policy: "64x64x8_8x8", tile: "F(4x4,3x3)" }, UnsupportedError);
  fails({ tile: "F(6,3)" }, /tile F\(6,3\) has 1 axis, winograd2d tiles 2/);
  fails({ tile: "F(2x2,3x3)", algorithm: "winograd1d" }, /has 2 axes, winograd1d tiles 1/);
  fails(
    { tile: "F(14x14,3x3)", limits: DEFAULT_LIMITS },
    /the 256 products of a tile fit no policy/,
  );
});

Deno.test("sums before the output transform lie as asked for, where they can, and only in fused Winograd", () => {
  const conv2 = resnet[0]!;
  const planned = (more: Partial<PlanRequest>) => planConv(request(conv2, more));
  const variant = { outputLayout: "sts64" } as const;
  for (const layout of LAYOUTS) {
    for (const outputLayout of ["reference", "sts64", "sts64-compact"] as const) {
      const { kernel } = planned({ layout, variant: { outputLayout } });
      const trait = outputLayout.replace("-", "_");
      assert.match(kernel, new RegExp(`_\\d+x\\d+x\\d+_\\d+x\\d+_output_${trait}_${layout}_`));
    }
  }
  assert.equal(planned({ variant: { outputLayout: "threads" } }).kernel, planned({}).kernel);
  assert.match(planned({ algorithm: "auto", variant }).kernel, /^winograd[12]d_.*_output_sts64_/);
  const fails = (more: Partial<PlanRequest>, expected: RegExp) =>
    assert.throws(() => planned({ variant, ...more }), expected);
  // The tile alone takes an H200's 48 KiB; the reference lies in it.
  const policy = "64x32x8_8x16";
  assert.match(planned({ policy, variant: { outputLayout: "reference" } }).kernel, /_reference_/);
  fails(
    { policy },
    /16 slices of policy 64x32x8_8x16 with output-sts64 do not fit the device's 49152/,
  );
  fails(
    { tile: "F(8x8,3x3)", limits: { ...h200, maxComputeInvocationsPerWorkgroup: 64 } },
    /the 100 products of a tile with output-sts64 fit no policy/,
  );
  fails(
    { policy: "8x8x4_8x4" },
    /policy 8x8x4_8x4 has 1 row of threads, output-sts64 takes pairs of them/,
  );
  const deep = { algorithm: "winograd1d", tile: "F(2,3)", policy: "64x64x1_4x4" } as const;
  fails(
    { ...deep, variant: { outputLayout: "reference" } },
    /tile of policy 64x64x1_4x4 has no room for a row of each thread's sums in output-reference/,
  );
  for (const algorithm of ["direct", "implicit-gemm", "winograd2d-nonfused"] as const) {
    fails({ algorithm }, /it has no other layout of sums/);
  }
  const filter = { ...conv2, op: "bwd-filter" } as const;
  assert.throws(
    () => planConv(request(filter, { algorithm: "winrs", variant })),
    /it has no other layout of sums/,
  );
});

Deno.test("a tile without room for a vector of each thread's sums is refused", () => {
  const deep = { algorithm: "winograd1d", tile: "F(2,3)" } as const;
  assert.throws(
    () => planConv(request(resnet[0]!, { ...deep, policy: "64x64x1_4x4" })),
    /the tile of policy 64x64x1_4x4 has no room for a vector of each thread's sums/,
  );
  assert.match(
    planConv(request(resnet[0]!, { ...deep, policy: "64x64x2_8x8" })).kernel,
    /_64x64x2_8x8_/,
  );
});

Deno.test("long sums are stored in parts of equal length, unless the user says otherwise", () => {
  const plan = (base: ConvProblem, more: Partial<PlanRequest> = {}) =>
    planConv(request(base, {
      algorithm: "winograd1d",
      policy: "64x32x8_8x8",
      splits: 1,
      ...more,
    }));
  const parts = (base: ConvProblem, more: Partial<PlanRequest> = {}) => {
    const { kernel, notes, arithmetic } = plan(base, more);
    const stored = / are stored every (\d+) products/.exec(notes[1]!)?.[1];
    assert.equal(kernel.includes("_partial"), stored !== undefined);
    assert.equal(arithmetic.chain, stored === undefined ? undefined : Number(stored));
    assert.equal(arithmetic.fold, stored === undefined ? undefined : "results");
    return stored === undefined ? 0 : Number(stored);
  };
  const [conv2, , conv4, conv5] = resnet as [ConvProblem, ConvProblem, ConvProblem, ConvProblem];
  assert.equal(parts(conv4), 0);
  assert.equal(parts(conv5), 512);
  assert.equal(parts(conv5, { algorithm: "winograd2d" }), 0);
  const large = { algorithm: "winograd2d", tile: "F(6x6,3x3)", policy: "16x16x2_4x4" } as const;
  assert.equal(parts(conv5, large), 256);
  assert.equal(parts(conv4, large), 0);
  assert.equal(parts(conv5, { flush: 0 }), 0);
  assert.equal(parts(conv2, { flush: 96 }), 96);
  // Whole steps.
  assert.equal(parts(conv2, { flush: 3 }), 8);
  assert.equal(parts(conv2, { flush: 192 }), 0);
  // 256 channels are 768 products; one more a tap makes 99 steps, of two chains.
  const channels = (inChannels: number) => ({ ...conv2, inChannels });
  assert.equal(parts(channels(256)), 0);
  assert.equal(parts(channels(257)), 8 * 50);
  assert.equal(parts(channels(769)), 8 * 59);
  // A chain of all steps is none.
  assert.equal(parts({ ...channels(20), filterSize: [1, 1] }, { flush: 18 }), 0);
  // They take no registers, and so the same tile.
  const chosen = request(conv5, { algorithm: "winograd1d", tile: "F(6,3)", splits: 1 });
  const tileOf = (kernel: string) => /_(\d+x\d+x\d+_\d+x\d+)_/.exec(kernel)?.[1];
  assert.equal(tileOf(planConv(chosen).kernel), tileOf(planConv({ ...chosen, flush: 0 }).kernel));
});

Deno.test("sums that cannot be stored in parts move to second accumulators", () => {
  const conv5 = resnet[3]!;
  const of = { algorithm: "winograd1d", policy: "64x32x8_8x8", splits: 1 } as const;
  for (
    const more of [
      // A part would be rounded to f16.
      { dtype: "f16" },
      { variant: { outputLayout: "sts64" } },
    ] as const
  ) {
    const { kernel, notes } = planConv(request(conv5, { ...of, ...more }));
    assert.match(kernel, /_flush64_/);
    assert.match(notes[1]!, /sums move to second accumulators every 512 products/);
  }
});

Deno.test("plans count the products they multiply, and describe themselves", () => {
  const problem = problemOf(64, 12, 3);
  const policy = "64x32x8_8x8";
  const one = { algorithm: "winograd1d", tile: "F(6,3)", policy, splits: 1 } as const;
  const plan = planConv(request(problem, one));
  // 2·12·2 tiles in 2 workgroups of 32 tiles, 64 channels, 3·64 deep.
  assert.equal(plan.multiplications, 2 * 8 * 32 * 64 * 3 * 64);
  assert.equal(plan.passes.length, 2);
  assert.match(
    plan.notes.join("\n"),
    /F\(6,3\): 2 tiles of a row of 12, 8 products in place of 18/,
  );
  assert.match(plan.notes.join("\n"), /policy 64x32x8_8x8: 2 workgroups of 256 threads/);
  const [small, large] = ["F(2x2,3x3)", "F(4x4,3x3)"].map((tile) =>
    planConv(request(problem, { tile })).amplification!
  ) as [number, number];
  assert.ok(small > 1 && large > small);
});

Deno.test("one axis is cut in the way that is predicted to be fastest", () => {
  const [, , conv4] = resnet as [ConvProblem, ConvProblem, ConvProblem];
  const notes = (more: Partial<PlanRequest>) =>
    planConv(request(conv4, { algorithm: "winograd1d", layout: "nhwc", ...more })).notes.join("\n");
  assert.match(notes({}), /F\(4,3\): 3 tiles of a row of 14.*\n.*\n?.*F\(2,3\): 1 tile of a row/);
  assert.match(notes({ tile: "F(4,3)", splits: 1 }), /F\(4,3\): 4 tiles of a row of 14, 6/);
  assert.match(notes({ tile: "F(6,3)" }), /F\(6,3\)/);
  // What takes less workspace, where the other does not fit: 16 places a row of the filter, not 24.
  const three = { tile: "F(6,3)", maxWorkspaceBytes: 7 * 2 ** 20, splits: 1 };
  assert.match(notes(three), /F\(6,3\): 3 tiles of a row of 14/);
  const kernel = (more: Partial<PlanRequest>) =>
    planConv(request(conv4, { algorithm: "winograd1d", layout: "nhwc", ...more })).kernel;
  assert.match(kernel(three), /_o4_beyond$/);
  assert.doesNotMatch(kernel({ tile: "F(6,3)", splits: 1 }), /_beyond/);
  // Chunks of a batch give its bits.
  const cut = (batch: number, tile?: string) =>
    planConv(request({ ...conv4, batch }, { algorithm: "winograd1d", ...(tile && { tile }) }))
      .notes.filter((note) => note.startsWith("F("));
  for (const tile of [undefined, "F(6,3)", "F(4,3)"]) {
    for (const batch of [1, 3, 17, 500]) assert.deepEqual(cut(batch, tile), cut(64, tile));
  }
});

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
  // 560 blocks: four waves of 132, and 32 that three workgroups share each.
  assert.match(tail.notes[1]!, /: 624 workgroups of 256 threads, 3 .* each of the last 32 blocks/);
  assert.deepEqual([tail.arithmetic.chain, tail.arithmetic.segment], [undefined, undefined]);
  assert.equal(planConv(request(conv5, { layout: "nhwc", tile: "F(2x2,3x3)" })).passes.length, 2);
  assert.match(planConv(request(conv5, { splits: 2, tile: "F(2x2,3x3)" })).kernel, /_split$/);
});

Deno.test("where images lie innermost threads load four at once, of small tiles", () => {
  const kernel = (batch: number, more: Partial<PlanRequest>) =>
    planConv(request({ ...resnet[1]!, batch }, { algorithm: "winograd1d", splits: 1, ...more }));
  const bindings = (batch: number, tile: string, layout: PlanRequest["layout"] = "chwn") =>
    kernel(batch, { tile, layout }).passes.at(-1)!.kernel.bindings;
  for (
    const [batch, tile, wide] of [[32, "F(4,3)", true], [32, "F(6,3)", false], [
      30,
      "F(4,3)",
      false,
    ]] as const
  ) {
    assert.equal(kernel(batch, { tile, layout: "chwn" }).kernel.includes("_wide"), wide);
  }
  // Workgroups of four warps keep their loads from passing barriers.
  assert.ok(bindings(32, "F(2,3)").includes("ordered"));
  assert.ok(!bindings(32, "F(4,3)").includes("ordered"));
  assert.ok(!bindings(32, "F(2,3)", "nhwc").includes("ordered"));
});

Deno.test("empty problems are planned: without results there are no passes", () => {
  for (const algorithm of ["winograd1d", "winograd2d"] as const) {
    const empty = convProblem({ ...problemOf(4, 6, 3), batch: 0 });
    assert.deepEqual(planConv(request(empty, { algorithm })).passes, []);
    const noChannels = convProblem({ ...problemOf(4, 6, 3), inChannels: 0 });
    assert.ok(planConv(request(noChannels, { algorithm })).passes.length >= 1);
  }
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
    return isRefusal(cut) ? cut : cut.split;
  };
  // 588 blocks of 64 tiles and 64 channels: four waves of 132, and 60.
  for (let splits = 2; splits <= 16; splits++) {
    assert.deepEqual(split({}, splits), { first: 528, count: 60, splits });
  }
  assert.equal(split({}, 1), undefined);
  // 264 are two waves.
  assert.equal(split({}, 2, 128, 43), undefined);
  assert.deepEqual(split({ splits: 2 }, 2), { first: 0, count: 588, splits: 2 });
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
