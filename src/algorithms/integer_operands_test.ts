import assert from "#assert";
import { request as planRequest } from "../../tests/plan_request.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { IntegerOperands } from "../problem/conv_elements.ts";
import { canonicalName } from "../kernels/kernel.ts";
import { planConv, tryPlanConv } from "./planner.ts";
import { isRefusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

const request = planRequest(parseDescriptor("g2mb1ic8ih6oc8kh3ph1"), {
  ...{ dtype: "i8", layout: "nhwc", algorithm: "direct" },
});

Deno.test("a convolution of integers takes the passes that its zero points need, and no others", () => {
  const passes = (integers: IntegerOperands, problem = request.problem) =>
    planConv({ ...request, problem, integers }).passes
      .map(({ kernel }) => canonicalName(kernel).replace(/^direct.*/, "direct")).join(" ");
  const flip = "signed_bytes_x4_0d_u8", ones = "signed_bytes_x4_1d_border1";
  assert.equal(passes({ inputZeroPoint: 0, filterZeroPoint: 0 }), "direct");
  assert.equal(passes({ inputDtype: "u8", inputZeroPoint: 128 }), `${flip} direct`);
  assert.equal(passes({ filterDtype: "u8", filterZeroPoint: 128 }), `${flip} direct`);
  assert.equal(
    passes({ inputDtype: "u8" }),
    "signed_bytes_x4_2d_u8_border-128 zero_bias direct",
  );
  assert.equal(passes({ inputZeroPoint: 5 }), "signed_bytes_x4_2d_border5 zero_bias direct");
  // Without padding there is no border.
  const valid = parseDescriptor("mb1ic8ih6oc8kh3");
  assert.equal(passes({ inputZeroPoint: 5 }, valid), "zero_bias direct");
  assert.equal(passes({ filterZeroPoint: 5 }), `${ones} direct zero_sums_i32`);
  assert.equal(passes({ filterZeroPoint: "channel" }), `${ones} direct zero_sums_i32_channel`);
});

Deno.test("zero points of 0 leave the plan as it is", () => {
  for (const algorithm of ["direct", "implicit-gemm", "auto"]) {
    const plain = planConv({ ...request, algorithm });
    assert.deepEqual(planConv({ ...request, algorithm, integers: {} }), plain);
  }
});

Deno.test("what zero points take counts as workspace", () => {
  const integers = { inputDtype: "u8", filterZeroPoint: 1 } as const;
  const { workspaceBytes, buffers } = planConv({ ...request, integers });
  const taken = buffers.filter(({ role }) => role === "workspace")
    .reduce((sum, { bytes }) => sum + bytes, 0);
  assert.equal(workspaceBytes, taken);
  const enough = { ...request, integers, maxWorkspaceBytes: workspaceBytes };
  assert.ok(!isRefusal(tryPlanConv(enough)));
  const less = tryPlanConv({ ...enough, maxWorkspaceBytes: workspaceBytes - 1 });
  assert.ok(isRefusal(less) && less.kind === "workspace");
});

Deno.test("zero points that are none, and those of no bytes, are refused", () => {
  const refused = (change: Partial<PlanRequest>) => {
    const plan = tryPlanConv({ ...request, ...change });
    return isRefusal(plan) ? plan.text : "";
  };
  const bytes = { outDtype: "u8", epilogue: { ...NO_EPILOGUE, scale: 1 } } as const;
  const cases: [Partial<PlanRequest>, RegExp][] = [
    [
      { integers: { inputZeroPoint: 128 } },
      /^zero point 128 of the input .* -128 to 127, which i8/,
    ],
    [
      { integers: { filterDtype: "u8", filterZeroPoint: -1 } },
      /^zero point -1 of the filter .* u8/,
    ],
    [{ integers: { inputZeroPoint: 0.5 } }, /^zero point 0.5 of the input is no whole number/],
    [{ integers: { inputDtype: "u16" as never } }, /are in i8 or u8, not in u16$/],
    [{ dtype: "f32", integers: { inputZeroPoint: 1 } }, /are of dtype i8, not of f32$/],
    [{ epilogue: { ...NO_EPILOGUE, zeroPoint: 3 } }, /^a zero point of the output .* i8 or u8$/],
    [{ ...bytes, epilogue: { ...bytes.epilogue, zeroPoint: -1 } }, /^zero point -1 of the output/],
    [{ outDtype: "u8" }, /^results in u8 take a scale/],
  ];
  for (const [change, expected] of cases) assert.match(refused(change), expected);
  assert.equal(refused(bytes), "");
});
