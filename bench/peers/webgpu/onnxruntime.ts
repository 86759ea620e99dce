import { onnxModel, type TestGraph, type TestNode } from "../../../tests/support/onnx_model.ts";
import { type Case, type Library, type Peer, unsupported } from "./peer.ts";

/** ONNX Runtime's provider webgpu: models of one node, whose tensors stay on the device. */
export async function onnxruntime(ort: Library): Promise<Peer> {
  const open = (graph: Partial<TestGraph>, preferredOutputLocation: string) =>
    ort.InferenceSession.create(
      onnxModel({ nodes: [], inputs: {}, weights: {}, ...graph, outputs: ["y"] }),
      { executionProviders: ["webgpu"], preferredOutputLocation, logSeverityLevel: 3 },
    );
  /** Brings a tensor to the device or from it: its copy, and what makes it. */
  const copy = async (x: Library, where = "gpu-buffer") => {
    const nodes = [{ op: "Identity", inputs: ["x"], output: "y" }];
    const types = { x: x.type === "float16" ? 10 : 1 };
    const session = await open({ nodes, inputs: { x: x.dims }, types }, where);
    return { session, ...await session.run({ x }) };
  };
  const mark = await copy(new ort.Tensor("float32", new Float32Array(4), [4]));
  const fetched = await copy(mark.y, "cpu");
  return {
    version: ort.env.versions.common,
    // What is fetched after calls was computed after them.
    finish: () => fetched.session.run({ x: mark.y }),
    async prepare(one) {
      const nodes = nodesOf(one);
      const [inputs, weights, data, types, feeds]: Library[] = [{}, {}, {}, {}, {}];
      const sessions: Library[] = [];
      for (const { role, shape, data: values } of one.operands) {
        const bits = one.half ? new Uint16Array(values.buffer) : values;
        types[role] = one.half ? 10 : 1;
        if (role === "filter") {
          [weights[role], data[role]] = [shape, new Uint8Array(values.buffer as ArrayBuffer)];
          continue;
        }
        const x = new ort.Tensor(one.half ? "float16" : "float32", bits, shape);
        // Deno gives addons no Float16Array.
        if (one.half) Object.defineProperty(x, "data", { value: bits });
        const { y, session } = await copy(x);
        [inputs[role], feeds[role]] = [shape, y];
        sessions.push(session);
      }
      const session = await open({ nodes, inputs, weights, data, types }, "gpu-buffer");
      sessions.push(session);
      const { y } = await session.run(feeds);
      return {
        call: () => session.run(feeds, { y }),
        async result() {
          const { y: { data }, session } = await copy(y, "cpu");
          sessions.push(session);
          return data;
        },
        dispose: () => Promise.all(sessions.map((session) => session.release())),
      };
    },
  };
}

/** The nodes of a case; in nhwc the runtime's own transposes and these cancel. */
function nodesOf({ conv, gemm, layout }: Case): TestNode[] {
  if (gemm !== undefined) {
    const [transA, transB] = [...gemm.transpose].map((one) => Number(one === "t"));
    const node = { inputs: ["a", "b"], output: "y" };
    if (gemm.transpose === "nn") return [{ op: "MatMul", ...node }];
    if (gemm.batch > 1) unsupported("MatMul transposes nothing");
    return [{ op: "Gemm", ...node, attributes: { transA: transA!, transB: transB! } }];
  }
  const { op, stride, dilation, paddingBegin: begin, paddingEnd: end, groups } = conv!;
  if (op === "bwd-filter") unsupported("ONNX has no gradients of filters");
  // Rows and columns that no step of the filter reaches.
  const beyond = conv!.inputSize.map((size, axis) =>
    size + begin[axis]! + end[axis]! - (conv!.filterSize[axis]! - 1) * dilation[axis]! - 1 -
    (conv!.outputSize[axis]! - 1) * stride[axis]!
  );
  const common = { strides: stride, dilations: dilation, pads: [...begin, ...end], group: groups };
  const [from, node] = op === "fwd"
    ? ["input", { op: "Conv", attributes: common }]
    : ["output", { op: "ConvTranspose", attributes: { ...common, output_padding: beyond } }];
  if (layout === "nchw") return [{ ...node, inputs: [from, "filter"], output: "y" }];
  const axes = stride.map((_, axis) => axis + 1);
  const perms = [[0, stride.length + 1, ...axes], [0, ...axes.map((axis) => axis + 1), 1]];
  const [toFirst, toLast] = perms.map((perm) => ({ op: "Transpose", attributes: { perm } }));
  return [
    { ...toFirst!, inputs: [from], output: "x" },
    { ...node, inputs: ["x", "filter"], output: "sums" },
    { ...toLast!, inputs: ["sums"], output: "y" },
  ];
}
