import assert from "#assert";
import { algorithmNames } from "../../src/algorithms/registry.ts";
import { convolve } from "../../src/convolve.ts";
import { execute } from "../../src/gpu/execute.ts";
import type { GpuDevice } from "../../src/gpu/gpu_device.ts";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { prepareBiasGradient } from "../../src/layers/bias_gradient.ts";
import { prepareConvolution } from "../../src/layers/convolution.ts";
import type { GpuTensor } from "../../src/layers/gpu_tensor.ts";
import {
  type Layer,
  sharedWorkspace,
  type Workspace,
  WorkspaceBuffers,
} from "../../src/layers/layer.ts";
import { tensorsOf } from "../support/layer_tensors.ts";
import { test } from "../drivers/driver.ts";

test("layers that share a workspace full of NaN compute the same: no kernel reads what none wrote", async (gpu) => {
  using workspace = sharedWorkspace(gpu);
  let ran = 0;
  for (const op of OPERATIONS) {
    // Sizes that divide nothing, so that all kinds of padding are there.
    const problem = parseDescriptor("mb2ic5ih11oc7kh3ph1", op);
    for (const algorithm of algorithmNames()) {
      const options = { algorithm, layout: "nhwc" } as const;
      const prepared = prepareConvolution(gpu, problem, { ...options, workspace });
      const layer = await prepared.catch((error) => {
        assert.match(String(error), /^RangeError: Cannot plan: /);
      });
      if (layer === undefined || layer.plan.workspaceBytes === 0) continue;
      const { made, data } = tensorsOf(gpu, layer);
      const bound = layer.bind(made);
      assert.ok(workspace.bytes >= layer.plan.workspaceBytes);
      poison(gpu, workspace);
      await execute(gpu, bound);
      const { result } = await convolve(gpu, problem, data, options);
      assert.deepEqual(await made[layer.result].read(), result, `${op} ${algorithm}`);
      layer[Symbol.dispose]();
      ran++;
    }
  }
  assert.ok(ran > 10, `${ran} layers with a workspace`);
});

/** Fills what a workspace holds with NaN. */
function poison(gpu: GpuDevice, workspace: Workspace): void {
  if (!(workspace instanceof WorkspaceBuffers)) throw new TypeError("no workspace");
  for (const buffer of workspace.take(0)) {
    gpu.device.queue.writeBuffer(buffer, 0, new Uint8Array(buffer.size).fill(255));
  }
}

test("a training step's layers allocate nothing in a run, and free what they have", async (gpu) => {
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
