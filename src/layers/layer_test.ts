import assert from "#assert";
import { planBiasGradient } from "../algorithms/bias_gradient/plan.ts";
import { checkConvolution, convolve } from "../convolve.ts";
import { execute } from "../gpu/execute.ts";
import { convProblem, operandTensors, OPERATIONS } from "../problem/conv_problem.ts";
import { convTransposeProblem } from "../problem/conv_transpose.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { checkProduct } from "../multiply.ts";
import type { HostData } from "../run/subject.ts";
import { prepareBiasGradient } from "./bias_gradient.ts";
import { prepareConvolution } from "./convolution.ts";
import { gpuTensor } from "./gpu_tensor.ts";
import { prepareProduct } from "./product.ts";
import { tensorsOf } from "../../tests/support/layer_tensors.ts";
import { test } from "../../tests/drivers/driver.ts";

const STORAGE = GPUBufferUsage.STORAGE;

test("a layer computes what convolve() does, in all operations, from buffers of the caller's too", async (gpu) => {
  for (const op of OPERATIONS) {
    const problem = convProblem({ ...parseDescriptor("mb2ic3ih9oc5kh3ph1"), op });
    using layer = await prepareConvolution(gpu, problem, { layout: "nhwc" });
    const { made, data } = tensorsOf(gpu, layer);
    const own = gpu.device.createBuffer({
      size: made[layer.result].buffer.size,
      usage: STORAGE | 4,
    });
    const encoder = gpu.device.createCommandEncoder();
    layer.encode(encoder, made);
    const pass = encoder.beginComputePass();
    layer.encode(pass, { ...made, [layer.result]: own } as never);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
    const expected = await convolve(gpu, problem, data, { layout: "nhwc" });
    assert.equal(layer.plan, expected.plan, "plans are cached");
    assert.deepEqual(await made[layer.result].read(), expected.result);
    assert.deepEqual(
      await gpuTensor(gpu, layer.tensors[layer.result]!, own).read(),
      expected.result,
    );
    assert.equal((await checkConvolution(expected, data)).verdict, "pass");
  }
});

test("layers of bf16 have its bits on the device, and f32 beside it", async (gpu) => {
  const { tensors } = await prepareProduct(gpu, gemmProblem({ m: 3, n: 1, k: 1 }), {
    dtype: "bf16",
  });
  assert.deepEqual(tensors.a, { dtype: "bf16", shape: [3, 1] });
  using a = gpuTensor(gpu, tensors.a, Float32Array.of(1.5, -2, 1 + 2 ** -9));
  assert.equal(a.buffer.size, 16);
  assert.deepEqual([...await a.read()], [1.5, -2, 1]);
  a.write(Float32Array.of(NaN, Infinity, 3));
  assert.deepEqual([...await a.read()], [NaN, Infinity, 3]);
  using bits = gpuTensor(gpu, { dtype: "i32", shape: [1] }, a.buffer);
  assert.equal((await bits.read())[0], 0x7f807fc0);
});

test("a layer's run with an epilogue, timed by execute(), and of a transposed convolution", async (gpu) => {
  const problem = convProblem({
    batch: 1,
    inChannels: 4,
    outChannels: 6,
    inputSize: [8, 8],
    filterSize: [4, 3],
    padding: "same",
  });
  const epilogue = { bias: true, activation: "relu" } as const;
  using layer = await prepareConvolution(gpu, problem, { epilogue });
  const { made, data } = tensorsOf(gpu, layer);
  const { samplesNs } = await execute(gpu, layer.bind(made), { samples: 2 });
  assert.equal(samplesNs.length, 2);
  const result = await made.output.read();
  assert.deepEqual(result, (await convolve(gpu, problem, data, { epilogue })).result);

  const transposed = convTransposeProblem({
    batch: 2,
    inChannels: 4,
    outChannels: 3,
    inputSize: [5, 6],
    filterSize: [3, 3],
    stride: [2],
    padding: [1],
    outputPadding: [1],
  });
  using up = await prepareConvolution(gpu, transposed);
  assert.deepEqual(up.tensors.input.shape, [2, 3, 10, 12]);
  const other = tensorsOf(gpu, up);
  up.run(other.made);
  const whole = await convolve(gpu, transposed, other.data);
  assert.deepEqual(await other.made.input.read(), whole.result);
  assert.equal((await checkConvolution(whole, other.data)).verdict, "pass");
});

test("a layer of int8 takes scales and a bias in i32, and gives int8", async (gpu) => {
  const problem = parseDescriptor("mb2ic6ih9oc5kh3ph1");
  const epilogue = { bias: true, activation: "relu", scale: "channel" } as const;
  const options = { dtype: "i8", outDtype: "i8", layout: "nhwc", epilogue } as const;
  using layer = await prepareConvolution(gpu, problem, options);
  const { input, filter, bias, scale, output } = layer.tensors;
  const data = {
    input: Int8Array.from({ length: 2 * 9 * 9 * 6 }, (_, i) => i * 37 % 256 - 128),
    filter: Int8Array.from({ length: 5 * 3 * 3 * 6 }, (_, i) => i * 91 % 256 - 128),
    bias: Int32Array.of(1, -2000, 3, 4000, 5),
    scale: Float32Array.of(1e-3, 2e-3, 3e-3, 4e-3, 5e-3),
  };
  const result = gpuTensor(gpu, output);
  layer.run({
    input: gpuTensor(gpu, input, data.input),
    filter: gpuTensor(gpu, filter, data.filter),
    bias: gpuTensor(gpu, bias!, data.bias),
    scale: gpuTensor(gpu, scale!, data.scale),
    output: result,
  });
  assert.deepEqual(await result.read(), (await convolve(gpu, problem, data, options)).result);
});

test("a layer of u8 takes zero points of filters, and gives u8", async (gpu) => {
  const problem = parseDescriptor("mb1ic4ih3oc2kh3ph1");
  const epilogue = { bias: false, activation: "none", scale: 0.001, zeroPoint: 9 } as const;
  const integers = { inputDtype: "u8", inputZeroPoint: 7, filterZeroPoint: "channel" } as const;
  const options = { dtype: "i8", outDtype: "u8", layout: "nhwc", epilogue, integers } as const;
  using layer = await prepareConvolution(gpu, problem, options);
  const { input, filter, filterZeroPoint, output } = layer.tensors;
  assert.deepEqual([input.dtype, filter.dtype, output.dtype], ["u8", "i8", "u8"]);
  const data = {
    input: Uint8Array.from({ length: 36 }, (_, i) => i * 37 % 256),
    filter: Int8Array.from({ length: 72 }, (_, i) => i * 91 % 256 - 128),
    filterZeroPoint: Int32Array.of(-3, 127),
  };
  const result = gpuTensor(gpu, output);
  layer.run({
    input: gpuTensor(gpu, input, data.input),
    filter: gpuTensor(gpu, filter, data.filter),
    filterZeroPoint: gpuTensor(gpu, filterZeroPoint!, data.filterZeroPoint),
    output: result,
  });
  assert.deepEqual(await result.read(), (await convolve(gpu, problem, data, options)).result);
});

test("prepareProduct() multiplies, with all that is added", async (gpu) => {
  const problem = gemmProblem({
    m: 9,
    n: 14,
    k: 21,
    bias: "row",
    beta: 2,
    residual: true,
    transpose: "tn",
  });
  using layer = await prepareProduct(gpu, problem);
  const { made, data } = tensorsOf(gpu, layer);
  layer.run(made);
  const result = await made.output.read() as HostData;
  const { plan } = layer;
  const product = {
    problem,
    dtype: "f32",
    plan,
    result,
    shape: [9, 14],
    samplesNs: [],
    clock: "wall",
  } as const;
  const checked = await checkProduct(product, data);
  assert.equal(checked.verdict, "pass", checked.message ?? "");
});

test("a bias' gradient is planned for the device, and a layer of it runs", async (gpu) => {
  const problem = parseDescriptor("mb3ic1ih5oc7kh1");
  using layer = await prepareBiasGradient(gpu, problem, { layout: "chwn" });
  const { made, data } = tensorsOf(gpu, layer);
  layer.run(made);
  const result = await made.bias.read();
  result.forEach((value, channel) => {
    const own = data.output!.subarray(75 * channel, 75 * (channel + 1)) as Float32Array;
    const sum = own.reduce((all, one) => all + one, 0);
    assert.ok(Math.abs(Number(value) - sum) < 1e-5, `${value}, expected ${sum}`);
  });
  const asked = { problem, layout: "chwn", dtype: "f32", limits: gpu.limits } as const;
  assert.equal(planBiasGradient(asked).algorithm, layer.plan.algorithm);
});

test("operands of every operation are the layer's, but for its result", async (gpu) => {
  for (const op of OPERATIONS) {
    using layer = await prepareConvolution(gpu, parseDescriptor("mb1ic2ih4oc3kh3", op));
    const read = Object.keys(layer.tensors).filter((name) => name !== layer.result);
    assert.deepEqual(read, operandTensors(op));
  }
});
