import assert from "#assert";
import { DeviceError } from "../errors.ts";
import { openDevice } from "../gpu/device.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { loseDeviceAt } from "../../tests/support/test_plans.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { prepareBiasGradient } from "./bias_gradient.ts";
import { prepareConvolution } from "./convolution.ts";
import { gpuTensor } from "./gpu_tensor.ts";
import { makeLayer, sharedWorkspace } from "./layer.ts";
import { prepareProduct } from "./product.ts";
import { tensorsOf } from "../../tests/support/layer_tensors.ts";
import { test } from "../../tests/drivers/driver.ts";

const STORAGE = GPUBufferUsage.STORAGE;

test("encode() says what is wrong with a tensor in one sentence", async (gpu) => {
  using elsewhere = await openDevice();
  using layer = await prepareConvolution(gpu, parseDescriptor("mb1ic2ih4oc30kh3"));
  const { made } = tensorsOf(gpu, layer);
  const spec = layer.tensors.input;
  const gone = gpuTensor(gpu, spec);
  gone[Symbol.dispose]();
  const buffer = (size: number, usage: number) => gpu.device.createBuffer({ size, usage });
  const cases: [object, RegExp][] = [
    [
      { filter: undefined },
      /^TypeError: Cannot encode: filter, f32 \[30,2,3,3\] kcrs, is missing$/,
    ],
    [{ input: gone }, /^TypeError: Cannot encode: input was disposed$/],
    [
      { input: gpuTensor(elsewhere, spec) },
      /^TypeError: Cannot encode: input is of another device/,
    ],
    [
      { input: gpuTensor(gpu, { ...spec, shape: [1, 4, 4, 2], layout: "nhwc" }) },
      /^TypeError: Cannot encode: input is f32 \[1,4,4,2\] nhwc, expected f32 \[1,2,4,4\] nchw$/,
    ],
    [
      { input: buffer(64, STORAGE) },
      /^RangeError: Cannot encode: input, f32 \[1,2,4,4\] nchw, takes 128 bytes, its buffer 64$/,
    ],
    [
      { input: buffer(128, 4) },
      /^TypeError: .* input, .* was made without GPUBufferUsage.STORAGE$/,
    ],
    [
      { input: [1, 2] },
      /^TypeError: .* input, .* is \[1,2\], expected what gpuTensor\(\) makes, or a GPUBuffer$/,
    ],
    [{ bias: made.input }, /^TypeError: Cannot encode: the layer has no bias, its tensors are/],
    [
      { input: made.output.buffer },
      /^TypeError: .* input and the result, output, are one buffer$/,
    ],
  ];
  for (const [change, message] of cases) {
    assert.throws(() => layer.run({ ...made, ...change } as never), message);
  }
  assert.throws(
    () => layer.run(null as never),
    /^TypeError: Cannot encode: what holds the tensors is null, expected an object of input, /,
  );
  assert.throws(
    () => layer.encode(undefined as never, made),
    /^TypeError: Cannot encode: the encoder is undefined, expected a GPUCommandEncoder or /,
  );
  // What WebGPU finds comes with the next wait, and leaves the device as it was.
  const strange = elsewhere.device.createBuffer({ size: 128, usage: STORAGE });
  for (let call = 0; call < 2; call++) {
    layer.run({ ...made, input: strange });
    await assert.rejects(made.output.read(), /^DeviceError: .*of another device or destroyed/);
  }
  layer.run(made);
  await made.output.read();
  layer[Symbol.dispose]();
  assert.throws(
    () => layer.run(made),
    /^TypeError: Cannot encode: the layer was disposed$/,
  );
  await assert.rejects(
    prepareConvolution(gpu, parseDescriptor("mb1ic2ih4oc3kh3"), {
      workspace: sharedWorkspace(elsewhere),
    }),
    /^TypeError: Cannot prepare: the workspace is of another device$/,
  );
});

test("gpuTensor() takes values of its type and number, and reads and writes while it lives", async (gpu) => {
  const spec = { dtype: "f32", shape: [3] } as const;
  const one = gpuTensor(gpu, spec, Float32Array.of(1, 2, 3));
  one.write(Float32Array.of(4, 5, 6));
  assert.deepEqual([...await one.read()], [4, 5, 6]);
  assert.throws(
    () => one.write(new Float32Array(2)),
    /f32 \[3\] has 3 elements, 2 values are given/,
  );
  assert.throws(() => gpuTensor(gpu, spec, new Int32Array(3) as never), /are no f32$/);
  one[Symbol.dispose]();
  await assert.rejects(one.read(), /^TypeError: Cannot read f32 \[3\]: the tensor was disposed$/);
  const closed = gpu.device.createBuffer({ size: 16, usage: STORAGE });
  using wrapped = gpuTensor(gpu, spec, closed);
  await assert.rejects(wrapped.read(), /its buffer was made without GPUBufferUsage.COPY_SRC$/);
});

test("gpuTensor() and layers say which word or size is none", async (gpu) => {
  const specs: [object, RegExp][] = [
    [{ shape: [-2, 2] }, /^RangeError: Cannot make a tensor: shape is \[-2,2\], expected whole/],
    [{ shape: [2.5, 2] }, /^RangeError: .* shape is \[2.5,2\], expected whole sizes >= 0$/],
    [{ shape: 4 }, /^TypeError: .* shape is 4, expected an array of sizes >= 0$/],
    [
      { dtype: "f99" },
      /^RangeError: .* dtype is "f99", expected f16, bf16, f32, f64, i8, u8, i32$/,
    ],
    [{ layout: "nchv" }, /^RangeError: .* layout is "nchv", expected nchw, /],
  ];
  for (const [change, message] of specs) {
    const spec = { dtype: "f32", shape: [2, 2], ...change } as never;
    assert.throws(() => gpuTensor(gpu, spec), message);
  }
  const problem = parseDescriptor("mb1ic1ih4oc1kh3");
  const wrong: [() => Promise<unknown>, RegExp][] = [
    [
      () => prepareConvolution(gpu, problem, { layout: "nchv" as never }),
      /^RangeError: Cannot convolve: layout is "nchv", expected nchw, nhwc, chwn$/,
    ],
    [
      () => prepareConvolution(gpu, { ...problem, op: "fwdd" as never }),
      /^RangeError: Cannot convolve: op is "fwdd", expected fwd, bwd-data, bwd-filter$/,
    ],
    [
      () => prepareConvolution(gpu, problem, { dtype: "f99" as never }),
      /^RangeError: Cannot convolve: dtype is "f99", expected f32, f16, bf16, i8$/,
    ],
    [
      () => prepareBiasGradient(gpu, problem, { dtype: "i8" as never }),
      /^RangeError: Cannot sum a bias' gradient: dtype is "i8", expected f32, f16, bf16$/,
    ],
  ];
  for (const [prepare, message] of wrong) await assert.rejects(prepare(), message);
});

Deno.test("a layer on a device that is lost throws a DeviceError, in whatever moment", async () => {
  const problem = parseDescriptor("mb1ic1ih4oc1kh3");
  for (let moment = 1;; moment += Math.ceil(moment / 8)) {
    using gpu = await openDevice();
    const calls = loseDeviceAt(gpu, moment);
    const outcome = await run(gpu).catch((error) => error);
    if (calls() < moment) {
      assert.equal(outcome.length, 4);
      break;
    }
    assert.ok(outcome instanceof DeviceError, `moment ${moment}: ${outcome}`);
  }
  async function run(gpu: GpuDevice) {
    return await gpu.guard(async () => {
      using layer = await prepareConvolution(gpu, problem);
      const { made } = tensorsOf(gpu, layer);
      layer.run(made);
      return await made.output.read();
    });
  }
});

test("one buffer is two operands, but where a kernel binds one of them as if it were written", async (gpu) => {
  const problem = gemmProblem({ m: 4, n: 4, k: 4 });
  using layer = await prepareProduct(gpu, problem);
  const numbers = Float32Array.from({ length: 16 }, (_, i) => i - 8);
  using a = gpuTensor(gpu, layer.tensors.a, numbers);
  using b = gpuTensor(gpu, layer.tensors.b, numbers);
  using output = gpuTensor(gpu, layer.tensors.output);
  layer.run({ a, b: a, output });
  const square = await output.read();
  assert.ok(square.some((value) => value !== 0));
  const passes = layer.plan.passes.map((pass) => ({
    ...pass,
    kernel: {
      ...pass.kernel,
      name: `${pass.kernel.name}_ordered`,
      wgsl: pass.kernel.wgsl.replaceAll("<storage, read>", "<storage, read_write>"),
      bindings: pass.kernel.bindings.map((kind) => kind === "read" ? "ordered" as const : kind),
    },
  }));
  using ordered = await makeLayer(gpu, { ...layer.plan, passes }, layer.tensors, "output", {});
  ordered.run({ a, b, output });
  assert.deepEqual(await output.read(), square);
  assert.throws(
    () => ordered.run({ a, b: a, output }),
    /^TypeError: Cannot encode: a and b are one buffer, gem[mv]_\w+.*_ordered takes two$/,
  );
});
