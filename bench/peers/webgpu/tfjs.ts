import type { ConvProblem } from "../../../src/problem/conv_problem.ts";
import { convertLayout } from "../../../src/tensor/layout.ts";
import { tensor } from "../../../src/tensor/tensor.ts";
import { type Library, type Peer, unsupported } from "./peer.ts";

const SUFFIXES = { "fwd": "", "bwd-data": "BackpropInput", "bwd-filter": "BackpropFilter" };
const NAMES: Readonly<Record<string, string>> = { input: "x", filter: "filter", output: "dy" };

/** TensorFlow.js on its backend webgpu. */
export async function tfjs(tf: Library): Promise<Peer> {
  await tf.setBackend("webgpu");
  // Small tensors would be computed on the CPU.
  tf.env().set("WEBGPU_CPU_FORWARD", false);
  return {
    version: tf.version_core,
    flush() {
      tf.backend().endComputePassEncoder();
      if (tf.backend().commandEncoder) tf.backend().submitQueue();
    },
    prepare({ conv, gemm, layout, half, operands, shape }) {
      if (half) unsupported("TensorFlow.js has f32 alone");
      if (conv && layout !== "nhwc") unsupported("TensorFlow.js computes in nhwc");
      const form = conv && formOf(conv);
      const tensors = operands.map(({ role, shape, data }) => {
        const stored = tensor("f32", shape, data as Float32Array<ArrayBuffer>);
        const own = role === "filter" ? convertLayout(stored, "kcrs", "rsck") : stored;
        return tf.tensor(own.data, form?.shapes[role as "input"] ?? own.shape);
      });
      const named = Object.fromEntries(operands.map(({ role }, at) => [NAMES[role], tensors[at]]));
      const compute = form
        ? () => tf.engine().runKernel(form.kernel, named, form.attributes)
        : () => tf.matMul(...tensors, ...[...gemm!.transpose].map((one) => one === "t"));
      return {
        call: () => compute().dispose(),
        async result() {
          const values = await compute().data();
          if (conv?.op !== "bwd-filter") return values;
          const [K, C, ...spatial] = shape;
          const stored = tensor("f32", [...spatial, C!, K!], values);
          return convertLayout(stored, "rsck", "kcrs").data;
        },
        dispose: () => tensors.forEach((one) => one.dispose()),
      };
    },
  };
}

/** A convolution's kernel; one axis is two of which the outer is 1. */
function formOf(conv: ConvProblem) {
  const { op, groups, batch, inChannels: C, outChannels: K } = conv;
  const axes = (values: readonly number[], one: number) =>
    values.length === 1 ? [one, ...values] : [...values];
  const [begin, end] = [axes(conv.paddingBegin, 0), axes(conv.paddingEnd, 0)];
  const [strides, dilations] = [axes(conv.stride, 1), axes(conv.dilation, 1)];
  const [three, depthwise] = [strides.length === 3, groups > 1];
  const uneven = [...begin, ...end].some((pad) => pad !== begin[0]);
  if (depthwise && (groups !== C || three)) unsupported("TensorFlow.js has no groups");
  if (three && uneven) unsupported("TensorFlow.js pads three axes alike");
  if (op !== "fwd" && !depthwise && dilations.some((step) => step > 1)) {
    unsupported("TensorFlow.js has no gradients of dilated filters");
  }
  const input = [batch, ...axes(conv.inputSize, 1), C];
  const filter = [...axes(conv.filterSize, 1), C, depthwise ? K / C : K];
  const pad = three ? begin[0] : [[0, 0], ...begin.map((one, axis) => [one, end[axis]]), [0, 0]];
  const kernel = three ? "Conv3D" : depthwise ? "DepthwiseConv2dNative" : "Conv2D";
  const dataFormat = three ? "NDHWC" : "NHWC";
  return {
    kernel: kernel + SUFFIXES[op] + (three && op !== "fwd" ? "V2" : ""),
    shapes: { input, filter, output: [batch, ...axes(conv.outputSize, 1), K] },
    attributes: { strides, pad, dilations, dataFormat, inputShape: input, filterShape: filter },
  };
}
