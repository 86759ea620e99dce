/** Which requests and which layers go by rows of taps, by an H200's matrix units. */
import assert from "#assert";
import { planConv, tryPlanConv } from "../src/algorithms/planner.ts";
import { expectPlanned, isRefusal } from "../src/algorithms/refusal.ts";
import { type ConvProblem, convProblem, type Operation } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { halfRequest, PRODUCTS } from "./matrix_kernels.ts";

/** 3 x 3 taps over square images of as many results. */
function square(
  op: ConvProblem["op"],
  [inChannels, outChannels]: readonly [number, number],
  size: number,
  batch: number,
): ConvProblem {
  return convProblem({
    op,
    batch,
    inChannels,
    outChannels,
    inputSize: [size, size],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
    paddingEnd: [1, 1],
  });
}

const HALVES = PRODUCTS.find(({ dtype, unit }) => dtype === "f16" && unit.n === 16)!;

Deno.test("rows of taps are refused for what cannot multiply them, and left aside where nobody asks for them", () => {
  const problem = square("fwd", [40, 40], 28, 64);
  const plan = (policy: string, tapRows: boolean) =>
    tryPlanConv(
      halfRequest(HALVES, problem, {
        schedule: { halfTile: true, ...(tapRows && { tapRows }), policy },
      }),
    );
  const refused = {
    "64x64x48_8x8": /no matrix units, which rows of taps are multiplied on/,
    "matrix-ahead": /policy matrix-ahead has steps of 16, rows of 3 taps take multiples of 48/,
    "128x128x32_64x64m": /has steps of 32, rows of 3 taps take multiples of 48/,
  };
  for (const [policy, text] of Object.entries(refused)) {
    const asked = plan(policy, true);
    assert.ok(isRefusal(asked) && text.test(asked.text), JSON.stringify(asked));
    const free = plan(policy, false);
    assert.ok(!isRefusal(free) && !/_row3/.test(free.kernel), policy);
  }
  for (const policy of ["matrix-square", "128x128x48_64x64m"]) {
    const rows = plan(policy, true);
    assert.ok(!isRefusal(rows) && /_128x128x48_.*_row3_/.test(rows.kernel), policy);
  }
  const halved = { ...problem, stride: [2, 2], outputSize: [14, 14] };
  const strided = tryPlanConv(
    halfRequest(HALVES, halved, { schedule: { policy: "matrix-large-deep" } }),
  );
  assert.ok(isRefusal(strided) && /matrix-large-deep multiplies rows of taps/.test(strided.text));
  // Two matrices of each tap deep: of rows alone, and so by rows whether or not they are asked for.
  for (const policy of ["matrix-large-deep", "128x256x96_64x64m"]) {
    for (const tapRows of [true, false]) {
      const rows = plan(policy, tapRows);
      assert.ok(!isRefusal(rows) && /_128x256x96_.*_row3_/.test(rows.kernel), policy);
    }
  }
});

Deno.test("auto takes rows of taps two matrices deep for large tiles, and not where that pads channels", () => {
  const tile = (inChannels: number) => {
    const plan = planConv(halfRequest(HALVES, square("fwd", [inChannels, 128], 112, 32), {}));
    return plan.kernel.match(/_(\d+x\d+x\d+)_mma.*(_row3|_tap)/)?.slice(1).join("");
  };
  assert.equal(tile(128), "128x256x96_row3");
  assert.equal(tile(64), "128x256x96_row3");
  assert.equal(tile(48), "128x256x48_row3");
});

const gradient = (inChannels: number, outChannels: number) =>
  square("bwd-filter", [inChannels, outChannels], 28, 64);

Deno.test("backward-filter goes by rows of taps on tiles that have a row's matrices beside each other", () => {
  const plan = (policy: string, tapRows: boolean) =>
    tryPlanConv(
      halfRequest(HALVES, gradient(128, 128), {
        schedule: { halfTile: true, ...(tapRows && { tapRows }), policy },
      }),
    );
  for (const policy of ["matrix-large", "matrix-ahead", "128x128x32_64x64m"]) {
    const asked = plan(policy, true);
    assert.ok(
      isRefusal(asked) && /multiples of 3 matrices beside each other/.test(asked.text),
      JSON.stringify(asked),
    );
    const free = plan(policy, false);
    assert.ok(!isRefusal(free) && !/_row3/.test(free.kernel), policy);
  }
  for (const policy of ["matrix-192-wide", "128x96x64_64x48m"]) {
    const rows = plan(policy, true);
    assert.ok(!isRefusal(rows) && /_row3y4_/.test(rows.kernel), policy);
  }
  // Tiles four matrices deep are of rows alone.
  const deep = plan("matrix-192-columns-deep", false);
  assert.ok(!isRefusal(deep) && /_128x192x64_.*_row3y4_/.test(deep.kernel), JSON.stringify(deep));
  const high = plan("matrix-large-deep", false);
  assert.ok(isRefusal(high) && /of backward-filter with 2 to 5 on tiles with/.test(high.text));
});

Deno.test("rows of taps that no tile has room for are none where they are asked for without a tile", () => {
  const wide = (policy?: string) => {
    // Matrices of 16 steps before do not fit a thread's registers.
    const problem = {
      ...gradient(128, 128),
      dilation: [1, 8],
      paddingBegin: [1, 8],
      paddingEnd: [1, 8],
    };
    return tryPlanConv(
      halfRequest(HALVES, problem, {
        schedule: { halfTile: true, tapRows: true, ...(policy === undefined ? {} : { policy }) },
      }),
    );
  };
  const free = wide();
  assert.ok(!isRefusal(free) && !/_row3/.test(free.kernel), JSON.stringify(free));
  // Who asks for a tile has it.
  const forced = wide("64x192x32_64x48m");
  assert.ok(!isRefusal(forced) && /_row3x8/.test(forced.kernel), JSON.stringify(forced));
});

Deno.test("rows of backward-filter that are longer than sums may be have steps between them", () => {
  // Parts of 3072 products: 24 steps of 128, 48 of 64.
  for (
    const [size, depth, joined] of [[14, 128, true], [28, 64, true], [28, 128, false], [
      56,
      64,
      false,
    ]] as const
  ) {
    const plan = planConv(
      halfRequest(HALVES, square("bwd-filter", [64, 64], size, 128), {
        schedule: {
          halfTile: true,
          tapRows: true,
          policy: `64x48x${depth}_32x48m`,
          balance: "none",
        },
        outDtype: "f32",
      }),
    );
    assert.equal(/_row3jy/.test(plan.kernel), joined, plan.kernel);
  }
});

Deno.test("auto takes the deepest rows of backward-filter that there is room for, by how its gradient is loaded", () => {
  const kernel = (outChannels: number) =>
    planConv(halfRequest(HALVES, gradient(128, outChannels), {})).kernel;
  assert.match(kernel(128), /_128x192x64_.*_row3y4_a8b8_/);
  // Loaded by fours, a gradient's tile does not share its memory with sums, for which there is none left.
  const fours = planConv(halfRequest(HALVES, gradient(128, 132), {}));
  assert.match(fours.kernel, /_a4b8_/);
  for (const { kernel } of fours.passes) assert.ok(kernel.workgroupBytes <= 49_152, kernel.name);
});

Deno.test("images that are gathered tap by tap are read by tiles twice as deep where these fill a wave", () => {
  const planned = (text: string, op: Operation, more: Parameters<typeof halfRequest>[2] = {}) =>
    tryPlanConv(
      halfRequest(HALVES, parseDescriptor(text, op), {
        ...more,
        schedule: { halfTile: true, ...more.schedule },
      }),
    );
  const kernel = (...asked: Parameters<typeof planned>) => expectPlanned(planned(...asked)).kernel;
  const one = "mb8ic1024ih32oc256kh1", strided = "mb16ic512ih8oc512kh4sh2ph1";
  // Tiles, or splits of tiles, for nearly all of 132 multiprocessors; of more results larger ones.
  assert.match(kernel(one, "fwd"), /_128x128x64_.*_point_/);
  assert.match(kernel(strided, "fwd"), /_128x128x64_.*_tap_/);
  assert.match(kernel("mb32ic512ih28oc128kh1", "fwd"), /_128x192x64_.*_point_/);
  // What backward-filter multiplies lies across its depth.
  assert.doesNotMatch(kernel(one, "bwd-filter"), /x64_mma/);
  for (const policy of ["matrix-eight-deep", "matrix-192-columns-deep"]) {
    assert.match(kernel(one, "fwd", { schedule: { policy } }), /_128x1(28|92)x64_/);
    const refused = planned(one, "bwd-filter", { schedule: { policy } });
    assert.ok(isRefusal(refused) && /that are read tap by tap$/.test(refused.text), policy);
  }
});
