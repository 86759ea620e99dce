import assert from "#assert";
import { H200_LIMITS, H200_UNITS as matrixUnits } from "../../../bench/h200_limits.ts";
import { request } from "../../../tests/plan_request.ts";
import { type ConvProblem, OPERATIONS } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import type { Layout } from "../../tensor/layout.ts";
import { H200 } from "../device/h200.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { driftOf } from "../../problem/split_rounding.ts";
import { halvesProduct } from "./halves.ts";
import { halvesMarks, writtenElements, writtenOperands } from "./halves_operands.ts";

/** A request for implicit GEMM, of a device with matrix units. */
function asked(
  descriptor: string,
  op: ConvProblem["op"] = "fwd",
  more: Partial<PlanRequest> = {},
): PlanRequest {
  return request({ ...parseDescriptor(descriptor), op }, {
    algorithm: "implicit-gemm",
    layout: "nhwc",
    limits: H200_LIMITS,
    matrixUnits,
    ...more,
  });
}

/** The step between ResNet's stages of 256 and 512 channels. */
const STEP = "mb64ic256ih14oc512kh3sh2ph1";

Deno.test("auto takes halves of strided layers that are deep enough, and never where they may not be", () => {
  const mathOf = (descriptor: string, op: ConvProblem["op"], more: Partial<PlanRequest> = {}) => {
    const { kernel, arithmetic } = planConv(asked(descriptor, op, { algorithm: "auto", ...more }));
    assert.equal(kernel.includes("_f16x3_"), arithmetic.math === "f16x3", kernel);
    return arithmetic.math ?? "f32";
  };
  for (const op of OPERATIONS) {
    assert.equal(mathOf(STEP, op), "f16x3", op);
    assert.equal(mathOf(STEP, op, { math: "f32" }), "f32");
    assert.equal(mathOf(STEP, op, { exact: true }), "f32");
    const { matrixUnits: _, ...without } = asked(STEP, op, { algorithm: "auto" });
    assert.equal(planConv(without).arithmetic.math, undefined);
    const device = { ...H200, shares: { ...H200.shares, f16x3: 0 } };
    assert.equal(mathOf(STEP, op, { device }), "f32");
    // What is split is four times as much as is multiplied.
    assert.equal(mathOf("mb64ic256ih56oc512kh1sh2", op), "f32", op);
  }
  assert.equal(mathOf("mb64ic16ih14oc512kh1", "fwd"), "f32");
});

Deno.test("halves of implicit GEMM are found, split, counted, multiplied, finished, and summed again where they do not hold", () => {
  const passes = (op: ConvProblem["op"], layout: Layout = "nhwc") =>
    planConv(asked(STEP, op, { math: "f16x3", layout })).passes.map(({ kernel }) =>
      /^[a-z]+_[a-z]+/.exec(kernel.name)![0]
    );
  const before = ["split_clear", "split_maxima", "split_maxima", "split_halves", "split_halves"];
  const after = ["implicit_gemm", "reduce_splits", "split_rest"];
  assert.deepEqual(passes("fwd"), [...before, "split_windows", ...after]);
  assert.deepEqual(passes("bwd-data"), [...before, "split_windows", ...after]);
  assert.deepEqual(passes("bwd-filter"), [...before, ...after]);
  const [clear, ...others] = before;
  const turned = ["pack_strided", "pack_strided"];
  assert.deepEqual(passes("bwd-filter", "nchw"), [clear, ...turned, ...others, ...after]);
});

Deno.test("halves of implicit GEMM say how they are summed, and what they take", () => {
  for (const op of OPERATIONS) {
    const one = asked(STEP, op, { math: "f16x3" });
    const { arithmetic, workspaceBytes, buffers } = planConv(one);
    const { math, unit, highs, drift = 0, chain = Infinity } = arithmetic;
    assert.deepEqual({ math, unit, highs }, { math: "f16x3", unit: 16, highs: "away" });
    assert.ok(drift > 0 && chain <= 2048, `${drift} ${chain}`);
    const product = halvesProduct(one);
    if (isRefusal(product)) throw new Error(product.text);
    const { a, b } = writtenOperands(one, product, product.cut.policy);
    const operands = 2 * (writtenElements(a) + writtenElements(b)) + 4 * halvesMarks(one).words;
    const flags = buffers.find(({ name }) => name === "flags of results")!.bytes;
    const partials = buffers.find(({ name }) => name === "partial results")!.bytes;
    assert.equal(workspaceBytes, operands + flags + partials);
    assert.equal(product.product.workspaceBytes!(product.cut.policy), operands + flags);
    // Each value is two halves.
    const image = 64 * 256 * 14 * 14;
    if (op === "fwd") assert.equal(writtenElements(b), 2 * image);
    const tight = planConv({ ...one, algorithm: "auto", math: "auto", maxWorkspaceBytes: 1 << 20 });
    assert.equal(tight.arithmetic.math, undefined);
  }
});

Deno.test("steps whose matrices are mostly padding have as many fewer products, and gradients' places as many fewer as they meet", () => {
  const of = (descriptor: string, op: ConvProblem["op"]) =>
    planConv(asked(descriptor, op, { math: "f16x3", schedule: { splits: 1 } })).arithmetic;
  assert.equal(of("mb8ic64ih32oc64kh3ph1", "fwd").unit, 16);
  // 3 of 16 channels are no padding.
  const few = of("mb8ic3ih64oc64kh7sh2ph3", "fwd");
  assert.equal(few.unit, 3);
  const [one, sixteen] = ["mb1", "mb16"].map((mb) => of(`${mb}ic64ih28oc64kh3`, "bwd-filter"));
  assert.ok(one!.unit === 1 && sixteen!.unit === 16);
  const [whole, atrous] = ["", "ph23dh22"].map((more) =>
    of(`mb16ic64ih33oc64kh3${more}`, "bwd-filter")
  );
  assert.ok(atrous!.drift! < 0.5 * whole!.drift!, `${atrous!.drift} ${whole!.drift}`);
  // A place of one tap of nine meets a ninth.
  const border = of("mb8ic512ih33oc256kh3ph24dh23", "fwd");
  assert.ok(driftOf(border, 512) < 0.6 * driftOf(border, 9 * 512));
});

Deno.test("what implicit GEMM has no halves of is refused with a sentence that says why", () => {
  const refused = (descriptor: string, op: ConvProblem["op"], more: Partial<PlanRequest>) => {
    const plan = tryPlanConv(asked(descriptor, op, { math: "f16x3", ...more }));
    return isRefusal(plan) ? plan.text : plan.kernel;
  };
  const small = "mb2ic8ih9oc8kh3sh2";
  const cases = [
    [
      refused("mb2g2ic16ih9oc16kh3", "fwd", {}),
      /: its halves are of one group \(winograd2d-nonfused does\)$/,
    ],
    [refused(small, "fwd", { layout: "chwn" }), /: its halves are of nchw and nhwc/],
    [refused("mb2ic9ih9oc8kh3", "bwd-filter", {}), /^implicit_gemm_bwd_filter_.*_halves_padded_/],
    [refused("mb0ic8ih9oc8kh3", "fwd", {}), /: there is nothing to sum/],
    [refused("mb2ic8ih0iw4oc8kh3ph2", "fwd", {}), /: there is nothing to sum/],
    [
      refused(small, "fwd", { schedule: { matrixUnits: false } }),
      /^math f16x3 multiplies on matrix units, which the variant leaves out/,
    ],
    [
      refused("mb32ic16ih512oc16kh3ph1", "fwd", {
        limits: { ...H200_LIMITS, maxStorageBufferBindingSize: 2 ** 27 },
      }),
      /^marks of rows and columns take \d+ bytes, one binding has 134217728$/,
    ],
    [refused(small, "fwd", { dtype: "f16" }), /^math f16x3 is of f32 operands/],
    [refused(small, "fwd", { exact: true }), /^math f16x3 makes three products of one/],
    [
      refused(small, "fwd", { schedule: { policy: "64x64x64_32x32m" } }),
      /^policy 64x64x64_32x32m has steps of 64, halves lie in runs of 32$/,
    ],
    [refused(small, "fwd", { schedule: { policy: "tall" } }), /^policy tall has no matrix units/],
  ] as const;
  for (const [text, expected] of cases) assert.match(text, expected);
});
