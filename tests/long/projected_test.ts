import assert from "#assert";
import { type ConvProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import type { Activation } from "../../src/problem/activations.ts";
import { type Epilogue, NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { type GemmDType, type GemmProblem, gemmProblem } from "../../src/problem/gemm_problem.ts";
import { activate } from "../../src/reference/reference.ts";
import type { ProjectionRecord } from "../../src/report/record.ts";
import type { FillKind } from "../../src/tensor/fill.ts";
import { filterLayoutFor, type Layout, LAYOUTS, stridesInLayout } from "../../src/tensor/layout.ts";
import { type Checked, linearOf, type ReferenceRequest } from "../../src/run/check.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { gemmSubject } from "../../src/run/gemm_subject.ts";
import { defaultFill, fillOperands, fromCanonical } from "../../src/run/operands.ts";
import { checkResult } from "../../src/run/case_checks.ts";
import type { HostOperands, Subject } from "../../src/run/subject.ts";
import type { PlanArithmetic } from "../../src/problem/plan_arithmetic.ts";

/** Large enough to be projected, by little. */
const LARGE = "mb2ic32ih58oc64kh3ph1";
const GROUPED = "g2mb2ic64ih58oc64kh3ph1";

const WINOGRAD: PlanArithmetic = { tiles: [{ axes: [{ n: 6, r: 3 }, { n: 6, r: 3 }] }] };

interface Case extends Omit<ReferenceRequest, "linear"> {
  readonly result: Float32Array<ArrayBuffer>;
  readonly arithmetic: PlanArithmetic;
}

/** A problem with a healthy result. */
async function healthy(
  problem: ConvProblem,
  { layout = "nchw", fill = "uniform11", epilogue = NO_EPILOGUE, change = () => {} }: {
    layout?: Layout;
    fill?: FillKind;
    epilogue?: Epilogue;
    change?: (operands: HostOperands) => void;
  } = {},
): Promise<Case> {
  const layouts = { layout, filterLayout: filterLayoutFor(layout) };
  const subject = convSubject({ problem, ...layouts, epilogue });
  const operands: HostOperands = {
    ...fillOperands(subject, fill, 3),
    ...(epilogue.bias
      ? { bias: Float32Array.from({ length: problem.outChannels }, (_, k) => (k - 20) / 40) }
      : {}),
  };
  change(operands);
  const { values } = await subject.reference.of(operands, {});
  const result = fromCanonical(subject, values) as Float32Array<ArrayBuffer>;
  return { subject, operands, mode: "auto", seed: 1, result, arithmetic: {} };
}

function projected({ projection }: Checked): ProjectionRecord {
  if (projection === undefined) throw new Error("the result was not projected");
  return projection;
}

Deno.test("a healthy result of any operation, layout and group stands its projection", async () => {
  for (const op of OPERATIONS) {
    for (const layout of LAYOUTS) {
      const text = layout === "nhwc" ? GROUPED : LARGE;
      const checked = await checkResult(
        await healthy({ ...parseDescriptor(text), op }, { layout }),
      );
      assert.equal(checked.verdict, "pass", `${op} ${layout}: ${checked.message}`);
      const { places, members, max_ratio, limit, masked } = projected(checked);
      assert.equal(places * members, checked.accuracy.total);
      assert.ok(max_ratio > 0 && max_ratio < limit / 3, `${op} ${layout}: ${max_ratio}`);
      assert.equal(masked, 0);
    }
  }
});

Deno.test("one and three axes, strides and dilation are projected", async () => {
  for (
    const text of ["mb8ic64ih1iw2100oc64kh1kw5sh1sw2dh0dw1", "mb2ic16id12ih20oc32kd3pd1kh3ph1"]
  ) {
    const checked = await checkResult(await healthy(parseDescriptor(text)));
    assert.equal(checked.verdict, "pass", `${text}: ${checked.message}`);
    assert.ok(projected(checked).max_ratio > 0);
  }
});

Deno.test("what the sample misses the projection finds, and says where", async () => {
  const problem = parseDescriptor(LARGE);
  const one = await healthy(problem, { fill: "uniform01" });
  const area = 58 * 58;
  const faults: Record<string, (result: Float32Array) => void> = {
    "6x6 places of a channel are 0": (result) => {
      for (let i = 0; i < 36; i++) {
        result[(64 + 7) * area + (12 + Math.floor(i / 6)) * 58 + 18 + i % 6] = 0;
      }
    },
    "a tile is off by 1 %": (result) => {
      for (let k = 0; k < 32; k++) {
        for (let i = 0; i < 32; i++) result[(64 + k) * area + 12 * 58 + 18 + i]! *= 1.01;
      }
    },
    "one output is off by a thousandth": (result) => {
      result[(64 + 7) * area + 12 * 58 + 18]! *= 1.001;
    },
  };
  for (const [what, spoil] of Object.entries(faults)) {
    const result = one.result.slice();
    spoil(result);
    const sampled = await checkResult({ ...one, mode: "sample", result });
    const checked = await checkResult({ ...one, result });
    assert.equal(checked.verdict, "fail", what);
    assert.match(checked.message!, /projection over channels at \[1,·,1[2-7],/, what);
    if (what !== "a tile is off by 1 %") assert.equal(sampled.verdict, "pass", what);
  }
});

Deno.test("a projection finds as much where tiles of tiny products have transforms of large data", async () => {
  const dark = (operands: HostOperands) => {
    operands.input!.forEach((value, i, input) => input[i] = i % 58 < 11 ? value * 1e-11 : value);
    operands.filter!.forEach((value, i, filter) => filter[i] = i % 3 === 0 ? value : 0);
  };
  const one = { ...await healthy(parseDescriptor(LARGE), { change: dark }), arithmetic: WINOGRAD };
  const right = await checkResult(one);
  assert.equal(right.verdict, "pass", right.message);
  const result = one.result.slice();
  for (let i = 0; i < 36; i++) {
    result[((64 + 7) * 58 + 12 + Math.floor(i / 6)) * 58 + 18 + i % 6]! *= 1.01;
  }
  const checked = await checkResult({ ...one, result });
  assert.equal(checked.verdict, "fail");
  assert.match(checked.message!, /projection over channels at \[1,·,1[2-7],/);
});

Deno.test("errors that are four times as large in a patch are found, larger ones of a winograd tile are not", async () => {
  const problem = parseDescriptor("mb4ic32ih62oc64kh3ph1");
  const one = await healthy(problem, { fill: "uniform11" });
  const checked = await checkResult({ ...one, arithmetic: WINOGRAD });
  assert.equal(checked.verdict, "pass");
  assert.ok(projected(checked).max_ratio < 0.5);
  const result = one.result.slice();
  // Noise in a quarter of an image, of twelve times what one accumulator has.
  let state = 1;
  for (let k = 0; k < 64; k++) {
    for (let y = 0; y < 32; y++) {
      for (let x = 0; x < 32; x++) {
        state = (state * 16807) % 2147483647;
        result[(k * 62 + y) * 62 + x]! += 3e-5 * (state / 2147483647 - 0.5);
      }
    }
  }
  const noisy = await checkResult({ ...one, result });
  assert.equal(noisy.verdict, "fail");
  assert.match(noisy.message!, /RMS of .* places from .* times the noise/);
  assert.equal((await checkResult({ ...one, result, arithmetic: WINOGRAD })).verdict, "pass");
});

Deno.test("NaN and infinities are masked, and what is beside them is compared singly", async () => {
  const problem = parseDescriptor(LARGE);
  const one = await healthy(problem, {
    change: ({ input }) => {
      input![5] = Infinity;
      input![70_000] = NaN;
    },
  });
  const checked = await checkResult(one);
  assert.equal(checked.verdict, "pass", checked.message);
  const { masked, masked_checked } = projected(checked);
  assert.equal(masked, masked_checked);
  // Of the infinity six places on the edge, of the NaN nine.
  assert.equal(masked, (6 + 9) * 64);
  for (const value of [0, NaN]) {
    const result = one.result.slice();
    result[40 * 58 * 58 + 64 + 40] = value;
    const wrong = await checkResult({ ...one, result });
    assert.equal(wrong.verdict, "fail", `${value}`);
    assert.match(wrong.message!, value === 0 ? /projection over/ : /of 1024 outputs beside NaN/);
  }
  const result = one.result.slice();
  // Beside the infinity, in a masked place.
  result[3 * 58 * 58 + 5] = 1;
  const wrong = await checkResult({ ...one, result });
  assert.match(wrong.message!, /1 of 960 outputs beside NaN or infinite ones are wrong/);
});

Deno.test("with an activation the linear result is projected, and every output compared with it", async () => {
  const problem = parseDescriptor(LARGE);
  for (const activation of ["relu", "gelu", "sigmoid"] as const) {
    const epilogue = { bias: true, activation };
    const plain = await healthy(problem, { epilogue: { bias: true, activation: "none" } });
    const linear = plain.result;
    const result = linear.map((value) => activate(activation as Activation, value));
    const subject = convSubject({ problem, layout: "nchw", filterLayout: "kcrs", epilogue });
    const one = { ...plain, subject, result, linear };
    const checked = await checkResult(one);
    assert.equal(checked.verdict, "pass", `${activation}: ${checked.message}`);
    assert.equal(projected(checked).activated, result.length);
    const wrong = result.slice();
    const place = linear.findIndex((value, i) => i > 100_000 && value > 1);
    wrong[place]! += 1e-3;
    const found = await checkResult({ ...one, result: wrong });
    assert.equal(found.verdict, "fail", activation);
    assert.match(found.message!, new RegExp(`output ${place} in memory is not ${activation}`));
    // A channel that relu hides is wrong before it.
    const spoilt = linear.slice();
    const negative = linear.findIndex((value, i) => i > 100_000 && value < -1);
    spoilt[negative]! -= 0.1;
    const hidden = await checkResult({ ...one, linear: spoilt });
    assert.match(hidden.message!, /projection over channels/);
    // Without the linear result a large problem is compared whole.
    const whole = await checkResult({ ...one, linear: undefined });
    assert.equal(whole.accuracy.checked, whole.accuracy.total);
    assert.equal(whole.projection, undefined);
  }
});

Deno.test("what an activation makes of infinities is found where it is wrong", async () => {
  const problem = parseDescriptor(LARGE);
  const plain = await healthy(problem, { change: ({ input }) => input![5] = Infinity });
  const epilogue = { bias: false, activation: "tanh" } as const;
  const subject = convSubject({ problem, layout: "nchw", filterLayout: "kcrs", epilogue });
  const linear = plain.result;
  const result = linear.map((value) => activate("tanh", value));
  const one = { ...plain, subject, result, linear };
  const checked = await checkResult(one);
  assert.equal(checked.verdict, "pass", checked.message);
  const place = linear.findIndex((value) => Math.abs(value) === Infinity);
  const found = await checkResult({ ...one, result: result.with(place, 0.5) });
  assert.equal(found.verdict, "fail");
  assert.match(found.message!, new RegExp(`output ${place} in memory is not tanh`));
});

const FACTORS: readonly Partial<GemmProblem>[] = [
  {},
  { transpose: "nt", alpha: 0.5, beta: 2, bias: "row" },
  { transpose: "tn", bias: "column", residual: true },
  { transpose: "tt", batch: 3, m: 200, activation: "relu", residual: true },
];

async function gemmCase(dtype: GemmDType, init: Partial<GemmProblem>, scale = 1) {
  const whole = dtype === "i8" ? { alpha: 3, beta: init.beta ?? 0 } : {};
  const problem = gemmProblem({ m: 470, n: 490, k: 480, ...init, ...whole });
  const arithmetic: PlanArithmetic = { sums: dtype === "f64" ? "f64" : "f32" };
  const subject = gemmSubject(problem, { dtype });
  const operands = fillOperands(subject, dtype === "i8" ? defaultFill(dtype) : "uniform11", 2);
  if (scale !== 1) (operands.a as Float64Array).forEach((value, i, a) => a[i] = value * scale);
  const linear = linearOf(subject, "auto");
  const stored = (values: Float64Array) =>
    dtype === "i8"
      ? Int32Array.from(values)
      : dtype === "f32"
      ? Float32Array.from(values)
      : dtype === "f16"
      ? Float16Array.from(values)
      : new Float64Array(values);
  const of = async (which: Subject) => stored(await which.reference.compute(operands, () => {}));
  return {
    subject,
    arithmetic,
    operands,
    mode: "auto" as const,
    seed: 4,
    result: await of(subject),
    linear: linear && await of(linear),
  };
}

Deno.test("healthy products of every dtype, transpose and epilogue stand their projection", async () => {
  for (const dtype of ["f32", "f64", "f16", "i8"] as const) {
    for (const init of dtype === "f32" ? FACTORS : [FACTORS[1]!, FACTORS[3]!]) {
      const one = await gemmCase(dtype, init);
      const checked = await checkResult(one);
      assert.equal(checked.verdict, "pass", `${dtype} ${JSON.stringify(init)}: ${checked.message}`);
      assert.ok(projected(checked).max_ratio <= projected(checked).limit / 2);
      const wrong = (one.linear ?? one.result).slice();
      const at = 7 * 490 + 11;
      wrong[at] = dtype === "i8" ? wrong[at]! ^ 1 : wrong[at]! + 10;
      const found = await checkResult(
        one.linear ? { ...one, linear: wrong } : { ...one, result: wrong },
      );
      assert.equal(found.verdict, "fail");
      assert.match(found.message!, /projection over rows at \[(0,)?·,11\]/);
    }
  }
});

Deno.test("products beyond f16's range, and f64 far from 1, are judged by what they are", async () => {
  const large = await gemmCase("f16", { alpha: 8192 });
  const checked = await checkResult(large);
  assert.equal(checked.verdict, "pass", checked.message);
  const { masked, masked_checked } = projected(checked);
  assert.ok(masked > 0 && masked_checked > 0 && masked_checked <= 65536);
  const infinite = large.result.findIndex((value) => value === Infinity);
  const wrong = large.result.slice();
  // All of a row that should be infinite: the singles meet one of them.
  wrong.forEach((value, i) => {
    if (!Number.isFinite(value)) wrong[i] = 1;
  });
  assert.ok(infinite >= 0);
  assert.equal((await checkResult({ ...large, result: wrong })).verdict, "fail");
  for (const scale of [1e200, 1e-200]) {
    const far = await gemmCase("f64", {}, scale);
    const result = far.result.slice();
    const projection = projected(await checkResult(far));
    assert.ok(projection.max_ratio > 0 && projection.max_ratio < projection.limit, `${scale}`);
    result[7 * 490 + 11]! *= 1 + 1e-9;
    const found = await checkResult({ ...far, result });
    assert.match(found.message!, /projection over rows at \[·,11\]/);
  }
});

Deno.test("strides in memory: the place that is named is the one that is wrong, in every layout", async () => {
  for (const layout of LAYOUTS) {
    const one = await healthy(parseDescriptor(LARGE), { layout });
    const strides = stridesInLayout(one.subject.shape, layout);
    const place = [1, 5, 33, 7].reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
    const result = one.result.slice();
    result[place]! += 0.01;
    const { message } = await checkResult({ ...one, result });
    assert.match(message!, /projection over channels at \[1,·,33,7\]/, layout);
  }
});

Deno.test("int8 convolutions are projected exactly: a single wrong sum or result is found", async () => {
  const problem = parseDescriptor("mb2ic40ih58oc64kh3ph1");
  const layouts = { layout: "nhwc", filterLayout: "krsc" } as const;
  const relu = { bias: true, activation: "relu" } as const;
  const cases = [
    { epilogue: { bias: true, activation: "none" }, outDtype: "i32" },
    { epilogue: relu, outDtype: "i32" },
    { epilogue: { ...relu, scale: 0.0005 }, outDtype: "i8" },
    { epilogue: { bias: false, activation: "none", scale: "channel" }, outDtype: "i8" },
  ] as const;
  for (const { epilogue, outDtype } of cases) {
    const subject = convSubject({ problem, ...layouts, epilogue, outDtype, dtype: "i8" });
    const scale = Float32Array.from({ length: 64 }, (_, k) => 0.0002 * (1 + k % 7));
    const operands = { ...fillOperands(subject, "int8", 2), scale };
    const of = async (which: Subject) =>
      fromCanonical(which, await which.reference.compute(operands, () => {}));
    const linear = linearOf(subject, "auto");
    const one = {
      subject,
      operands,
      arithmetic: {},
      mode: "auto" as const,
      seed: 4,
      result: await of(subject),
      linear: linear && await of(linear),
    };
    const checked = await checkResult(one);
    assert.equal(checked.verdict, "pass", checked.message);
    assert.equal(projected(checked).max_ratio, 0);
    const at = ((58 + 1) * 58 + 7) * 64 + 11;
    const wrongSum = (one.linear ?? one.result).slice();
    wrongSum[at]! ^= 1;
    const found = await checkResult(
      one.linear ? { ...one, linear: wrongSum } : { ...one, result: wrongSum },
    );
    assert.equal(found.verdict, "fail");
    assert.match(found.message!, /the projection over channels at \[1,·,1,7\] differs/);
    const result = one.result.slice();
    result[at]! ^= 1;
    assert.equal((await checkResult({ ...one, result })).verdict, "fail");
  }
});
