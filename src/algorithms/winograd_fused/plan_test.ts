import assert from "#assert";
import { h200 } from "../../../tests/plan_request.ts";
import { request, resnet } from "../../../tests/support/fused_requests.ts";
import { UnsupportedError } from "../../errors.ts";
import { parseSlicePolicy } from "../../kernels/slices/policy.ts";
import { type ConvProblem, convProblem } from "../../problem/conv_problem.ts";
import { LAYOUTS } from "../../tensor/layout.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv } from "../planner.ts";
import type { PlanRequest } from "../request.ts";
import { slicePolicyFits } from "./policies.ts";

const OPS = ["fwd", "bwd-data"] as const;

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
          const one = {
            algorithm: "winograd1d",
            tile: `F(${n},3)`,
            schedule: { splits: 1 },
          } as const;
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
      request(whole, { algorithm: "winograd1d", tile: `F(${n},${taps})`, schedule: { splits: 1 } }),
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
  const plan = planConv(
    request(conv2, { schedule: { policy: "32x32x4_8x8" }, tile: "F(4x4,3x3)" }),
  );
  assert.match(plan.kernel, /^winograd2d_fwd_f32_a36n4x4r3x3_32x32x4_8x8_nchw_/);
  const fails = (more: Partial<PlanRequest>, expected: RegExp | typeof UnsupportedError) =>
    assert.throws(() => planConv(request(conv2, more)), expected);
  fails({ schedule: { policy: "huge" } }, /policy huge is none of fused Winograd's/);
  fails({ schedule: { policy: "64x64x8_8x8" }, tile: "F(4x4,3x3)" }, UnsupportedError);
  fails({ tile: "F(6,3)" }, /tile F\(6,3\) has 1 axis, winograd2d tiles 2/);
  fails({ tile: "F(2x2,3x3)", algorithm: "winograd1d" }, /has 2 axes, winograd1d tiles 1/);
  fails(
    { tile: "F(14x14,3x3)", limits: DEFAULT_LIMITS },
    /the 256 products of a tile fit no policy/,
  );
});

Deno.test("a tile without room for a vector of each thread's sums is refused", () => {
  const deep = { algorithm: "winograd1d", tile: "F(2,3)" } as const;
  assert.throws(
    () => planConv(request(resnet[0]!, { ...deep, schedule: { policy: "64x64x1_4x4" } })),
    /the tile of policy 64x64x1_4x4 has no room for a vector of each thread's sums/,
  );
  assert.match(
    planConv(request(resnet[0]!, { ...deep, schedule: { policy: "64x64x2_8x8" } })).kernel,
    /_64x64x2_8x8_/,
  );
});

Deno.test("long sums are stored in parts of equal length, unless the user says otherwise", () => {
  const plan = (base: ConvProblem, more: Partial<PlanRequest> = {}) =>
    planConv(
      request(base, {
        algorithm: "winograd1d",
        ...more,
        schedule: { policy: "64x32x8_8x8", splits: 1, ...more.schedule },
      }),
    );
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
  const large = {
    algorithm: "winograd2d",
    tile: "F(6x6,3x3)",
    schedule: { policy: "16x16x2_4x4" },
  } as const;
  assert.equal(parts(conv5, large), 256);
  assert.equal(parts(conv4, large), 0);
  assert.equal(parts(conv5, { schedule: { flush: 0 } }), 0);
  assert.equal(parts(conv2, { schedule: { flush: 96 } }), 96);
  // Whole steps.
  assert.equal(parts(conv2, { schedule: { flush: 3 } }), 8);
  assert.equal(parts(conv2, { schedule: { flush: 192 } }), 0);
  // 256 channels are 768 products; one more a tap makes 99 steps, of two chains.
  const channels = (inChannels: number) => ({ ...conv2, inChannels });
  assert.equal(parts(channels(256)), 0);
  assert.equal(parts(channels(257)), 8 * 50);
  assert.equal(parts(channels(769)), 8 * 59);
  // A chain of all steps is none.
  assert.equal(
    parts({ ...channels(20), filterSize: [1, 1], outputSize: [58, 58] }, {
      schedule: { flush: 18 },
    }),
    0,
  );
  // They take no registers, and so the same tile.
  const chosen = request(conv5, {
    algorithm: "winograd1d",
    tile: "F(6,3)",
    schedule: { splits: 1 },
  });
  const tileOf = (kernel: string) => /_(\d+x\d+x\d+_\d+x\d+)_/.exec(kernel)?.[1];
  assert.equal(
    tileOf(planConv(chosen).kernel),
    tileOf(planConv({ ...chosen, schedule: { ...chosen.schedule, flush: 0 } }).kernel),
  );
});

Deno.test("sums that cannot be stored in parts are whole, and parts of them are refused", () => {
  const conv5 = resnet[3]!;
  const of = { algorithm: "winograd1d", schedule: { policy: "64x32x8_8x8", splits: 1 } } as const;
  // A part would be rounded to f16.
  const more = { ...of, dtype: "f16" } as const;
  const { kernel, arithmetic } = planConv(request(conv5, more));
  assert.doesNotMatch(kernel, /_partial_/);
  assert.equal(arithmetic.chain, undefined);
  assert.throws(
    () => planConv(request(conv5, { ...more, schedule: { ...more.schedule, flush: 64 } })),
    /it stores parts of sums \(--flush\) in results of f32/,
  );
});

Deno.test("plans count the products they multiply, and describe themselves", () => {
  const problem = problemOf(64, 12, 3);
  const policy = "64x32x8_8x8";
  const one = { algorithm: "winograd1d", tile: "F(6,3)", schedule: { policy, splits: 1 } } as const;
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
  assert.match(
    notes({ tile: "F(4,3)", schedule: { splits: 1 } }),
    /F\(4,3\): 4 tiles of a row of 14, 6/,
  );
  assert.match(notes({ tile: "F(6,3)" }), /F\(6,3\)/);
  // What takes less workspace, where the other does not fit: 16 places a row of the filter, not 24.
  const three = { tile: "F(6,3)", maxWorkspaceBytes: 7 * 2 ** 20, schedule: { splits: 1 } };
  assert.match(notes(three), /F\(6,3\): 3 tiles of a row of 14/);
  const kernel = (more: Partial<PlanRequest>) =>
    planConv(request(conv4, { algorithm: "winograd1d", layout: "nhwc", ...more })).kernel;
  assert.match(kernel(three), /_o4_beyond$/);
  assert.doesNotMatch(kernel({ tile: "F(6,3)", schedule: { splits: 1 } }), /_beyond/);
  // Chunks of a batch give its bits.
  const cut = (batch: number, tile?: string) =>
    planConv(request({ ...conv4, batch }, { algorithm: "winograd1d", ...(tile && { tile }) }))
      .notes.filter((note) => note.startsWith("F("));
  for (const tile of [undefined, "F(6,3)", "F(4,3)"]) {
    for (const batch of [1, 3, 17, 500]) assert.deepEqual(cut(batch, tile), cut(64, tile));
  }
});

Deno.test("where images lie innermost threads load four at once, of small tiles", () => {
  const kernel = (batch: number, more: Partial<PlanRequest>) =>
    planConv(
      request({ ...resnet[1]!, batch }, {
        algorithm: "winograd1d",
        ...more,
        schedule: { splits: 1, ...more.schedule },
      }),
    );
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

Deno.test("of few channels each thread has all slices, as deep as they are, where results are stored in vectors up to twelve", () => {
  const kernelOf = (inChannels: number, more: Partial<PlanRequest>) => {
    const problem = convProblem({
      batch: 16,
      inChannels,
      outChannels: 64,
      inputSize: [112, 112],
      filterSize: [3, 3],
      paddingBegin: [1, 1],
    });
    return planConv(request(problem, { algorithm: "winograd1d", ...more })).kernel;
  };
  for (const layout of LAYOUTS) {
    for (const channels of [1, 2, 3, 4]) {
      assert.match(kernelOf(channels, { layout }), new RegExp(`x${channels}_4x4a_${layout}`));
    }
    assert.doesNotMatch(kernelOf(13, { layout }), /4x4a/);
  }
  // Two blocks of three channels; of scattered results that was not measured.
  assert.match(kernelOf(6, { layout: "nhwc" }), /x3_4x4a/);
  assert.match(kernelOf(8, { layout: "chwn" }), /x4_4x4a/);
  assert.doesNotMatch(kernelOf(6, { layout: "nchw" }), /4x4a/);
});

Deno.test("policies of threads with all slices are refused where they cannot be", () => {
  const one = { algorithm: "winograd1d", tile: "F(6,3)" } as const;
  const refused = (more: Partial<PlanRequest>, message: RegExp) =>
    assert.throws(
      () => planConv(request(problemOf(8, 16, 3), { ...one, ...more })),
      message,
    );
  refused({ schedule: { policy: "8x8x4_4x4a" } }, /policy 8x8x4_4x4a has 4 threads for 8 slices/);
});

Deno.test("a policy of two tiles in turn is answered by one that is here", () => {
  assert.throws(
    () => planConv(request(problemOf(8, 16, 3), { schedule: { policy: "32x32x4_4x4d" } })),
    /policy 32x32x4_4x4d is gone, workgroups have one tile: use 32x32x4_4x4$/,
  );
});
