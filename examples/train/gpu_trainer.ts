import {
  convertLayout,
  type GpuDevice,
  type GpuTensor,
  gpuTensor,
  prepareBiasGradient,
  prepareConvolution,
  sharedWorkspace,
  tensor,
  tensorShape,
  type TensorSpec,
} from "../../mod.ts";
import { createBuffer, upload } from "../../internals.ts";
import type { Digits } from "./digits.ts";
import {
  type Encode,
  gatherKernel,
  type Half,
  lossKernel,
  reluKernel,
  tickKernel,
  updateKernel,
} from "./kernels.ts";
import { BATCH, firstWeights, NETWORK, type Trainer } from "./network.ts";

/** Algorithms of a run's convolutions, and what they compute in. */
export interface GpuRun {
  readonly dtype: Half;
  /** Of forward and backward-data. */
  readonly algorithm: "auto" | "direct";
  /** Of backward-filter. */
  readonly filterGradient: "auto" | "direct" | "winrs";
}

/** What gradients are multiplied by on their way through f16, so that small ones do not vanish. */
const LOSS_SCALE = 1024;

/** Trains by layers whose tensors never leave the device: a step is encoded, and nothing of it is read. */
export async function gpuTrainer(
  gpu: GpuDevice,
  run: GpuRun,
  { images, labels, count }: Digits,
  seed: number,
): Promise<Trainer> {
  const { dtype } = run;
  using made = new DisposableStack();
  const of = <S extends TensorSpec>(
    spec: S,
    values?: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>,
  ) => made.use(gpuTensor<S["dtype"]>(gpu, spec, values as never));
  const workspace = made.use(sharedWorkspace(gpu));
  const scale = dtype === "f16" ? LOSS_SCALE : 1;

  const pictures = of({ dtype: "f32", shape: [images.length] }, images);
  const classes = of({ dtype: "i32", shape: [count] }, labels);
  const order = of({ dtype: "i32", shape: [count] });
  const losses = of({ dtype: "f32", shape: [count] });
  const hits = of({ dtype: "f32", shape: [count] });
  const step = createBuffer(gpu, 4, "step");
  made.defer(() => step.destroy());

  const forward: Encode[] = [];
  const backward: Encode[] = [];
  const updates: Encode[] = [];
  let input: GpuTensor | undefined;
  let toOutput: GpuTensor | undefined;
  for (const [i, { problem, relu }] of NETWORK.entries()) {
    const shared = { dtype, layout: "nhwc", workspace } as const;
    const epilogue = { bias: true, activation: relu ? "relu" : "none" } as const;
    const { algorithm } = run;
    const layer = made.use(
      await prepareConvolution(gpu, problem, { ...shared, algorithm, epilogue }),
    );
    const { tensors } = layer;
    const wide = { ...shared, outDtype: "f32" } as const;
    const filterGradient = made.use(
      await prepareConvolution(gpu, { ...problem, op: "bwd-filter" }, {
        ...wide,
        algorithm: run.filterGradient,
      }),
    );
    const biasGradient = made.use(await prepareBiasGradient(gpu, problem, wide));

    const x = input ?? of(tensors.input);
    if (i === 0) {
      forward.push(gatherKernel(gpu, dtype)(pictures.buffer, step, order.buffer, x.buffer));
    }
    const [w, b, y, dy] = [
      of(tensors.filter),
      of(tensors.bias!),
      of(tensors.output),
      of(tensors.output),
    ];
    const [dw, db] = [of(filterGradient.tensors.filter), of(biasGradient.tensors.bias)];
    forward.push((pass) => layer.encode(pass, { input: x, filter: w, bias: b, output: y }));

    const own: Encode[] = [];
    if (relu) own.push(reluKernel(gpu, dtype, elements(y))(y.buffer, dy.buffer));
    own.push(
      (pass) => filterGradient.encode(pass, { input: x, output: dy, filter: dw }),
      (pass) => biasGradient.encode(pass, { output: dy, bias: db }),
    );
    if (toOutput !== undefined) {
      const dx = toOutput;
      const toInput = made.use(
        await prepareConvolution(gpu, { ...problem, op: "bwd-data" }, { ...shared, algorithm }),
      );
      own.push((pass) => toInput.encode(pass, { output: dy, filter: w, input: dx }));
    }
    backward.unshift(...own);

    // Steps are taken in f32, whatever layers read.
    const canonical = tensor("f32", tensorShape(problem, "filter"), firstWeights(i, seed));
    const first = convertLayout(canonical, "kcrs", "krsc").data;
    for (const [weights, gradient, values] of [[w, dw, first], [b, db, undefined]] as const) {
      const spec = { dtype: "f32", shape: [elements(weights)] } as const;
      const [momentum, master] = [of(spec), of(spec, values)];
      const update = updateKernel(gpu, dtype, elements(weights), scale)(
        gradient.buffer,
        momentum.buffer,
        master.buffer,
        weights.buffer,
      );
      updates.push(update);
    }
    [input, toOutput] = [y, dy];
  }
  const loss = lossKernel(gpu, dtype, scale)(
    input!.buffer,
    step,
    order.buffer,
    classes.buffer,
    toOutput!.buffer,
    losses.buffer,
    hits.buffer,
  );
  const tick = tickKernel(gpu)(step);
  const submit = (encodes: readonly Encode[]) => {
    const encoder = gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const encode of encodes) encode(pass);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
  };
  // Layers read their first weights: an update by no gradient.
  submit(updates);

  const work = async (
    indices: Int32Array<ArrayBuffer>,
    encodes: readonly Encode[],
    read: GpuTensor<"f32">,
  ) => {
    upload(gpu, order.buffer, 0, indices);
    upload(gpu, step, 0, new Uint32Array(1));
    const steps = Math.floor(indices.length / BATCH);
    for (let at = 0; at < steps; at++) submit(encodes);
    const values = (await read.read()).subarray(0, steps * BATCH);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  };
  const kept = made.move();
  return {
    train: (indices) => work(indices, [...forward, loss, ...backward, ...updates, tick], losses),
    test: (indices) => work(indices, [...forward, loss, tick], hits),
    [Symbol.dispose]: () => kept.dispose(),
  };
}

function elements({ shape }: TensorSpec): number {
  return shape.reduce((all, size) => all * size, 1);
}
