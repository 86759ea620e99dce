import assert from "#assert";
import { checkConvolution, convolve } from "./convolve.ts";
import { DeviceError } from "./errors.ts";
import { openDevice } from "./gpu/device.ts";
import { loseDeviceAt } from "../tests/support/test_plans.ts";
import { convProblem } from "./problem/conv_problem.ts";
import { bf16round } from "./tensor/convert.ts";
import { parseDescriptor } from "./problem/descriptor.ts";
import { test } from "../tests/drivers/driver.ts";

test("convolve() plans, runs and fetches, and its result stands the check", async (gpu) => {
  const problem = parseDescriptor("mb2ic3ih9oc5kh3ph1");
  const input = Float32Array.from({ length: 2 * 9 * 9 * 3 }, (_, i) => Math.sin(i));
  const filter = Float32Array.from({ length: 5 * 3 * 3 * 3 }, (_, i) => Math.cos(i));
  const bias = Float32Array.from([1, 2, 3, 4, 5]);
  for (const algorithm of ["direct", "auto"] as const) {
    const operands = { input, filter, bias };
    const convolved = await convolve(gpu, problem, operands, {
      layout: "nhwc",
      algorithm,
      samples: 2,
    });
    assert.deepEqual(convolved.shape, [2, 9, 9, 5]);
    assert.equal(convolved.samplesNs.length, 2);
    const { verdict, accuracy } = await checkConvolution(convolved, operands, { mode: "full" });
    assert.equal(verdict, "pass");
    assert.equal(accuracy.checked, 2 * 9 * 9 * 5);
    convolved.result[7]! += 1;
    assert.equal((await checkConvolution(convolved, operands)).verdict, "fail");
  }
});

test("convolve() reads the slopes of prelu, and the check sees a channel with another's", async (gpu) => {
  const problem = parseDescriptor("mb1ic2ih5oc3kh3ph1");
  const input = Float32Array.from({ length: 2 * 25 }, (_, i) => Math.sin(i));
  const filter = Float32Array.from({ length: 3 * 2 * 9 }, (_, i) => Math.cos(i));
  const operands = { input, filter, slope: Float32Array.of(0.5, -2, 4) };
  const options = { epilogue: { activation: "prelu" } } as const;
  const made = await convolve(gpu, problem, operands, options);
  assert.equal((await checkConvolution(made, operands)).verdict, "pass");
  const other = { ...operands, slope: Float32Array.of(-2, 0.5, 4) };
  assert.equal((await checkConvolution(made, other)).verdict, "fail");
  await assert.rejects(
    () => convolve(gpu, problem, { input, filter }, options),
    /slope is missing/,
  );
  // What no number is makes none of sums below zero; the others are judged as ever.
  const wild = { ...operands, slope: Float32Array.of(NaN, -Infinity, 1) };
  const spread = await convolve(gpu, problem, wild, options);
  assert.ok(spread.result.some(Number.isNaN) && spread.result.includes(Infinity));
  assert.equal((await checkConvolution(spread, wild)).verdict, "pass");
  for (const channel of [0, 1]) {
    const place = spread.result.findIndex((y, i) => i >= 25 * channel && Number.isFinite(y));
    spread.result[place]! *= 1.001;
    assert.equal((await checkConvolution(spread, wild)).verdict, "fail");
    spread.result[place]! /= 1.001;
  }
});

test("convolve() does int8, to i32 and by scales to i8, and refuses what may overflow", async (gpu) => {
  const problem = parseDescriptor("mb2ic6ih9oc5kh3ph1");
  const input = Int8Array.from({ length: 2 * 9 * 9 * 6 }, (_, i) => i * 37 % 256 - 128);
  const filter = Int8Array.from({ length: 5 * 3 * 3 * 6 }, (_, i) => i * 91 % 256 - 128);
  const bias = Int32Array.of(1, -2000, 3, 4000, 5);
  const scale = Float32Array.of(1e-3, 2e-3, 3e-3, 4e-3, 5e-3);
  const options = { dtype: "i8", layout: "nhwc" } as const;
  for (const operands of [{ input, filter, bias }, { input, filter, bias, scale }]) {
    const outDtype = "scale" in operands ? "i8" as const : "i32" as const;
    const convolved = await convolve(gpu, problem, operands, { ...options, outDtype });
    assert.equal(convolved.outDtype, outDtype);
    assert.equal((await checkConvolution(convolved, operands)).verdict, "pass");
    convolved.result[7]! ^= 1;
    assert.equal((await checkConvolution(convolved, operands)).verdict, "fail");
  }
  const most = { input, filter, bias: new Int32Array(5).fill(2 ** 31 - 1) };
  await assert.rejects(
    convolve(gpu, problem, most, options),
    /^RangeError: Cannot convolve: 54 products of up to 128 and 128 may make results of 2148368383/,
  );
});

test("convolve() rounds operands to bf16, and its results once", async (gpu) => {
  const problem = parseDescriptor("mb2ic3ih9oc5kh3ph1");
  const input = Float32Array.from({ length: 2 * 9 * 9 * 3 }, (_, i) => Math.sin(i));
  const filter = Float32Array.from({ length: 5 * 3 * 3 * 3 }, (_, i) => Math.cos(i));
  const operands = { input, filter, bias: Float32Array.of(0.1, 0.2, 0.3, 0.4, 0.5) };
  const copy = input.slice();
  const convolved = await convolve(gpu, problem, operands, { dtype: "bf16" });
  assert.deepEqual(input, copy);
  const { result } = convolved;
  assert.ok(result instanceof Float32Array && result.every((one) => one === bf16round(one)));
  assert.equal((await checkConvolution(convolved, operands)).verdict, "pass");
  result[7]! *= 1 + 2 ** -4;
  assert.equal((await checkConvolution(convolved, operands)).verdict, "fail");
});

test("convolve() takes operands of u8 and zero points, and says which are none", async (gpu) => {
  const problem = parseDescriptor("mb1ic1iw3ow3oc2kw2pw1");
  const input = Uint8Array.of(0, 255, 3), filter = Int8Array.of(127, -128, 1, 2);
  const filterZeroPoint = Int32Array.of(-128, 2), scale = Float32Array.of(0.01, 0.02);
  const options = { dtype: "i8", layout: "nhwc", integers: { inputZeroPoint: 3 } } as const;
  const operands = { input, filter, filterZeroPoint };
  const sums = await convolve(gpu, problem, operands, options);
  // x - 3 is -3, 252 and 0, the filters less theirs 255 and 0, -1 and 0.
  assert.deepEqual([...sums.result], [0, 0, -765, 3, 64_260, -252]);
  assert.equal((await checkConvolution(sums, operands)).verdict, "pass");
  const epilogue = { bias: false, activation: "none", scale: "channel", zeroPoint: 100 } as const;
  const quantized = await convolve(gpu, problem, { ...operands, scale }, {
    ...options,
    epilogue,
    outDtype: "u8",
  });
  assert.deepEqual(quantized.result, Uint8Array.of(100, 100, 92, 100, 255, 95));
  assert.equal((await checkConvolution(quantized, { ...operands, scale })).verdict, "pass");
  quantized.result[2]! ^= 1;
  assert.equal((await checkConvolution(quantized, { ...operands, scale })).verdict, "fail");
  await assert.rejects(
    convolve(gpu, problem, { ...operands, filterZeroPoint: Int32Array.of(0, 128) }, options),
    /^RangeError: Cannot convolve: zero point 128 of a filter is no whole number from -128 to 127/,
  );
  await assert.rejects(
    convolve(gpu, problem, operands, { ...options, integers: { inputZeroPoint: 256 } }),
    /^RangeError: Cannot plan: zero point 256 of the input is no whole number from 0 to 255/,
  );
});

test("what u8 operands may sum to beyond 32 bits is refused, and no less", async (gpu) => {
  const most = (zero: number) => {
    // 33026 products of 255 and 255 exceed 2^31 - 1, 33025 do not.
    const count = 33_025 + zero;
    const problem = parseDescriptor(`mb1ic${count}iw1ow1oc1kw1`);
    const operands = { input: new Uint8Array(count), filter: new Int8Array(count).fill(127) };
    const integers = { inputZeroPoint: 255, filterZeroPoint: -128 };
    return convolve(gpu, problem, operands, { dtype: "i8", layout: "nhwc", integers });
  };
  assert.deepEqual([...(await most(0)).result], [-255 * 255 * 33_025]);
  await assert.rejects(most(1), /may make results of 2147515650, more than the 32 bits/);
});

test("convolve() computes gradients, and names an operand that is missing or of another size", async (gpu) => {
  const problem = convProblem({ ...parseDescriptor("mb1ic1ih2oc1kh1"), op: "bwd-data" });
  const operands = { output: Float32Array.from([1, 2, 3, 4]), filter: Float32Array.from([3]) };
  assert.deepEqual([...(await convolve(gpu, problem, operands)).result], [3, 6, 9, 12]);
  await assert.rejects(convolve(gpu, problem, { output: operands.output }), {
    name: "TypeError",
    message: "Cannot convolve: filter is missing",
  });
  await assert.rejects(convolve(gpu, problem, { ...operands, filter: new Float32Array(2) }), {
    name: "TypeError",
    message: "Cannot convolve: filter has 2 elements, its shape [1,1,1,1] has 1",
  });
});

Deno.test("convolve() on a device that is lost throws a DeviceError, in whatever moment", async () => {
  const problem = parseDescriptor("mb1ic1ih4oc1kh3");
  const operands = { input: new Float32Array(16), filter: new Float32Array(9) };
  for (let moment = 1;; moment += Math.ceil(moment / 8)) {
    using gpu = await openDevice();
    const calls = loseDeviceAt(gpu, moment);
    const outcome = await convolve(gpu, problem, operands).catch((error) => error);
    if (calls() < moment) {
      assert.equal(outcome.result.length, 4);
      break;
    }
    assert.ok(outcome instanceof DeviceError, `moment ${moment}: ${outcome}`);
    assert.match(outcome.message, /^Cannot .*: the device was lost: /);
  }
});

test("checkConvolution() projects a large result, an activated one by the result without its activation", async (gpu) => {
  const problem = parseDescriptor("mb1ic32ih64oc96kh3ph1");
  const wave = (count: number, step: number) =>
    Float32Array.from({ length: count }, (_, i) => Math.sin(step * i));
  const operands = { input: wave(64 * 64 * 32, 0.7), filter: wave(96 * 32 * 9, 1.3) };
  const plain = await convolve(gpu, problem, operands);
  const epilogue = { bias: false, activation: "silu" } as const;
  const activated = await convolve(gpu, problem, operands, { epilogue });
  const linear = plain.result;
  const good = await checkConvolution(activated, operands, { linear });
  assert.equal(good.verdict, "pass", good.message);
  assert.equal(good.projection?.activated, linear.length);
  const whole = await checkConvolution(activated, operands);
  assert.equal(whole.projection, undefined);
  assert.equal(whole.accuracy.checked, linear.length);
  plain.result[123_456]! += 0.01;
  const found = await checkConvolution(plain, operands);
  assert.equal(found.verdict, "fail");
  assert.match(found.message!, /projection over channels at \[0,·,9,0\] is/);
  plain.result[123_456]! -= 0.01;
  // What an activation hides, and what it does wrong.
  activated.result[123_456]! += 0.001;
  const wrong = await checkConvolution(activated, operands, { linear });
  assert.match(wrong.message!, /output 123456 in memory is not silu of the result without it/);
});

test("convolve() with a budget times what is new to the device once, on operands that may change meanwhile", async (gpu) => {
  const problem = parseDescriptor("mb1ic8ih12oc16kh3ph1");
  const input = Float32Array.from({ length: 8 * 144 }, (_, i) => Math.sin(i));
  const filter = Float32Array.from({ length: 16 * 72 }, (_, i) => Math.cos(i));
  const operands = { input, filter };
  const usual = await convolve(gpu, problem, operands);
  assert.equal(usual.plan.measured, undefined);
  const given = { input: input.slice(), filter: filter.slice() };
  const promise = convolve(gpu, problem, given, { tuneBudget: 60 });
  given.input.fill(0);
  const tuned = await promise;
  assert.equal(tuned.plan.measured, true);
  assert.equal((await checkConvolution(tuned, operands)).verdict, "pass");
  const bias = new Float32Array(16).fill(1);
  const again = await convolve(gpu, problem, { ...operands, bias }, { tuneBudget: 1e-9 });
  assert.equal(again.plan.measured, true);
  const named = { algorithm: "direct", tuneBudget: 60 } as const;
  assert.equal((await convolve(gpu, problem, operands, named)).plan.algorithm, "direct");
  await assert.rejects(convolve(gpu, problem, operands, { tuneBudget: -1 }), {
    name: "RangeError",
    message: "Cannot convolve: tuneBudget is -1, expected seconds >= 0",
  });
});
