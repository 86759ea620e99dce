import assert from "#assert";
import { planBiasGradient } from "../algorithms/bias_gradient/plan.ts";
import { checkConvolution, convolve } from "../convolve.ts";
import { DeviceError } from "../errors.ts";
import { openDevice } from "../gpu/device.ts";
import { execute } from "../gpu/execute.ts";
import type { GpuDevice } from "../gpu/gpu_device.ts";
import { loseDeviceAt } from "../../tests/support/test_plans.ts";
import { convProblem, operandTensors, OPERATIONS } from "../problem/conv_problem.ts";
import { convTransposeProblem } from "../problem/conv_transpose.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { checkProduct } from "../multiply.ts";
import type { HostData } from "../run/subject.ts";
import { fillTensor } from "../tensor/fill.ts";
import { prepareBiasGradient } from "./bias_gradient.ts";
import { prepareConvolution } from "./convolution.ts";
import { type GpuTensor, gpuTensor, type TensorSpec } from "./gpu_tensor.ts";
import type { Layer } from "./layer.ts";
import { prepareProduct } from "./product.ts";
import { sharedWorkspace, type Workspace, WorkspaceBuffers } from "./workspace.ts";

const STORAGE = GPUBufferUsage.STORAGE;

/** Seeded values for a tensor. */
function valuesOf({ dtype, shape }: TensorSpec, seed: number): Float32Array<ArrayBuffer> {
  return fillTensor(dtype, shape, "normal", seed).data as Float32Array<ArrayBuffer>;
}

/** Tensors for all of a layer's, freed with the device; the result is left zero. */
function tensorsOf<T extends Layer["tensors"]>(gpu: GpuDevice, { tensors, result }: Layer<T>) {
  const data: Record<string, HostData> = {};
  const made = Object.fromEntries(
    Object.entries(tensors as Record<string, TensorSpec>).map(([name, spec], seed) => {
      if (name === result) return [name, gpuTensor(gpu, spec)];
      data[name] = valuesOf(spec, seed);
      return [name, gpuTensor(gpu, spec, valuesOf(spec, seed))];
    }),
  );
  return { made: made as { readonly [name in keyof T]-?: GpuTensor }, data };
}

Deno.test("a layer computes what convolve() does, in all operations, from buffers of the caller's too", async () => {
  using gpu = await openDevice();
  for (const op of OPERATIONS) {
    const problem = convProblem({ ...parseDescriptor("mb2ic3ih9oc5kh3ph1"), op });
    using layer = await prepareConvolution(gpu, problem, { layout: "nhwc" });
    const { made, data } = tensorsOf(gpu, layer);
    const own = gpu.device.createBuffer({
      size: made[layer.result]!.buffer.size,
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
    assert.deepEqual(await made[layer.result]!.read(), expected.result);
    assert.deepEqual(
      await gpuTensor(gpu, layer.tensors[layer.result]!, own).read(),
      expected.result,
    );
    assert.equal((await checkConvolution(expected, data)).verdict, "pass");
  }
});

Deno.test("a layer's run with an epilogue, timed by execute(), and of a transposed convolution", async () => {
  using gpu = await openDevice();
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
  const result = await made.output!.read();
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
  assert.deepEqual(await other.made.input!.read(), whole.result);
  assert.equal((await checkConvolution(whole, other.data)).verdict, "pass");
});

Deno.test("prepareProduct() multiplies, with all that is added", async () => {
  using gpu = await openDevice();
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
  const result = await made.output!.read() as HostData;
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

Deno.test("layers that share a workspace full of NaN compute the same: no kernel reads what none wrote", async () => {
  using gpu = await openDevice();
  using workspace = sharedWorkspace(gpu);
  const shapes = ["mb2ic5ih11oc7kh3ph1", "mb1ic16ih14oc24kh3ph1"];
  const names = [
    "implicit-gemm",
    "im2col",
    "im2win",
    "winograd2d",
    "winograd2d-nonfused",
    "winograd1d",
    "winrs",
    "depthwise",
    "direct",
  ] as const;
  let ran = 0;
  for (const descriptor of shapes) {
    for (const op of OPERATIONS) {
      for (const algorithm of names) {
        const problem = parseDescriptor(descriptor, op);
        let layer;
        try {
          layer = await prepareConvolution(gpu, problem, { algorithm, workspace, layout: "nhwc" });
        } catch (error) {
          assert.match(String(error), /^RangeError: Cannot plan: /);
          continue;
        }
        using held = layer;
        const { made, data } = tensorsOf(gpu, held);
        const bound = held.bind(made);
        held.plan.buffers.forEach(({ role }, at) => assert.ok(role !== "workspace" || at >= 3));
        assert.ok(workspace.bytes >= held.plan.workspaceBytes);
        const { result } = await convolve(gpu, problem, data, { algorithm, layout: "nhwc" });
        poison(gpu, workspace);
        await execute(gpu, bound);
        assert.deepEqual(
          await made[held.result]!.read(),
          result,
          `${descriptor} ${op} ${algorithm}`,
        );
        if (held.plan.workspaceBytes > 0) ran++;
      }
    }
  }
  assert.ok(ran > 20, `${ran} layers with a workspace`);
});

/** Fills what a workspace holds with NaN. */
function poison(gpu: GpuDevice, workspace: Workspace): void {
  if (!(workspace instanceof WorkspaceBuffers)) throw new TypeError("no workspace");
  for (const buffer of workspace.take(0)) {
    gpu.device.queue.writeBuffer(buffer, 0, new Uint8Array(buffer.size).fill(255));
  }
}

Deno.test("a training step's layers allocate nothing in a run, and free what they have", async () => {
  using gpu = await openDevice();
  const counts = countResources(gpu);
  const problem = parseDescriptor("mb2ic4ih8oc8kh3ph1");
  const inUse = () => counts.made - counts.destroyed;
  {
    using stack = new DisposableStack();
    const shared = stack.use(sharedWorkspace(gpu));
    const runs: (() => void)[] = [];
    const outputs: GpuTensor[] = [];
    const add = <T extends Layer["tensors"]>(layer: Layer<T>) => {
      stack.use(layer);
      const { made } = tensorsOf(gpu, layer);
      for (const one of Object.values<GpuTensor>(made)) stack.use(one);
      runs.push(() => layer.run(made));
      outputs.push(made[layer.result]);
    };
    for (const op of OPERATIONS) {
      const options = { layout: "nhwc", workspace: shared } as const;
      add(await prepareConvolution(gpu, convProblem({ ...problem, op }), options));
    }
    add(await prepareBiasGradient(gpu, problem, { layout: "nhwc" }));
    const step = () => runs.forEach((run) => run());
    step();
    const before = { ...counts };
    for (let call = 0; call < 40; call++) step();
    assert.deepEqual(counts, before);
    assert.ok(inUse() > 10, `${inUse()} buffers`);
    for (const output of outputs) await output.read();
  }
  assert.equal(inUse(), 0);
});

/** Counts buffers that a device makes and frees, and its bind groups. */
function countResources({ device }: GpuDevice) {
  const counts = { made: 0, destroyed: 0, bindGroups: 0 };
  const { createBuffer, createBindGroup } = device;
  device.createBuffer = (descriptor) => {
    const buffer = createBuffer.call(device, descriptor);
    counts.made++;
    const { destroy } = buffer;
    Object.defineProperty(buffer, "destroy", {
      value: () => {
        counts.destroyed++;
        return destroy.call(buffer);
      },
    });
    return buffer;
  };
  device.createBindGroup = (descriptor) => {
    counts.bindGroups++;
    return createBindGroup.call(device, descriptor);
  };
  return counts;
}

Deno.test("encode() says what is wrong with a tensor in one sentence", async () => {
  using gpu = await openDevice();
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
    [{ bias: made.input }, /^TypeError: Cannot encode: the layer has no bias, its tensors are/],
    [
      { input: made.output!.buffer },
      /^TypeError: .* input and the result, output, are one buffer$/,
    ],
  ];
  for (const [change, message] of cases) {
    assert.throws(() => layer.run({ ...made, ...change } as never), message);
  }
  // What WebGPU finds comes with the next wait, and leaves the device as it was.
  const strange = elsewhere.device.createBuffer({ size: 128, usage: STORAGE });
  layer.run({ ...made, input: strange } as never);
  await assert.rejects(made.output!.read(), /^DeviceError: .*of another device or destroyed/);
  layer.run(made);
  await made.output!.read();
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

Deno.test("gpuTensor() takes values of its type and number, and reads and writes while it lives", async () => {
  using gpu = await openDevice();
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

Deno.test("a bias' gradient is planned for the device, and a layer of it runs", async () => {
  using gpu = await openDevice();
  const problem = parseDescriptor("mb3ic1ih5oc7kh1");
  using layer = await prepareBiasGradient(gpu, problem, { layout: "chwn" });
  const { made, data } = tensorsOf(gpu, layer);
  layer.run(made);
  const result = await made.bias!.read();
  result.forEach((value, channel) => {
    const own = data.output!.subarray(75 * channel, 75 * (channel + 1)) as Float32Array;
    const sum = own.reduce((all, one) => all + one, 0);
    assert.ok(Math.abs(Number(value) - sum) < 1e-5, `${value}, expected ${sum}`);
  });
  const asked = { problem, layout: "chwn", dtype: "f32", limits: gpu.limits } as const;
  assert.equal(planBiasGradient(asked).algorithm, layer.plan.algorithm);
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
      return await made.output!.read();
    });
  }
});

Deno.test("operands of every operation are the layer's, but for its result", async () => {
  using gpu = await openDevice();
  for (const op of OPERATIONS) {
    using layer = await prepareConvolution(gpu, parseDescriptor("mb1ic2ih4oc3kh3", op));
    const read = Object.keys(layer.tensors).filter((name) => name !== layer.result);
    assert.deepEqual(read, operandTensors(op));
  }
});
